//! Who may write: the owner, and of its holders the latest.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Mark, Outcome};
use truekeep_core::{Incarnation, LedgerId};

use super::SinkUnderTest;
use super::batches::{assert_contents, assert_refused, mark, rank, try_send, upsert};

async fn write(subject: &dyn SinkUnderTest, sent: Mark) {
    let deliveries = vec![upsert("k", rank(1, 1), "ours"), upsert("b", rank(1, 1), "ours")];
    try_send(subject, sent, deliveries).await.expect("the batch is admitted");
}

/// Rule 4: a former holder's batch is refused as a whole, whatever its ranks are.
pub async fn older_fence_is_refused_whole(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().fenced_writes {
        return;
    }
    write(subject, mark(5, 1)).await;
    assert_refused(subject, mark(4, 2), FailureClass::Fenced, Code::SINK_FENCED).await;
    assert_contents(subject, &[("b", "ours"), ("k", "ours")]).await;
}

/// Rule 4: the holder goes on under its fence, and its successor under a greater one.
pub async fn equal_fence_is_admitted(subject: &mut dyn SinkUnderTest) {
    for (fence, number) in [(5, 1), (5, 2), (6, 3)] {
        let deliveries = vec![upsert("k", rank(1, number), "ours")];
        let outcomes = try_send(subject, mark(fence, number), deliveries).await;
        assert_eq!(outcomes.expect("the batch is admitted"), [Outcome::Applied]);
    }
}

/// Rule 4: a sink that starts anew knows the latest holder still, also one that only looked.
pub async fn fence_survives_a_restart(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().fenced_writes {
        return;
    }
    write(subject, mark(5, 1)).await;
    try_send(subject, mark(6, 1), Vec::new()).await.expect("an empty batch is admitted");
    subject.reopen().await;
    assert_refused(subject, mark(5, 2), FailureClass::Fenced, Code::SINK_FENCED).await;
}

/// Rule 125, X53: a sink that belongs to another ledger or pipeline is not written, whatever
/// the fence.
pub async fn other_owner_is_refused_whole(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().marked {
        return;
    }
    write(subject, mark(5, 1)).await;
    let ledger = LedgerId::parse("another").expect("a token");
    let pipeline = Incarnation::parse("another").expect("a token");
    for fence in [1, 5, 6] {
        let strangers = [
            Mark { ledger: ledger.clone(), ..mark(fence, 2) },
            Mark { pipeline: pipeline.clone(), ..mark(fence, 2) },
        ];
        for stranger in strangers {
            assert_refused(subject, stranger, FailureClass::Halted, Code::SINK_OWNED).await;
        }
        subject.reopen().await;
    }
}
