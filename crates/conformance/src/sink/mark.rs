//! The mark tells a sink that was restored, emptied or never written from the real one.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Batch, Mark};
use truekeep_core::{MarkNumber, RulesNumber};

use super::SinkUnderTest;
use super::batches::{
    assert_contents, assert_refused, delete, listed, mark, rank, send, try_send, upsert,
};

async fn found(subject: &dyn SinkUnderTest) -> Option<Mark> {
    subject.sink().mark().await.expect("the mark can be read")
}

fn marked(subject: &dyn SinkUnderTest) -> bool {
    subject.sink().capabilities().marked
}

/// X5: a new sink is nobody's.
pub async fn unwritten_sink_has_no_mark(subject: &mut dyn SinkUnderTest) {
    assert_eq!(found(subject).await, None);
    subject.reopen().await;
    assert_eq!(found(subject).await, None);
}

/// X5, X52: the mark travels with the batch; one without records carries it too.
pub async fn mark_is_that_of_the_last_batch(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    for number in 1..4 {
        send(subject, number, vec![upsert("k", rank(1, number), "")]).await;
        assert_eq!(found(subject).await, Some(mark(1, number)));
    }
    let last = Mark { rules: RulesNumber::new(2), ..mark(3, 4) };
    try_send(subject, last.clone(), Vec::new()).await.expect("an empty batch is admitted");
    assert_eq!(found(subject).await, Some(last));
}

/// X5: what was confirmed is there after a restart, record and mark alike.
pub async fn mark_survives_a_restart(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    for number in 1..4 {
        let kept = vec![upsert("k", rank(1, 1), "kept")];
        try_send(subject, mark(4, number), kept).await.expect("admitted");
    }
    subject.reopen().await;
    assert_eq!(found(subject).await, Some(mark(4, 3)));
    assert_contents(subject, &[("k", "kept")]).await;
}

/// X5: a sink whose records were all deleted by deliveries is written still.
pub async fn mark_outlives_the_last_record(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    send(subject, 1, vec![upsert("k", rank(1, 1), "short-lived")]).await;
    send(subject, 2, vec![delete("k", rank(1, 2))]).await;
    subject.sink().prepare().await.expect("a repeat is harmless");
    subject.reopen().await;
    assert_eq!(found(subject).await, Some(mark(1, 2)));
    send(subject, 3, vec![upsert("k", rank(1, 1), "late")]).await;
    assert_contents(subject, &[]).await;
}

/// X52: a batch that was overtaken by its successor does not make the sink look restored.
pub async fn mark_never_goes_back(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    send(subject, 1, Vec::new()).await;
    let newest = Mark { rules: RulesNumber::new(3), ..mark(1, 2) };
    try_send(subject, newest.clone(), Vec::new()).await.expect("admitted");
    let late = Mark { number: MarkNumber::new(1), ..mark(1, 2) };
    try_send(subject, late, vec![upsert("k", rank(1, 1), "late")]).await.expect("admitted");
    assert_eq!(found(subject).await, Some(newest));
    assert_contents(subject, &[("k", "late")]).await;
}

/// X5: a late batch of a former holder that has the number of a lost one does not stand for it.
pub async fn late_batch_does_not_stand_for_a_lost_one(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    // The sink was restored to the first batch; the second one of fence 2 is lost.
    for number in 1..3 {
        send(subject, number, vec![upsert("k", rank(1, number), "late")]).await;
    }
    let deliveries = vec![upsert("k", rank(1, 9), "next")];
    let next = Batch { mark: mark(2, 3), follows: mark(2, 2).batch(), deliveries };
    let error = subject.sink().apply(next).await.expect_err("it lacks the batch before");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_WENT_BACK));
    assert_contents(subject, &[("k", "late")]).await;
}

/// Rule 24: preparing what is there is harmless.
pub async fn preparing_again_changes_nothing(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("k", rank(1, 1), "kept")]).await;
    let before = (listed(&*subject.sink(), 10).await, found(subject).await);
    for _ in 0..3 {
        subject.sink().prepare().await.expect("a repeat is harmless");
        subject.reopen().await;
    }
    assert_eq!((listed(&*subject.sink(), 10).await, found(subject).await), before);
    assert_contents(subject, &[("k", "kept")]).await;
}

/// Rule 124: a sink that was emptied has no mark that says that it holds what it has lost, and
/// it takes nothing more until somebody looked.
pub async fn emptied_sink_is_not_taken_for_written(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    send(subject, 1, vec![upsert("k", rank(1, 1), "lost")]).await;
    if !subject.empty().await {
        return;
    }
    let next = vec![upsert("next", rank(1, 2), "next")];
    try_send(subject, mark(1, 2), next).await.expect_err("the sink has lost what it held");
    assert_eq!(found(subject).await, None);
    subject.sink().prepare().await.expect("prepared anew");
    subject.reopen().await;
    assert_eq!(found(subject).await, None);
    send(subject, 1, vec![upsert("k", rank(1, 1), "again")]).await;
    assert_contents(subject, &[("k", "again")]).await;
}

/// Rule 124, X5: a sink that lacks the batch before was restored since it was opened; it takes
/// nothing until somebody looked, whoever sends it and under whatever rules. The batch after the
/// last one that it holds goes on.
pub async fn batch_after_a_lost_one_is_refused_whole(subject: &mut dyn SinkUnderTest) {
    if !marked(subject) {
        return;
    }
    let (class, code) = (FailureClass::Halted, Code::SINK_WENT_BACK);
    assert_refused(subject, mark(1, 2), class, code.clone()).await;
    for number in 1..3 {
        send(subject, number, vec![upsert("k", rank(1, number), "held")]).await;
        subject.reopen().await;
        let gap = mark(1, number + 2);
        let rules = RulesNumber::new(2);
        for lacking in [gap.clone(), Mark { rules, ..gap }, mark(2, number + 2), mark(1, 99)] {
            assert_refused(subject, lacking, class, code.clone()).await;
        }
        assert_eq!(found(subject).await, Some(mark(1, number)));
    }
    send(subject, 3, vec![upsert("k", rank(1, 3), "goes on")]).await;
    assert_contents(subject, &[("k", "goes on")]).await;
}
