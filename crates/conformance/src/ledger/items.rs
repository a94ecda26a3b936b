//! Rules of items: which replaces which, who is claimed when, how they are listed.

use super::*;
use truekeep_core::ports::{ItemCursor, ItemFilter, ItemState};

/// Rules 26 and 27, X33: a greater version stays, whatever its state; an equal or older one makes
/// way, also if it is parked.
pub async fn a_newer_item_is_never_replaced_by_an_older(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("k", 5)]).await;
    let newer = item(ledger, "k").await;
    ledger.advance(MOMENT);
    owner.land(vec![due("k", 4)]).await;
    assert_eq!(item(ledger, "k").await, newer);
    let replacement = NewItem {
        attempts: 2,
        kind: ItemKind::Delete,
        code: Code::SINK_UNAVAILABLE,
        reason: "another".to_owned(),
        ..retry_item("k", 5, TTL)
    };
    owner.land(vec![LedgerWrite::Enqueue(vec![replacement.clone()])]).await;
    let found = item(ledger, "k").await.expect("an item");
    let then = now(ledger).await;
    let expected = Item {
        scope: scope(),
        key: replacement.key,
        version: replacement.version,
        kind: replacement.kind,
        state: ItemState::Retry,
        attempts: replacement.attempts,
        due_at: then.plus(TTL),
        code: replacement.code,
        reason: replacement.reason,
        changed_at: then,
    };
    assert_eq!(found, expected);
    owner.land(vec![parked("k", 6)]).await;
    let found = item(ledger, "k").await.expect("an item");
    assert_eq!((found.version, found.state), (Version::new(6), ItemState::Parked));
}

/// Rule 106: a delivery settles what is not newer than it, in any state, and nothing else.
pub async fn settling_removes_what_is_at_or_below_its_version(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 5), due("b", 5), parked("c", 5), due("d", 5)]).await;
    owner.claim(10).await;
    let done = ["a", "b", "c", "absent"].map(|key| Settle {
        key: Key::new(key),
        version: Version::new(if key == "c" { 4 } else { 5 }),
    });
    let committed = owner.commit(vec![LedgerWrite::Settle(done.to_vec())]).await;
    let Committed::Landed(_, tally) = committed else { panic!("{committed:?}") };
    assert_eq!((tally.unsettled, tally.parked), (1, 1));
    assert_eq!(item(ledger, "a").await, None);
    assert_eq!(item(ledger, "b").await, None);
    assert!(item(ledger, "c").await.is_some() && item(ledger, "d").await.is_some());
}

/// Rules 2, 7 and 93: the oldest due first, then by key; what is not due or parked never; each
/// claim counts an attempt.
pub async fn items_are_claimed_oldest_due_first_and_only_when_due(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let second = Duration::from_secs(1);
    let items = vec![
        retry_item("b", 1, second),
        retry_item("a", 1, second),
        retry_item("z", 1, Duration::ZERO),
        retry_item("later", 1, 3 * second),
        new_item("parked", 1),
    ];
    owner.land(vec![LedgerWrite::Enqueue(items)]).await;
    ledger.advance(second - MOMENT);
    let claimed = owner.try_claim(10).await.expect("the guard holds");
    assert_eq!(claimed.len(), 1, "the others are not due");
    let z = &claimed[0];
    assert_eq!((z.key.as_str(), z.state, z.attempts), ("z", ItemState::Leased, 2));
    assert_eq!(z.changed_at, now(ledger).await);
    assert_eq!(item(ledger, "z").await.as_ref(), Some(z));
    owner.land(vec![due("z", 1)]).await;
    ledger.advance(MOMENT);
    let version = owner.guard.run_version;
    assert_eq!(owner.claim(2).await, ["z", "a"], "at most as many as asked for");
    assert_eq!(run(ledger).await.version, version, "a claim does not move the run");
    owner.land(vec![settle("z", 1), settle("a", 1)]).await;
    assert_eq!(owner.claim(2).await, ["b"]);
    owner.land(vec![settle("b", 1)]).await;
    assert_eq!(owner.claim(2).await, Vec::<String>::new());
}

/// X28: when the clock went back, an item does not wait for as long as the clock was ahead.
pub async fn a_clock_that_went_back_makes_items_due(ledger: &dyn LedgerUnderTest) {
    let ahead = 1_000 * TTL;
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Enqueue(vec![retry_item("k", 1, TTL)])]).await;
    ledger.turn_back(ahead);
    let owner = Owner::take_over(ledger, "later").await;
    let pulse = ledger.ledger().pulse(&scope(), ProcedureKind::Follow).await.expect("an answer");
    assert_eq!(pulse.expect("a run").next_due, Some(now(ledger).await));
    assert_eq!(owner.claim(1).await, ["k"]);
}

/// Rule 4: a claim is a write like any other; a refused one leaves the items alone.
pub async fn a_claim_is_guarded(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("k", 1)]).await;
    let before = item(ledger, "k").await;
    ledger.advance(TTL);
    assert_eq!(owner.try_claim(1).await, Err(Lost::Lease));
    assert_eq!(item(ledger, "k").await, before);
    let rival = Owner::take_over(ledger, "rival").await;
    assert_eq!(rival.claim(1).await, ["k"]);
}

/// Rule 95 and F3: after a death the claim's items come one at a time, at once, each with its
/// attempts, before anything else; what was settled between is not among them.
pub async fn what_a_claim_left_leased_is_claimed_alone(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let items = ["a", "b", "c"].map(|key| retry_item(key, 1, Duration::ZERO));
    owner.land(vec![LedgerWrite::Enqueue(items.to_vec())]).await;
    assert_eq!(owner.claim(10).await, ["a", "b", "c"]);
    ledger.advance(TTL);
    let mut rival = Owner::take_over(ledger, "rival").await;
    rival.land(vec![due("fresh", 1)]).await;
    let alone = rival.try_claim(10).await.expect("the guard holds");
    assert_eq!(alone.len(), 1);
    assert_eq!((alone[0].key.as_str(), alone[0].attempts), ("a", 3));
    // It kills this one too, without a takeover: the same lease claims again.
    let alone = rival.try_claim(10).await.expect("the guard holds");
    assert_eq!((alone[0].key.as_str(), alone[0].attempts), ("a", 4));
    rival.land(vec![parked("a", 1)]).await;
    for key in ["b", "c"] {
        assert_eq!(rival.claim(10).await, [key]);
        rival.land(vec![settle(key, 1)]).await;
    }
    assert_eq!(rival.claim(10).await, ["fresh"], "its neighbours were not held up");
}

/// Rule 63: what came while the older one was being tried outlives the end of that try.
pub async fn a_newer_item_survives_the_end_of_an_older_claim(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("done", 1), due("failed", 1)]).await;
    assert_eq!(owner.claim(10).await, ["done", "failed"]);
    owner.land(vec![due("done", 2), due("failed", 2)]).await;
    owner.land(vec![settle("done", 1), parked("failed", 1)]).await;
    for key in ["done", "failed"] {
        let found = item(ledger, key).await.expect("it is there");
        assert_eq!((found.version, found.state), (Version::new(2), ItemState::Retry));
    }
    assert_eq!(owner.claim(10).await, ["done", "failed"], "they are not left over");
}

/// Any text is a key and comes back as it was: empty, with quotes, NUL, any script, either
/// normal form.
pub async fn any_text_is_an_items_key(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let keys =
        ["", " ", "a", "A", "a ", "a\0", "a\0b", "\"[1,\\\"x\\\"]\"", "e\u{301}", "\u{e9}", "🦀"];
    let items = keys.map(|key| retry_item(key, 1, Duration::ZERO)).to_vec();
    owner.land(vec![LedgerWrite::Enqueue(items)]).await;
    let mut expected = keys.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(owner.claim(100).await, expected);
    for key in keys {
        assert_eq!(item(ledger, key).await.map(|item| item.key), Some(Key::new(key)));
    }
    let done = keys.map(|key| Settle { key: Key::new(key), version: Version::new(1) });
    owner.land(vec![LedgerWrite::Settle(done[..6].to_vec())]).await;
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(item(ledger, key).await.is_some(), index >= 6, "{key:?}");
    }
}

/// Rule 102: pages are bounded, in byte order, each after the last, by state if wanted.
pub async fn lists_are_bounded_and_in_byte_order(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let keys = ["", "B", "a", "a\u{308}", "b", "ä", "𝄞"];
    let items = keys.iter().rev().map(|key| match *key {
        "a" | "b" => new_item(key, 1),
        key => retry_item(key, 1, Duration::ZERO),
    });
    owner.land(vec![LedgerWrite::Enqueue(items.collect())]).await;
    let list = async |filter, after: Option<&str>, limit| {
        let after = after.map(|key| ItemCursor(Key::new(key)));
        let items = ledger.items().list(&scope(), filter, after, limit).await.expect("a page");
        items.into_iter().map(|item| item.key.to_string()).collect::<Vec<_>>()
    };
    let mut sorted = keys;
    sorted.sort_unstable();
    let (mut all, mut after) = (Vec::new(), None);
    for size in [3, 3, 1, 0] {
        let page = list(ItemFilter::All, after.as_deref(), 3).await;
        assert_eq!(page.len(), size);
        after = page.last().cloned().or(after);
        all.extend(page);
    }
    assert_eq!(all, sorted);
    assert_eq!(list(ItemFilter::Parked, None, 10).await, ["a", "b"]);
    assert_eq!(list(ItemFilter::Parked, Some("a"), 10).await, ["b"]);
    let unsettled: Vec<&str> = sorted.into_iter().filter(|k| !["a", "b"].contains(k)).collect();
    assert_eq!(list(ItemFilter::Unsettled, None, 10).await, unsettled);
    assert_eq!(list(ItemFilter::All, Some("\u{10ffff}"), 10).await, Vec::<String>::new());
}
