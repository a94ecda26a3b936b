//! What a sink remembers of a pipeline that was removed.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Mark, Outcome};
use truekeep_core::{Incarnation, RulesNumber};

use super::SinkUnderTest;
use super::batches::{assert_contents, assert_refused, delete, mark, rank, try_send, upsert};

fn headstone(number: u64) -> Mark {
    Mark { removed: true, ..mark(5, number) }
}

fn of_another(rules: u64, number: u64) -> Mark {
    let pipeline = Incarnation::parse("another").expect("a token");
    Mark { pipeline, rules: RulesNumber::new(rules), ..mark(1, number) }
}

/// One record, and then the pipeline was removed.
async fn removed(subject: &dyn SinkUnderTest) {
    let deliveries = vec![upsert("k", rank(1, 1), "left"), upsert("b", rank(1, 1), "gone")];
    try_send(subject, mark(5, 1), deliveries).await.expect("the batch is admitted");
    let purge = vec![delete("b", rank(1, 1))];
    let outcomes = try_send(subject, headstone(2), purge).await.expect("admitted");
    assert_eq!(outcomes, [Outcome::Repeated], "what is listed is removed at its own rank");
}

/// X58: what a former holder has still under way arrives in vain, also after a restart.
pub async fn headstone_keeps_former_writers_out(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().marked {
        return;
    }
    removed(subject).await;
    for _ in 0..2 {
        let (class, code) = (FailureClass::Fenced, Code::PIPELINE_REMOVED);
        assert_refused(subject, mark(5, 3), class, code.clone()).await;
        assert_refused(subject, mark(99, 3), class, code).await;
        assert_contents(subject, &[("k", "left")]).await;
        assert_eq!(subject.sink().mark().await.expect("a mark"), Some(headstone(2)));
        subject.reopen().await;
        subject.sink().prepare().await.expect("prepared");
    }
    let more = vec![delete("k", rank(1, 1))];
    try_send(subject, headstone(3), more).await.expect("whoever removes it goes on");
    assert_contents(subject, &[]).await;
    assert_eq!(subject.sink().mark().await.expect("a mark"), Some(headstone(3)));
}

/// X58: a pipeline that comes next writes above the rules that were there, and what was deleted
/// before is not remembered against it; then nobody else does.
pub async fn headstone_gives_way_to_greater_rules(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().marked {
        return;
    }
    removed(subject).await;
    let (class, code) = (FailureClass::Halted, Code::SINK_INHERITED);
    assert_refused(subject, of_another(1, 3), class, code).await;
    let deliveries = vec![upsert("k", rank(2, 1), "next"), upsert("b", rank(2, 1), "next")];
    let outcomes = try_send(subject, of_another(2, 3), deliveries).await.expect("admitted");
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Applied]);
    assert_contents(subject, &[("b", "next"), ("k", "next")]).await;
    subject.reopen().await;
    assert_eq!(subject.sink().mark().await.expect("a mark"), Some(of_another(2, 3)));
    let (class, code) = (FailureClass::Halted, Code::SINK_OWNED);
    assert_refused(subject, mark(99, 4), class, code.clone()).await;
    assert_refused(subject, headstone(4), class, code).await;
}

/// Rule 125: a sink is not buried by a pipeline that does not write it.
pub async fn headstone_is_only_its_own_pipelines(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().marked {
        return;
    }
    let deliveries = vec![upsert("k", rank(1, 1), "ours"), upsert("b", rank(1, 1), "ours")];
    try_send(subject, mark(5, 1), deliveries).await.expect("the batch is admitted");
    let theirs = Mark { removed: true, ..of_another(9, 2) };
    assert_refused(subject, theirs, FailureClass::Halted, Code::SINK_OWNED).await;
    assert_contents(subject, &[("b", "ours"), ("k", "ours")]).await;
}
