//! What a sink says of the documents that it holds.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::Delivery;

use super::SinkUnderTest;
use super::batches::{assert_contents, delete, key, rank, send, upsert};

/// One answer per delivery; none if the sink does not claim to know.
async fn verified(subject: &dyn SinkUnderTest, deliveries: &[Delivery]) -> Option<Vec<bool>> {
    let sink = subject.sink();
    let answer = sink.verify(deliveries).await;
    if sink.capabilities().verifies {
        return Some(answer.expect("answered"));
    }
    let error = answer.expect_err("it does not claim to verify");
    assert_eq!((error.class, error.code), (FailureClass::Terminal, Code::SINK_UNVERIFIABLE));
    None
}

/// A record is held if this document is there at this very rank; a deleted one if none is there.
pub async fn exactly_what_was_delivered_verifies(subject: &mut dyn SinkUnderTest) {
    let sent = vec![
        upsert("empty", rank(2, 5), ""),
        upsert("k", rank(2, 5), "text"),
        delete("gone", rank(2, 6)),
    ];
    send(subject, 1, sent.clone()).await;
    let (contents, mark) = (subject.contents().await, subject.sink().mark().await);
    let Some(answers) = verified(subject, &sent).await else { return };
    assert_eq!(answers, [true, true, true]);
    let others = [
        upsert("k", rank(2, 5), "text "),
        upsert("k", rank(2, 5), ""),
        upsert("k", rank(2, 4), "text"),
        upsert("k", rank(2, 6), "text"),
        upsert("k", rank(1, 5), "text"),
        upsert("empty", rank(2, 5), "null"),
        upsert("gone", rank(2, 6), "text"),
        upsert("never", rank(2, 5), "text"),
        delete("k", rank(2, 5)),
        delete("never", rank(2, 9)),
    ];
    let answers = verified(subject, &others).await.expect("it claims to");
    assert_eq!(answers, [vec![false; 9], vec![true]].concat());
    assert_eq!(verified(subject, &[]).await, Some(Vec::new()));
    assert_eq!(subject.contents().await, contents, "nothing is written");
    assert_eq!(subject.sink().mark().await.expect("a mark"), mark.expect("a mark"));
}

/// What somebody else wrote over a record, or without a rank, is not what was delivered; a
/// delivery of the same rank mends it.
pub async fn a_document_altered_past_the_port_does_not_verify(subject: &mut dyn SinkUnderTest) {
    let sent = ["altered", "kept"].map(|text| upsert(text, rank(1, 1), "ours"));
    send(subject, 1, sent.to_vec()).await;
    if subject.plant(&key("planted"), "ours").await {
        let planted =
            [upsert("planted", rank(0, 0), "ours"), upsert("planted", rank(1, 1), "ours")];
        let answers = verified(subject, &planted).await;
        assert!(answers.is_none_or(|answers| answers == [false, false]));
    }
    if !subject.alter(&key("altered"), "theirs").await {
        return;
    }
    let Some(answers) = verified(subject, &sent).await else { return };
    assert_eq!(answers, [false, true]);
    send(subject, 2, sent.to_vec()).await;
    assert_eq!(verified(subject, &sent).await, Some(vec![true, true]));
    assert_contents(subject, &[("altered", "ours"), ("kept", "ours"), ("planted", "ours")]).await;
}
