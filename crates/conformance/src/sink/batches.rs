//! Batches of simple documents, and what must come of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Batch, Body, Delivery, Entry, Mark, Outcome, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};

use super::SinkUnderTest;

pub(crate) fn key(text: &str) -> Key {
    Key::new(text)
}

pub(crate) fn rank(rules: u64, version: u64) -> Rank {
    Rank { rules: RulesNumber::new(rules), version: Version::new(version) }
}

pub(crate) fn mark(fence: u64, number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(fence),
        number: MarkNumber::new(number),
        removed: false,
    }
}

pub(crate) fn upsert(text: &str, rank: Rank, body: &str) -> Delivery {
    let document = Document::new(Arc::new(["body".into()]), vec![Value::Text(body.into())]);
    Delivery { key: key(text), rank, body: Body::Upsert(Arc::new(document)) }
}

pub(crate) fn delete(text: &str, rank: Rank) -> Delivery {
    Delivery { key: key(text), rank, body: Body::Delete }
}

/// Sends deliveries under fence 1 as the batch of this number.
pub(crate) async fn send(
    subject: &dyn SinkUnderTest,
    number: u64,
    deliveries: Vec<Delivery>,
) -> Vec<Outcome> {
    try_send(subject, mark(1, number), deliveries).await.expect("the batch is admitted")
}

/// The batch of the number before, sent under this fence; none before the first.
pub(crate) fn before(mark: &Mark, fence: u64) -> BatchName {
    match mark.number.get() {
        0 | 1 => BatchName::default(),
        number => BatchName { fence: Fence::new(fence), number: MarkNumber::new(number - 1) },
    }
}

/// Sends deliveries; an admitted batch is answered for each of them and can be confirmed.
pub(crate) async fn try_send(
    subject: &dyn SinkUnderTest,
    mark: Mark,
    deliveries: Vec<Delivery>,
) -> Result<Vec<Outcome>, PortError> {
    let count = deliveries.len();
    let sink = subject.sink();
    let known = |held: Mark| held.batch_before(&mark.ledger, &mark.pipeline).fence;
    let fence = sink.mark().await?.map_or(mark.fence, known);
    let follows = before(&mark, fence.get());
    let applied = sink.apply(Batch { mark, follows, deliveries }).await?;
    assert_eq!(applied.outcomes.len(), count, "there is one outcome per delivery");
    sink.confirm(&applied.receipt).await?;
    Ok(applied.outcomes)
}

/// Asserts that a batch of this mark is refused, and that nothing of it is written: neither its
/// records, which are newer than any others, nor the mark.
pub(crate) async fn assert_refused(
    subject: &dyn SinkUnderTest,
    sent: Mark,
    class: FailureClass,
    code: Code,
) {
    let before = (subject.contents().await, subject.sink().mark().await.expect("a mark"));
    let deliveries = vec![
        upsert("k", rank(9, 99), "theirs"),
        delete("b", rank(9, 99)),
        upsert("n", rank(9, 99), ""),
    ];
    let error = try_send(subject, sent, deliveries).await.expect_err("the batch is refused whole");
    assert_eq!((error.class, error.code), (class, code));
    let after = (subject.contents().await, subject.sink().mark().await.expect("a mark"));
    assert_eq!(before, after, "a refused batch writes nothing");
}

/// Asserts what the sink holds, read past the port.
pub(crate) async fn assert_contents(subject: &dyn SinkUnderTest, expected: &[(&str, &str)]) {
    let expected: BTreeMap<Key, String> =
        expected.iter().map(|(text, body)| (key(text), (*body).to_owned())).collect();
    assert_eq!(subject.contents().await, expected);
}

/// The whole listing in the order of keys, in pages of `limit`; a declared order is checked as it
/// is read.
pub(crate) async fn listed(sink: &dyn Sink, limit: u32) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.key.clone());
        let page = sink.list(after, limit).await.expect("a page of the listing");
        assert!(page.entries.len() <= limit as usize, "a page holds no more than was asked for");
        assert!(page.end || !page.entries.is_empty(), "a page that is not the last moves on");
        entries.extend(page.entries);
        if sink.capabilities().ordered_listing {
            let rising = entries.is_sorted_by(|one, next| one.key < next.key);
            assert!(rising, "keys rise strictly: {entries:?}");
        }
        if page.end {
            entries.sort_by(|one, other| one.key.cmp(&other.key));
            return entries;
        }
    }
}
