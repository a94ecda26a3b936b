//! Rules of what operators wish: to try a record again.

use super::*;
use truekeep_core::certificate::State;
use truekeep_core::ports::{ItemState, Retried};

async fn retry(ledger: &dyn LedgerUnderTest, key: &str) -> Retried {
    ledger.items().retry(&scope(), &Key::new(key)).await.expect("an answer")
}

async fn request(ledger: &dyn LedgerUnderTest, key: &str, version: u64, kind: ItemKind) -> Retried {
    let (key, version) = (Key::new(key), Version::new(version));
    ledger.items().request(&scope(), &key, version, kind).await.expect("an answer")
}

/// Rules 98 and 101: pending without an attempt, said by the certificate at once and judged by
/// nobody, noticed by the worker through the run's version.
pub async fn a_parked_item_is_retried_on_a_wish(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 5), parked("b", 5), LedgerWrite::Certify(at(9))]).await;
    let (item_before, before) =
        (item(ledger, "a").await.expect("an item"), certificate(ledger).await);
    ledger.advance(MOMENT);
    assert_eq!(retry(ledger, "a").await, Retried::Pending);
    let then = now(ledger).await;
    let pending = Item {
        state: ItemState::Pending,
        attempts: 0,
        due_at: then,
        changed_at: then,
        ..item_before
    };
    assert_eq!(item(ledger, "a").await, Some(pending));
    let counted = Certificate { parked: 1, unsettled: 1, changed_at: then, ..before };
    assert_eq!(certificate(ledger).await, counted);
    assert_eq!(counted.state, State::Partial);
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::RunVersion));
    assert_eq!(retry(ledger, "a").await, Retried::Unchanged, "the second operator");
    owner.guard.run_version = run(ledger).await.version;
    assert_eq!(owner.claim(10).await, ["a"], "only that record");
}

/// Rule 99: what is not parked is not retried, and nothing moves.
pub async fn only_a_parked_item_is_retried(ledger: &dyn LedgerUnderTest) {
    assert_eq!(retry(ledger, "a").await, Retried::Unknown, "the scope is not known");
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Enqueue(vec![retry_item("a", 5, TTL)])]).await;
    let before = seen(ledger).await;
    assert_eq!(retry(ledger, "absent").await, Retried::Unknown);
    assert_eq!(retry(ledger, "a").await, Retried::Unchanged);
    assert_eq!(seen(ledger).await, before);
}

/// Rule 100: what is being tried is left alone, with the time until when; when its holder is dead
/// it is claimed next anyway, and alone.
pub async fn a_retry_of_a_leased_item_says_until_when(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("a", 5), due("b", 5)]).await;
    owner.claim(10).await;
    let until = ledger.leases().holder(&scope()).await.expect("an answer").0.expect("a lease");
    let before = seen(ledger).await;
    assert_eq!(retry(ledger, "a").await, Retried::Leased(until.expires_at));
    let kind = ItemKind::Upsert;
    assert_eq!(request(ledger, "a", 9, kind).await, Retried::Leased(until.expires_at));
    ledger.advance(TTL);
    assert_eq!(retry(ledger, "a").await, Retried::Unchanged);
    assert_eq!(seen(ledger).await, before);
    let rival = Owner::take_over(ledger, "rival").await;
    assert_eq!(retry(ledger, "a").await, Retried::Unchanged, "the new holder has not claimed it");
    assert_eq!(request(ledger, "a", 9, kind).await, Retried::Unchanged);
    assert_eq!(rival.claim(10).await, ["a"]);
    assert!(matches!(retry(ledger, "a").await, Retried::Leased(_)));
}

/// Rule 101: an unknown key becomes a pending item at the version that was looked up.
pub async fn a_record_without_an_item_is_requested(ledger: &dyn LedgerUnderTest) {
    let nobody = request(ledger, "a", 5, ItemKind::Delete).await;
    assert_eq!(nobody, Retried::Unknown, "the scope is not known");
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Certify(at(9))]).await;
    let before = certificate(ledger).await;
    ledger.advance(MOMENT);
    assert_eq!(request(ledger, "a", 5, ItemKind::Delete).await, Retried::Pending);
    let then = now(ledger).await;
    let found = item(ledger, "a").await.expect("an item");
    assert_eq!((found.version, found.kind), (Version::new(5), ItemKind::Delete));
    assert_eq!((found.state, found.attempts), (ItemState::Pending, 0));
    assert_eq!((found.code, found.due_at, found.changed_at), (Code::REQUESTED, then, then));
    let counted = Certificate { unsettled: 1, changed_at: then, ..before };
    assert_eq!(certificate(ledger).await, counted);
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::RunVersion));
}

/// Rule 101: a pending delivery of an equal or newer version is left alone; a parked one is tried.
pub async fn a_request_leaves_a_newer_delivery_alone(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("a", 5), parked("b", 5), parked("c", 5)]).await;
    let before = item(ledger, "a").await;
    for version in [4, 5] {
        assert_eq!(request(ledger, "a", version, ItemKind::Delete).await, Retried::Unchanged);
    }
    assert_eq!(item(ledger, "a").await, before);
    assert_eq!(run(ledger).await.version, owner.guard.run_version);
    assert_eq!(request(ledger, "a", 6, ItemKind::Delete).await, Retried::Pending);
    let found = item(ledger, "a").await.expect("an item");
    assert_eq!((found.version, found.kind), (Version::new(6), ItemKind::Delete));
    assert_eq!(request(ledger, "b", 5, ItemKind::Delete).await, Retried::Pending);
    let found = item(ledger, "b").await.expect("an item");
    assert_eq!((found.version, found.kind), (Version::new(5), ItemKind::Delete));
    assert_eq!(request(ledger, "c", 4, ItemKind::Delete).await, Retried::Pending);
    let found = item(ledger, "c").await.expect("an item");
    assert_eq!((found.version, found.kind), (Version::new(5), ItemKind::Upsert), "it is newer");
}
