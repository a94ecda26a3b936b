//! The rules of a checkpoint, over a ledger that is told what to answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use truekeep_core::certificate::Tally;
use truekeep_core::guard::Lost;
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Clock, Consumer, ItemKind, ItemState, MockClock, MockEntropy, MockItems, MockLeases,
    MockLedger, ProcedureKind,
};
use truekeep_core::{
    CommitToken, Fence, HolderId, Incarnation, Key, LeaseToken, LedgerId, PipelineName,
    RulesNumber, RunId, RunVersion, ScopeId, Timestamp, Version,
};

use super::*;
use crate::keeper::Keeper;
use crate::pipeline::Settings;
use crate::scope::Batches;
use truekeep_core::follow::SourceWentBack;

type Answer = Result<Committed, FailureClass>;

/// Ports whose ledger gives these answers; what it is asked and how long is waited in between.
struct Asked {
    ports: Ports,
    commits: Arc<Mutex<Vec<Commit>>>,
    waits: Arc<Mutex<Vec<Duration>>>,
}

impl Asked {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        let commits: Arc<Mutex<Vec<Commit>>> = Arc::default();
        let waits: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let mut ledger = MockLedger::new();
        let seen = Arc::clone(&commits);
        ledger.expect_commit().returning(move |commit| {
            seen.lock().expect("sound").push(commit.clone());
            answers.pop_front().expect("asked no further").map_err(|class| {
                PortError::new("commit a checkpoint", class, Code::LEDGER_UNAVAILABLE)
            })
        });
        let mut clock = MockClock::new();
        let waited = Arc::clone(&waits);
        clock.expect_sleep().returning(move |length| waited.lock().expect("sound").push(length));
        clock.expect_monotonic().return_const(Duration::ZERO);
        let mut entropy = MockEntropy::new();
        entropy.expect_draw().return_const(0.5);
        let mut tokens = 0;
        entropy.expect_commit_token().returning(move || {
            tokens += 1;
            CommitToken::parse(&format!("commit-{tokens}")).expect("valid")
        });
        let ports = Ports {
            ledger: Arc::new(ledger),
            leases: Arc::new(MockLeases::new()),
            items: Arc::new(MockItems::new()),
            clock: Arc::new(clock),
            spill: Arc::new(truekeep_adapter_memory::MemorySpill::new(0)),
            entropy: Arc::new(entropy),
        };
        Self { ports, commits, waits }
    }

    fn commits(&self) -> Vec<Commit> {
        self.commits.lock().expect("sound").clone()
    }
}

fn held(clock: Arc<dyn Clock>) -> Held {
    let token = LeaseToken::parse("lease").expect("valid");
    let holder = HolderId::parse("holder").expect("valid");
    let settings = Settings::default();
    let ttl = settings.lease_ttl;
    let leases = Arc::new(MockLeases::new());
    let keeper = Keeper::new(leases, clock, holder.clone(), ttl, settings.turn_max);
    let rules = RulesNumber::new(3);
    let consumer = Consumer {
        ledger: LedgerId::parse("ledger").expect("valid"),
        pipeline: Incarnation::parse("life").expect("valid"),
    };
    let expires_at = Timestamp::from_ms(30_000);
    Held {
        scope: ScopeId::whole(PipelineName::parse("cities").expect("valid")),
        procedure: ProcedureKind::Follow,
        grip: Arc::new(keeper).keep(token.clone(), Duration::ZERO),
        lease: Lease { holder, token, fence: Fence::new(5), expires_at },
        took_over: None,
        run: RunId::parse("run").expect("valid"),
        version: RunVersion::new(7),
        terms: settings.terms(rules, consumer, SourceWentBack::Halt),
        phase: Phase::START,
        health: RunHealth::default(),
        tally: Tally::default(),
        said: (Timestamp::from_ms(0), Duration::ZERO),
        reader: None,
        batches: Batches::default(),
        rows: 1_000,
        items_checked: Some(None),
        littered: false,
        unpruned: 0,
        claimed: Vec::new(),
        beside: None,
        untold: None,
        scanner: crate::reconcile::Scanner::default(),
        pass: None,
        awaited: std::collections::BTreeSet::new(),
        differing: None,
        feeds_turn: false,
    }
}

/// A checkpoint that changes the phase and the health.
fn checkpoint() -> Checkpoint {
    let halted = r#"{"phase":"halted","code":"SINK_OWNED","since":9,"before":null}"#;
    let step = Step { next: from_json(halted).expect("a phase"), writes: Vec::new() };
    let health = RunHealth { attempts: 2, ..RunHealth::default() };
    Checkpoint { step, health, delivered: 4 }
}

fn landed(version: u64) -> Answer {
    let tally = Tally { unsettled: 1, parked: 2 };
    Ok(Committed::Landed(RunVersion::new(version), tally))
}

/// What a commit may change of what is held.
fn beliefs(held: &Held) -> (RunVersion, Phase, RunHealth, Tally, Vec<Item>) {
    (held.version, held.phase.clone(), held.health.clone(), held.tally, held.claimed.clone())
}

#[tokio::test]
async fn an_unknown_outcome_repeats_the_very_same_commit_until_it_is_known_to_have_landed() {
    let unsure = [Err(FailureClass::Unknown), Err(FailureClass::Retry), Err(FailureClass::Unknown)];
    let asked = Asked::answering(unsure.into_iter().chain([landed(8)]));
    let mut held = held(asked.ports.clock.clone());
    let committed = held.commit(&asked.ports, checkpoint()).await.expect("settled");
    assert_eq!(committed, landed(8).ok());
    let commits = asked.commits();
    assert_eq!(commits.len(), 4);
    assert!(commits.iter().all(|commit| *commit == commits[0]), "one token, one content");
    assert_eq!(commits[0].guard.run_version, RunVersion::new(7));
    let Checkpoint { step, health, .. } = checkpoint();
    let tally = Tally { unsettled: 1, parked: 2 };
    assert_eq!(beliefs(&held), (RunVersion::new(8), step.next, health, tally, Vec::new()));
}

#[tokio::test]
async fn an_unknown_outcome_may_turn_out_to_be_lost() {
    let asked =
        Asked::answering([Err(FailureClass::Unknown), Ok(Committed::Lost(Lost::RunVersion))]);
    let mut held = held(asked.ports.clock.clone());
    let before = beliefs(&held);
    let committed = held.commit(&asked.ports, checkpoint()).await.expect("settled");
    assert_eq!(committed, Some(Committed::Lost(Lost::RunVersion)));
    assert_eq!(beliefs(&held), before);
}

#[tokio::test]
async fn a_lost_race_is_a_result_and_changes_no_belief() {
    for lost in [Lost::Lease, Lost::Fence, Lost::RunVersion, Lost::Rules, Lost::Run] {
        let asked = Asked::answering([Ok(Committed::Lost(lost))]);
        let mut held = held(asked.ports.clock.clone());
        let before = beliefs(&held);
        let committed = held.commit(&asked.ports, checkpoint()).await.expect("answered");
        assert_eq!(committed, Some(Committed::Lost(lost)));
        assert_eq!(beliefs(&held), before);
        assert_eq!(asked.commits().len(), 1);
    }
}

#[tokio::test]
async fn a_commit_that_cannot_succeed_is_not_repeated() {
    for class in [FailureClass::Terminal, FailureClass::Halted, FailureClass::Fenced] {
        let asked = Asked::answering([Err(class)]);
        let mut held = held(asked.ports.clock.clone());
        let before = beliefs(&held);
        let error = held.commit(&asked.ports, checkpoint()).await.expect_err("refused");
        assert_eq!(error.class, class);
        assert_eq!(beliefs(&held), before);
    }
}

#[tokio::test]
async fn nothing_that_changed_is_nothing_to_commit() {
    let asked = Asked::answering([]);
    let mut held = held(asked.ports.clock.clone());
    let step = Step { next: held.phase.clone(), writes: Vec::new() };
    let same = Checkpoint { step, health: held.health.clone(), delivered: 0 };
    assert_eq!(held.commit(&asked.ports, same).await.expect("nothing to do"), None);
}

#[tokio::test]
async fn a_new_commit_has_a_new_token_and_follows_the_one_before() {
    let asked = Asked::answering([landed(8), landed(9)]);
    let mut held = held(asked.ports.clock.clone());
    held.commit(&asked.ports, checkpoint()).await.expect("landed");
    let step = Step { next: Phase::START, writes: Vec::new() };
    let next = Checkpoint { step, ..checkpoint() };
    held.commit(&asked.ports, next).await.expect("landed");
    let commits = asked.commits();
    assert_ne!(commits[0].token, commits[1].token);
    assert_eq!(commits[1].guard.run_version, RunVersion::new(8));
}

#[tokio::test]
async fn an_outcome_is_asked_for_ever_more_seldom_and_never_more_than_two_seconds_apart() {
    let unsure = std::iter::repeat_n(Err(FailureClass::Unknown), 40);
    let asked = Asked::answering(unsure.chain([landed(8)]));
    let mut held = held(asked.ports.clock.clone());
    held.commit(&asked.ports, checkpoint()).await.expect("landed");
    let waits = asked.waits.lock().expect("sound").clone();
    assert_eq!(waits.len(), 40);
    assert!(waits.is_sorted() && waits[0] < waits[1]);
    assert_eq!(waits.last(), Some(&Duration::from_secs(2)));
}

/// Rule 95, X27.
#[tokio::test]
async fn claimed_items_of_which_nothing_is_known_are_given_back_uncounted() {
    let asked = Asked::answering([Ok(Committed::Lost(Lost::RunVersion)), landed(8)]);
    let mut held = held(asked.ports.clock.clone());
    let item = Item {
        scope: held.scope.clone(),
        key: Key::new("a"),
        version: Version::new(4),
        kind: ItemKind::Upsert,
        state: ItemState::Leased,
        attempts: 3,
        due_at: Timestamp::from_ms(1),
        code: Code::SINK_REFUSED,
        reason: "no room".into(),
        changed_at: Timestamp::from_ms(2),
    };
    held.claimed = vec![item];
    held.commit(&asked.ports, checkpoint()).await.expect("answered");
    assert_eq!(held.claimed.len(), 1, "a lost race gives nothing back");
    held.commit(&asked.ports, checkpoint()).await.expect("answered");
    assert_eq!(held.claimed, []);
    assert_eq!(held.items_checked, None, "they are due again");
    let back = NewItem {
        key: Key::new("a"),
        version: Version::new(4),
        kind: ItemKind::Upsert,
        attempts: 2,
        retry_in: Some(Duration::ZERO),
        code: Code::SINK_REFUSED,
        reason: "no room".into(),
    };
    assert_eq!(asked.commits()[1].writes, [LedgerWrite::Enqueue(vec![back])]);
}

#[test]
fn a_stored_phase_that_cannot_be_read_is_no_phase() {
    for text in ["", "{}", r#"{"phase":"sleeping"}"#] {
        let error = from_json::<Phase>(text).expect_err("no phase");
        assert_eq!(error.code, Code::LEDGER_VERSION);
    }
    let text = to_json(&Phase::START).expect("text");
    assert_eq!(from_json::<Phase>(&text).expect("a phase"), Phase::START);
}
