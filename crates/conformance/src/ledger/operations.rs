//! Rules of what operators decide about pipelines, runs and items.

use super::*;
use truekeep_core::certificate::State;
use truekeep_core::ports::{
    Cancelled, Discarded, ItemFilter, ItemState, PipelineState, Retried, Steer, Steered, Steering,
};
use truekeep_core::{LeaseToken, Revision};

async fn steer(ledger: &dyn LedgerUnderTest, to: Steering, seen: u64) -> Steered {
    let by = format!("by somebody who saw {seen}");
    let steer = Steer { pipeline: pipeline(), to, seen: Revision::new(seen), by };
    ledger.operations().steer(&steer).await.expect("an answer")
}

async fn try_to_take(ledger: &dyn LedgerUnderTest, token: &LeaseToken) -> Acquired {
    let answer = ledger.leases().acquire(&scope(), &holder("any"), token, TTL).await;
    answer.expect("an answer")
}

/// Rule 107: while it is paused the lease is given to nobody, and the code says why; a scope that
/// has it sees the pause.
pub async fn nobody_takes_the_lease_of_a_paused_pipeline(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let token = owner.guard.token.clone();
    assert!(matches!(steer(ledger, Steering::Pause, 0).await, Steered::Done(_)));
    let pulse = ledger.ledger().pulse(&scope(), ProcedureKind::Follow).await.expect("an answer");
    assert!(pulse.expect("a run").paused);
    owner.land(vec![parked("k", 1)]).await;
    ledger.leases().release(&scope(), &token).await.expect("an answer");
    let fresh = lease_token("fresh");
    let closed = Acquired::Closed(Code::PIPELINE_PAUSED);
    assert_eq!(try_to_take(ledger, &fresh).await, closed);
    ledger.advance(10 * TTL);
    assert_eq!(try_to_take(ledger, &fresh).await, closed, "time does not resume it");
    assert!(matches!(steer(ledger, Steering::Resume, 1).await, Steered::Done(_)));
    assert!(matches!(try_to_take(ledger, &fresh).await, Acquired::Ours { .. }));
    let pulse = ledger.ledger().pulse(&scope(), ProcedureKind::Follow).await.expect("an answer");
    assert!(!pulse.expect("a run").paused);
}

/// Rule 107: the certificate, the run, the items and the rules stay; only the history grows.
pub async fn a_pause_leaves_everything_as_it_is(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("k", 2), LedgerWrite::Certify(at(9))]).await;
    let (run_before, before) = (run(ledger).await, certificate(ledger).await);
    steer(ledger, Steering::Pause, 0).await;
    let found = record(ledger).await;
    assert_eq!((found.state, found.revision), (PipelineState::Paused, Revision::new(1)));
    assert_eq!(run(ledger).await, run_before);
    assert_eq!(certificate(ledger).await, before);
    assert!(item(ledger, "k").await.is_some());
    let announced = ledger.ledger().announce(&announcement(Some(1), "two")).await;
    assert!(matches!(announced, Ok(Announced::InForce(_))), "new rules may come meanwhile");
    assert_eq!(record(ledger).await.state, PipelineState::Paused, "and resume nothing");
    steer(ledger, Steering::Resume, 1).await;
    let who = |code, seen: u64| (code, format!("by somebody who saw {seen}"));
    let expected = [who(Code::PIPELINE_RESUMED, 1), who(Code::PIPELINE_PAUSED, 0)];
    assert_eq!(told(ledger).await, expected);
}

/// Rule 98: of two who looked at the same one decides; the other is told, and nothing changes.
pub async fn of_two_who_decide_at_once_one_wins(ledger: &dyn LedgerUnderTest) {
    Owner::begin(ledger).await;
    steer(ledger, Steering::Pause, 0).await;
    let mut tries = Vec::new();
    for to in [Steering::Resume, Steering::Pause].into_iter().cycle().take(8) {
        let operations = ledger.operations();
        let by = format!("{to:?}");
        let steer = Steer { pipeline: pipeline(), to, seen: Revision::new(1), by };
        tries.push(tokio::spawn(async move { operations.steer(&steer).await }));
    }
    let mut done = 0;
    for attempt in tries {
        match attempt.await.expect("no panic").expect("an answer") {
            Steered::Done(record) => {
                done += 1;
                assert_eq!(record.revision, Revision::new(2));
            }
            Steered::Unchanged(_) | Steered::Outpaced(_) => {}
        }
    }
    assert_eq!(done, 1);
    let found = record(ledger).await;
    assert_eq!((found.state, found.revision), (PipelineState::Working, Revision::new(2)));
    assert_eq!(steer(ledger, Steering::Pause, 1).await, Steered::Outpaced(found.clone()));
    assert_eq!(record(ledger).await, found);
}

/// Rule 107: a repeat is no second decision, whatever it had seen; what is not known is refused.
pub async fn a_repeated_decision_changes_nothing(ledger: &dyn LedgerUnderTest) {
    let order =
        Steer { pipeline: pipeline(), to: Steering::Pause, seen: Revision::new(0), by: "x".into() };
    let error = ledger.operations().steer(&order).await.expect_err("nobody announced it");
    assert_eq!(error.code, Code::PIPELINE_UNKNOWN);
    Owner::begin(ledger).await;
    for seen in [0, 7] {
        let answer = steer(ledger, Steering::Resume, seen).await;
        assert!(matches!(answer, Steered::Unchanged(_)), "{answer:?}");
    }
    steer(ledger, Steering::Pause, 0).await;
    let before = seen(ledger).await;
    for seen in [0, 1] {
        let answer = steer(ledger, Steering::Pause, seen).await;
        assert!(matches!(answer, Steered::Unchanged(_)), "{answer:?}");
    }
    assert_eq!(seen(ledger).await, before);
}

fn new_reconcile(id: &str) -> NewRun {
    NewRun { procedure: ProcedureKind::Reconcile, ..new_run(id, id) }
}

async fn opened(ledger: &dyn LedgerUnderTest, new: &NewRun) -> Run {
    match ledger.ledger().open_run(new).await.expect("an answer") {
        Opened::Run(run) => run,
        Opened::Conflict(run) => panic!("a conflict with {run:?}"),
    }
}

async fn cancel(ledger: &dyn LedgerUnderTest, run: &Run) -> Cancelled {
    let answer = ledger.operations().cancel(&scope(), &run.id, "by somebody").await;
    answer.expect("an answer")
}

/// Rules 43, 99 and 107: the run is stopped, what its owner writes after that is refused, another
/// begins at once, and what ended before stays as it ended.
pub async fn a_cancelled_run_ends_and_another_may_begin(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let first = opened(ledger, &new_reconcile("reconcile-1")).await;
    let follow = (owner.run.clone(), owner.guard.clone());
    owner.run = first.id.clone();
    owner.guard.run_version = first.version;
    owner.land(vec![LedgerWrite::Certify(at(3))]).await;
    let Cancelled::Ended(ended) = cancel(ledger, &first).await else { panic!("it went on") };
    assert_eq!(ended.state, RunState::Stopped(Code::CANCELLED));
    assert_eq!(told(ledger).await, [(Code::CANCELLED, "by somebody".to_owned())]);
    let of_scope = async || {
        let newest = ledger.ledger().load(&scope(), ProcedureKind::Reconcile).await;
        newest.expect("an answer").expect("the newest run, though it ended")
    };
    assert_eq!(of_scope().await, ended);
    for version in [owner.guard.run_version, ended.version] {
        owner.guard.run_version = version;
        assert_eq!(owner.commit(vec![parked("k", 1)]).await, Committed::Lost(Lost::Run));
    }
    assert_eq!(item(ledger, "k").await, None);
    let before = told(ledger).await;
    assert_eq!(cancel(ledger, &first).await, Cancelled::Over(ended.clone()), "a repeat");
    assert_eq!(told(ledger).await, before);
    let second = opened(ledger, &new_reconcile("reconcile-2")).await;
    assert_eq!(of_scope().await, second);
    assert_eq!(opened(ledger, &new_reconcile("reconcile-1")).await, ended, "its key finds it");
    (owner.run, owner.guard) = follow;
    owner.land(Vec::new()).await;
    let nobody = Run { id: RunId::parse("nobody").expect("a token"), ..second };
    assert_eq!(cancel(ledger, &nobody).await, Cancelled::Unknown);
}

/// Rule 104: what never ends is not cancelled, and the answer says that and not that a race was lost.
pub async fn what_follows_is_not_cancelled(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let before = seen(ledger).await;
    let follow = run(ledger).await;
    assert_eq!(cancel(ledger, &follow).await, Cancelled::Perpetual);
    assert_eq!(seen(ledger).await, before);
    owner.land(Vec::new()).await;
}

async fn discard(ledger: &dyn LedgerUnderTest, key: &str, version: u64) -> Discarded {
    let (key, version) = (Key::new(key), Version::new(version));
    let answer = ledger.operations().discard(&scope(), &key, version, "by somebody").await;
    answer.expect("an answer")
}

async fn keys(ledger: &dyn LedgerUnderTest, filter: ItemFilter) -> Vec<String> {
    let items = ledger.items().list(&scope(), filter, None, 100).await.expect("an answer");
    items.into_iter().map(|item| item.key.to_string()).collect()
}

/// Rule 107: who gave it up and what was wrong stay told; it counts as parked, so that nothing is
/// certified that the sink does not hold; it can still be tried.
pub async fn a_discarded_item_stays_parked_and_is_told_apart(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 2), parked("b", 2), LedgerWrite::Certify(at(9))]).await;
    let (before, version) = (certificate(ledger).await, run(ledger).await.version);
    ledger.advance(MOMENT);
    assert_eq!(discard(ledger, "a", 2).await, Discarded::GivenUp);
    let found = item(ledger, "a").await.expect("it stays");
    assert_eq!((found.state, &found.code), (ItemState::Parked, &Code::DISCARDED));
    assert_eq!(found.reason, "given up by somebody; SINK_REFUSED: a reason");
    assert_eq!(found.changed_at, now(ledger).await);
    assert_eq!(certificate(ledger).await, before, "it was partial and stays so");
    assert_eq!(run(ledger).await.version, version, "there is nothing to do");
    assert_eq!(keys(ledger, ItemFilter::Parked).await, ["b"]);
    assert_eq!(keys(ledger, ItemFilter::Discarded).await, ["a"]);
    assert_eq!(keys(ledger, ItemFilter::All).await, ["a", "b"]);
    let told = told(ledger).await;
    assert_eq!(told[0].0, Code::DISCARDED);
    assert_eq!(told[0].1, "a: given up by somebody; SINK_REFUSED: a reason");
    owner.land(vec![LedgerWrite::Certify(at(10))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.parked), (State::Partial, 2), "a claim does not complete it");
    owner.land(vec![settle("b", 2), LedgerWrite::Certify(at(11))]).await;
    assert_eq!(certificate(ledger).await.state, State::Partial, "nor is it forgotten");
    let retried = ledger.items().retry(&scope(), &Key::new("a")).await.expect("an answer");
    assert_eq!(retried, Retried::Pending);
    assert_eq!(keys(ledger, ItemFilter::Discarded).await, [""; 0]);
}

/// Rules 98 and 100: what is tried, or another version's, is left alone, and each answer says why.
pub async fn only_the_parked_item_that_was_seen_is_discarded(ledger: &dyn LedgerUnderTest) {
    assert_eq!(discard(ledger, "a", 1).await, Discarded::Unknown, "the scope is not known");
    let mut owner = Owner::begin(ledger).await;
    let later = LedgerWrite::Enqueue(vec![retry_item("later", 5, TTL)]);
    owner.land(vec![due("due", 5), later, parked("parked", 5)]).await;
    owner.claim(1).await;
    let until = ledger.leases().holder(&scope()).await.expect("an answer").0.expect("a lease");
    let before = seen(ledger).await;
    assert_eq!(discard(ledger, "none", 5).await, Discarded::Unknown);
    assert_eq!(discard(ledger, "due", 5).await, Discarded::Leased(until.expires_at));
    assert_eq!(discard(ledger, "later", 5).await, Discarded::Trying);
    for other in [4, 6] {
        assert_eq!(discard(ledger, "parked", other).await, Discarded::Newer(Version::new(5)));
    }
    assert_eq!(seen(ledger).await, before);
    assert_eq!(discard(ledger, "parked", 5).await, Discarded::GivenUp);
    let before = seen(ledger).await;
    assert_eq!(discard(ledger, "parked", 5).await, Discarded::Unchanged, "a repeat");
    assert_eq!(seen(ledger).await, before);
    ledger.advance(TTL);
    assert_eq!(discard(ledger, "due", 5).await, Discarded::Trying, "it is claimed next");
}

/// Rule 107: what was given up is one version of a record; a later one is tried, and is parked for
/// its own reason or settled.
pub async fn newer_data_takes_a_discarded_items_place(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 2), parked("b", 2)]).await;
    for key in ["a", "b"] {
        assert_eq!(discard(ledger, key, 2).await, Discarded::GivenUp);
    }
    owner.land(vec![parked("a", 3), settle("b", 3), LedgerWrite::Certify(at(3))]).await;
    assert_eq!(keys(ledger, ItemFilter::Parked).await, ["a"]);
    assert_eq!(item(ledger, "a").await.expect("parked anew").code, Code::SINK_REFUSED);
    assert_eq!(item(ledger, "b").await, None);
    owner.land(vec![settle("a", 3), LedgerWrite::Certify(at(4))]).await;
    assert_eq!(certificate(ledger).await.state, State::Complete);
}
