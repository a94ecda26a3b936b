//! Rules of commits: the guard, repeats, and what is written beside the phase.

use super::*;
use truekeep_core::Fence;
use truekeep_core::certificate::{State, Tally};
use truekeep_core::limits::ERROR_TEXT_BYTES_MAX;
use truekeep_core::ports::Event;

fn happened(text: &str) -> LedgerWrite {
    LedgerWrite::Record(Event { code: Code::UNEXPECTED, text: text.to_owned() })
}

/// Rules 28 and 62, and G1: one wrong belief is enough, whatever the others are.
pub async fn each_part_of_the_guard_is_compared(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(Vec::new()).await;
    let before = seen(ledger).await;
    let right = owner.guard.clone();
    let wrong = [
        (Guard { token: lease_token("other"), ..right.clone() }, Lost::Lease),
        (Guard { fence: right.fence.next(), ..right.clone() }, Lost::Fence),
        (Guard { fence: Fence::new(right.fence.get() - 1), ..right.clone() }, Lost::Fence),
        (Guard { run_version: right.run_version.next(), ..right.clone() }, Lost::RunVersion),
        (Guard { run_version: RunVersion::new(0), ..right.clone() }, Lost::RunVersion),
        (Guard { rules: right.rules.next(), ..right.clone() }, Lost::Rules),
        (Guard { rules: RulesNumber::new(0), ..right.clone() }, Lost::Rules),
    ];
    for (guard, lost) in wrong {
        owner.guard = guard;
        assert_eq!(owner.commit(vec![parked("k", 1)]).await, Committed::Lost(lost));
        assert_eq!(owner.try_claim(1).await, Err(lost));
    }
    owner.guard = right;
    let commit = owner.prepared(vec![parked("k", 1)]);
    let of_no_run = Commit { run: RunId::parse("run-2").expect("a token"), ..commit.clone() };
    assert_eq!(owner.send(&of_no_run).await, Committed::Lost(Lost::Run));
    assert_eq!(seen(ledger).await, before, "nothing changed");
    assert!(matches!(owner.send(&commit).await, Committed::Landed(..)), "the right one lands");
}

/// Rule 28: of two commits that stand on one version the second is refused.
pub async fn of_commits_at_one_version_exactly_one_lands(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let mut tries = Vec::new();
    for _ in 0..8 {
        let (commit, ledger) = (owner.prepared(vec![happened("it")]), ledger.ledger());
        tries.push(tokio::spawn(async move { ledger.commit(&commit).await }));
    }
    let mut landed = 0;
    for attempt in tries {
        match attempt.await.expect("no panic").expect("an answer") {
            Committed::Landed(..) => landed += 1,
            Committed::Lost(lost) => assert_eq!(lost, Lost::RunVersion),
        }
    }
    assert_eq!(landed, 1);
    assert_eq!(ledger.archive().history(&scope(), 10).await.expect("an answer").len(), 1);
}

/// Rule 6: a refused commit leaves the phase, the items, the certificate and the history alone.
pub async fn nothing_of_a_refused_commit_is_written(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("old", 1), LedgerWrite::Certify(at(1))]).await;
    let before = seen(ledger).await;
    ledger.advance(MOMENT);
    owner.guard.rules = owner.guard.rules.next();
    let writes = vec![
        settle("old", 1),
        parked("new", 2),
        LedgerWrite::Certify(at(2)),
        happened("something"),
    ];
    assert_eq!(owner.commit(writes).await, Committed::Lost(Lost::Rules));
    assert_eq!(seen(ledger).await, before);
}

/// Rules 83 and 26: the phase and everything beside it are there together, by the ledger's clock.
pub async fn a_commit_is_written_whole(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    ledger.advance(MOMENT);
    let writes = vec![parked("k", 7), LedgerWrite::Certify(at(9)), happened("something")];
    let health = RunHealth {
        attempts: 3,
        code: Some(Code::SINK_UNAVAILABLE),
        text: "down".to_owned(),
        due_at: Some(now(ledger).await.plus(TTL)),
    };
    let commit = Commit { health, delivered: 41, ..owner.prepared(writes) };
    let then = now(ledger).await;
    let tally = Tally { unsettled: 0, parked: 1 };
    assert_eq!(owner.send(&commit).await, Committed::Landed(RunVersion::new(1), tally));
    let run = run(ledger).await;
    assert_eq!(run.version, RunVersion::new(1));
    assert_eq!((run.phase, run.state, run.health), (commit.phase, commit.state, commit.health));
    assert_eq!((run.token, run.delivered), (Some(commit.token), 41));
    let certificate = certificate(ledger).await;
    assert_eq!((certificate.state, certificate.parked), (State::Partial, 1));
    assert_eq!(certificate.changed_at, then);
    let item = item(ledger, "k").await.expect("an item");
    assert_eq!((item.due_at, item.changed_at), (then, then));
    let history = ledger.archive().history(&scope(), 10).await.expect("an answer");
    assert_eq!(history[0].0, then);
    owner.land(Vec::new()).await;
    let run = super::run(ledger).await;
    assert_eq!((run.delivered, run.health), (42, RunHealth::default()));
}

/// Rule 26 and P3: after a lost answer the same commit is repeated; it happened once.
pub async fn a_repeated_commit_lands_once(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let commit = owner.prepared(vec![parked("k", 1), happened("it")]);
    let first = owner.send(&commit).await;
    assert!(matches!(first, Committed::Landed(..)));
    let before = seen(ledger).await;
    ledger.advance(MOMENT);
    for _ in 0..3 {
        assert_eq!(owner.send(&commit).await, first);
    }
    assert_eq!(seen(ledger).await, before);
    owner.land(Vec::new()).await;
    let stale = owner.send(&commit).await;
    assert_eq!(stale, Committed::Lost(Lost::RunVersion), "another commit came since");
}

/// What landed has landed: losing the lease or the rules afterwards does not undo it.
pub async fn a_repeated_commit_landed_though_the_lease_is_lost(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let commit = owner.prepared(Vec::new());
    let first = owner.send(&commit).await;
    ledger.ledger().announce(&announcement(Some(1), "two")).await.expect("announced");
    ledger.advance(TTL);
    assert_eq!(owner.send(&commit).await, first);
    acquired(ledger, "rival").await;
    assert_eq!(owner.send(&commit).await, first);
}

/// An operator's wish after a commit moves the run's version; the repeat names the version that the
/// commit made, so that its worker still notices the wish.
pub async fn a_repeated_commit_answers_its_own_version(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let commit = owner.prepared(vec![parked("k", 1)]);
    let Committed::Landed(made, _) = owner.send(&commit).await else { panic!("it lands") };
    ledger.items().retry(&scope(), &Key::new("k")).await.expect("an answer");
    let Committed::Landed(repeated, _) = owner.send(&commit).await else { panic!("it landed") };
    assert_eq!(repeated, made);
    let run = run(ledger).await;
    assert_eq!((run.version, run.token), (made.next(), None));
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::RunVersion));
}

/// Rule 84: the end is a commit like any other; a crash after it changes nothing, and what ended
/// well takes no commit any more.
pub async fn a_run_ends_once(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let writes = vec![LedgerWrite::Certify(at(3))];
    let commit = Commit { state: RunState::Succeeded, ..owner.prepared(writes) };
    let first = owner.send(&commit).await;
    assert!(matches!(first, Committed::Landed(..)));
    assert_eq!(owner.send(&commit).await, first);
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::Run));
    assert_eq!(owner.try_claim(1).await, Err(Lost::Run));
    assert_eq!(certificate(ledger).await.state, State::Complete);
    assert_eq!(run(ledger).await.state, RunState::Succeeded, "it is the newest, though ended");
    let pulse = ledger.ledger().pulse(&scope(), ProcedureKind::Follow).await;
    assert_eq!(pulse.expect("an answer"), None);
    let again = ledger.ledger().open_run(&new_run("run-2", "first")).await.expect("an answer");
    let Opened::Run(ended) = again else { panic!("its key finds it") };
    assert_eq!((&ended.id, &ended.state), (&commit.run, &RunState::Succeeded));
    let next = ledger.ledger().open_run(&new_run("run-2", "a second")).await.expect("an answer");
    let Opened::Run(next) = next else { panic!("nothing is open") };
    assert!(next.epoch > ended.epoch);
    let again = ledger.ledger().open_run(&new_run("run-3", "first")).await.expect("an answer");
    assert_eq!(again, Opened::Run(ended), "its key still finds it");
    let other = ledger.ledger().open_run(&new_run("run-3", "other")).await.expect("an answer");
    assert_eq!(other, Opened::Conflict(next));
}

/// A judgement counts the items as the writes before it left them.
pub async fn writes_are_done_in_their_order(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![LedgerWrite::Certify(at(1)), parked("a", 1)]).await;
    assert_eq!(certificate(ledger).await.state, State::Complete);
    owner.land(vec![parked("b", 1), LedgerWrite::Certify(at(2))]).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.parked), (State::Partial, 2));
    owner.land(vec![settle("a", 1), settle("b", 1), LedgerWrite::Certify(at(3))]).await;
    assert_eq!(certificate(ledger).await.state, State::Complete);
    let twice = vec![new_item("c", 1), new_item("c", 3), new_item("c", 2)];
    owner.land(vec![LedgerWrite::Enqueue(twice)]).await;
    assert_eq!(item(ledger, "c").await.map(|item| item.version), Some(Version::new(3)));
}

/// Rule 103: a text of a megabyte, of nothing, of control characters never hinders a commit.
pub async fn texts_of_any_length_are_stored_bounded(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    for text in ["é".repeat(1 << 19), String::new(), "\"\\\n\t\u{7f}".to_owned()] {
        let reason = NewItem { reason: text.clone(), ..new_item("k", 1) };
        let writes = vec![LedgerWrite::Enqueue(vec![reason]), happened(&text)];
        let health = RunHealth { text: text.clone(), ..RunHealth::default() };
        let commit = Commit { health, ..owner.prepared(writes) };
        assert!(matches!(owner.send(&commit).await, Committed::Landed(..)));
        let stored = [
            item(ledger, "k").await.expect("an item").reason,
            run(ledger).await.health.text,
            ledger.archive().history(&scope(), 1).await.expect("an answer")[0].1.text.clone(),
        ];
        for stored in stored {
            assert!(stored.len() <= ERROR_TEXT_BYTES_MAX);
            assert!(text.starts_with(&stored) && (stored == text || text.len() > stored.len()));
            assert_eq!(stored.is_empty(), text.is_empty());
        }
    }
}
