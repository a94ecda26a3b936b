//! Rules of certificates, history and the pulse.

use super::*;
use truekeep_core::certificate::{State, Tally};
use truekeep_core::limits::{HISTORY_KEPT, HISTORY_PRUNED_MAX};
use truekeep_core::ports::{Event, Pulse};

fn moment(version: u64) -> Option<Moment> {
    Some(Moment::at(Version::new(version)))
}

/// C4: a scope is known from its first run on; opening a run vouches for nothing, beginning neither.
pub async fn a_certificate_begins_as_never(ledger: &dyn LedgerUnderTest) {
    ledger.ledger().announce(&announcement(None, "one")).await.expect("announced");
    assert_eq!(ledger.archive().certificate(&scope()).await.expect("an answer"), None);
    ledger.ledger().open_run(&new_run("run-1", "first")).await.expect("opened");
    let never = Certificate::never(RulesNumber::new(1), now(ledger).await);
    assert_eq!(certificate(ledger).await, never);
    let mut owner = Owner::take_over(ledger, "owner").await;
    owner.land(Vec::new()).await;
    assert_eq!(certificate(ledger).await, never);
    owner.land(vec![LedgerWrite::Certify(Claim::Begun)]).await;
    assert_eq!(certificate(ledger).await.state, State::Running);
}

/// Rule 42 and C2: with an item pending, leased or in retry the moment stays where it was.
pub async fn a_moment_never_passes_an_unsettled_item(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("k", 2), LedgerWrite::Certify(at(9))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.moment, found.unsettled), (State::Running, None, 1));
    owner.land(vec![settle("k", 2), LedgerWrite::Certify(at(9))]).await;
    assert_eq!(certificate(ledger).await.moment, moment(9));
    owner.land(vec![due("k", 10), LedgerWrite::Certify(at(12))]).await;
    owner.claim(1).await;
    owner.land(vec![LedgerWrite::Certify(at(13))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.moment), (State::Complete, moment(9)));
    owner.land(vec![parked("k", 10)]).await;
    ledger.items().retry(&scope(), &Key::new("k")).await.expect("an answer");
    owner.guard.run_version = run(ledger).await.version;
    owner.land(vec![LedgerWrite::Certify(at(14))]).await;
    assert_eq!(certificate(ledger).await.moment, moment(9));
    owner.land(vec![settle("k", 11), LedgerWrite::Certify(at(14))]).await;
    assert_eq!(certificate(ledger).await.moment, moment(14));
}

/// Rule 42: a record that is parked in the same commit makes the claim partial, not complete.
pub async fn a_parked_item_makes_partial(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("k", 2), LedgerWrite::Certify(at(9))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.moment, found.parked), (State::Partial, moment(9), 1));
    owner.land(vec![settle("k", 2), LedgerWrite::Certify(at(9))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.parked), (State::Complete, 0));
}

/// C3: under the same rules a later claim of less does not take back what was vouched for.
pub async fn a_moment_never_goes_down(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Certify(at(9))]).await;
    let before = certificate(ledger).await;
    ledger.advance(MOMENT);
    owner.land(vec![LedgerWrite::Certify(at(4))]).await;
    assert_eq!(certificate(ledger).await, before, "nor does it count as a change");
}

/// Rules 113 and 87: what broke is stale with its code at the last good moment; only a claim up to
/// a moment mends it.
pub async fn what_broke_is_stale_at_its_last_moment(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Certify(at(9))]).await;
    let broken = LedgerWrite::Certify(Claim::Broken(Code::CAPTURE_CHANGED));
    owner.land(vec![broken, LedgerWrite::Certify(Claim::Begun)]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.moment), (State::Stale, moment(9)));
    assert_eq!(found.code, Some(Code::CAPTURE_CHANGED));
    owner.land(vec![LedgerWrite::Certify(at(11))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.moment, found.code), (State::Complete, moment(11), None));
}

/// Rule 120: the newest first, at most as many as asked for; what is older than it is kept for goes
/// as new events come, in bounded steps, and nothing younger does.
pub async fn history_is_newest_first_and_pruned(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let event =
        |n: u32| LedgerWrite::Record(Event { code: Code::UNEXPECTED, text: format!("event {n}") });
    let old = HISTORY_PRUNED_MAX + 20;
    owner.land((0..old).map(event).collect()).await;
    ledger.advance(HISTORY_KEPT);
    let token = owner.guard.token.clone();
    ledger.leases().release(&scope(), &token).await.expect("an answer");
    let mut owner = Owner::take_over(ledger, "later").await;
    owner.land(vec![event(old)]).await;
    let history = async || {
        let events = ledger.archive().history(&scope(), 1_000).await.expect("an answer");
        events.into_iter().map(|(_, event)| event.text).collect::<Vec<_>>()
    };
    let expected: Vec<String> = (0..=old).rev().map(|n| format!("event {n}")).collect();
    assert_eq!(history().await, expected, "none is too old");
    ledger.advance(MOMENT);
    owner.land(vec![event(old + 1)]).await;
    let expected: Vec<String> =
        (HISTORY_PRUNED_MAX..=old + 1).rev().map(|n| format!("event {n}")).collect();
    assert_eq!(history().await, expected, "the oldest went");
    owner.land(vec![event(old + 2)]).await;
    let expected: Vec<String> = (old..=old + 2).rev().map(|n| format!("event {n}")).collect();
    assert_eq!(history().await, expected);
    let newest = ledger.archive().history(&scope(), 1).await.expect("an answer");
    assert_eq!(newest.len(), 1);
    assert_eq!(newest[0].0, now(ledger).await);
}

/// Rule 70: an idle scope sees the version, the rules, the items and when the next is due.
pub async fn the_pulse_says_what_an_idle_scope_needs(ledger: &dyn LedgerUnderTest) {
    let pulse = async || ledger.ledger().pulse(&scope(), ProcedureKind::Follow).await.expect("one");
    assert_eq!(pulse().await, None);
    let mut owner = Owner::begin(ledger).await;
    let idle = Pulse {
        run_version: RunVersion::new(0),
        rules: RulesNumber::new(1),
        paused: false,
        tally: Tally::default(),
        next_due: None,
        now: now(ledger).await,
    };
    assert_eq!(pulse().await, Some(idle));
    let items = vec![retry_item("a", 1, 2 * MOMENT), retry_item("b", 1, TTL), new_item("c", 1)];
    owner.land(vec![LedgerWrite::Enqueue(items)]).await;
    let busy = Pulse {
        run_version: RunVersion::new(1),
        tally: Tally { unsettled: 2, parked: 1 },
        next_due: Some(idle.now.plus(2 * MOMENT)),
        ..idle
    };
    assert_eq!(pulse().await, Some(busy));
    ledger.advance(2 * MOMENT);
    owner.claim(1).await;
    let claimed = Pulse { now: now(ledger).await, ..busy };
    assert_eq!(pulse().await, Some(claimed), "what is left leased is due");
    ledger.ledger().announce(&announcement(Some(1), "two")).await.expect("announced");
    ledger.items().retry(&scope(), &Key::new("c")).await.expect("an answer");
    let wished = Pulse {
        run_version: RunVersion::new(2),
        rules: RulesNumber::new(2),
        tally: Tally { unsettled: 3, parked: 0 },
        ..claimed
    };
    assert_eq!(pulse().await, Some(wished));
}
