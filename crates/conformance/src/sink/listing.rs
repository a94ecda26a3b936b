//! What a listing shows: all that is live, in the order it declares, with its ranks.

use truekeep_core::Key;
use truekeep_core::ports::{Entry, Outcome};

use super::SinkUnderTest;
use super::batches::{assert_contents, delete, key, listed, rank, send, upsert};

const TEXTS: [&str; 9] = ["", "1", "10", "2", "A", "Z", "a", "ä", "\u{10000}"];

/// Rule 33, X34: every record once, keys strictly rising by bytes, in pages of any size, also
/// after a key that is not there.
pub async fn listing_is_ordered_complete_and_paged(subject: &mut dyn SinkUnderTest) {
    let sink = subject.sink();
    assert_eq!(listed(&*sink, 3).await, []);
    let mut deliveries: Vec<_> =
        (1..).zip(TEXTS).map(|(version, text)| upsert(text, rank(1, version), text)).collect();
    deliveries.reverse();
    send(subject, 1, deliveries).await;
    let mut expected: Vec<Entry> = (1..)
        .zip(TEXTS)
        .map(|(version, text)| Entry { key: key(text), rank: Some(rank(1, version)) })
        .collect();
    for limit in [1, 2, 3, 4, 8, 9, 10, 1_000] {
        assert_eq!(listed(&*sink, limit).await, expected, "pages of {limit}");
    }
    if !sink.capabilities().ordered_listing {
        return;
    }
    let rest = sink.list(Some(key("A0")), 100).await.expect("a page");
    assert_eq!((rest.entries, rest.end), (expected.split_off(5), true));
    let none = sink.list(Some(key("\u{10ffff}")), 100).await.expect("a page");
    assert_eq!((none.entries, none.end), (vec![], true));
}

/// Rule 52: what was deleted is remembered, and not listed.
pub async fn deleted_records_are_not_listed(subject: &mut dyn SinkUnderTest) {
    let three = ["a", "b", "c"].map(|text| upsert(text, rank(1, 1), text));
    send(subject, 1, three.into()).await;
    send(subject, 2, vec![delete("b", rank(1, 2)), delete("never", rank(1, 3))]).await;
    let keys: Vec<Key> =
        listed(&*subject.sink(), 2).await.into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [key("a"), key("c")]);
}

/// Rule 37: a record of somebody else is listed without a rank; every delivery outranks it.
pub async fn record_without_a_rank_is_listed_and_gives_way(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("k", rank(1, 5), "ours")]).await;
    for text in ["orphan", "stale"] {
        if !subject.plant(&key(text), "theirs").await {
            return;
        }
    }
    let found = listed(&*subject.sink(), 10).await;
    let found: Vec<_> = found.iter().map(|entry| (entry.key.as_str(), entry.rank)).collect();
    assert_eq!(found, [("k", Some(rank(1, 5))), ("orphan", None), ("stale", None)]);
    let repair = vec![delete("orphan", rank(0, 0)), upsert("stale", rank(0, 1), "ours")];
    assert_eq!(send(subject, 2, repair).await, [Outcome::Applied, Outcome::Applied]);
    assert_contents(subject, &[("k", "ours"), ("stale", "ours")]).await;
}
