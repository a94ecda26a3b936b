//! Rules of runs and of announcements.

use super::*;
use truekeep_core::certificate::State;
use truekeep_core::ports::PipelineRecord;

fn in_force(answer: Announced) -> PipelineRecord {
    match answer {
        Announced::InForce(record) => record,
        Announced::Outpaced(found) => panic!("outpaced by {found:?}"),
    }
}

async fn announce(ledger: &dyn LedgerUnderTest, replaces: Option<u64>, text: &str) -> Announced {
    ledger.ledger().announce(&announcement(replaces, text)).await.expect("an answer")
}

/// A ledger is drawn once and says the same ever after.
pub async fn the_ledger_keeps_its_identity(ledger: &dyn LedgerUnderTest) {
    let first = ledger.ledger().identity().await.expect("an identity");
    announce(ledger, None, "one").await;
    assert_eq!(ledger.ledger().identity().await.expect("an identity"), first);
}

/// Rule 18: opened twice with one key, also at once, it is one run; an alive lease of somebody else
/// changes nothing.
pub async fn opening_twice_with_one_key_is_one_run(ledger: &dyn LedgerUnderTest) {
    announce(ledger, None, "one").await;
    acquired(ledger, "somebody").await;
    let mut tries = Vec::new();
    for n in 0..8 {
        let ledger = ledger.ledger();
        let new = new_run(&format!("run-{n}"), "first");
        tries.push(tokio::spawn(async move { ledger.open_run(&new).await }));
    }
    let mut runs = Vec::new();
    for attempt in tries {
        match attempt.await.expect("no panic").expect("an answer") {
            Opened::Run(run) => runs.push(run),
            Opened::Conflict(run) => panic!("a conflict with {run:?}"),
        }
    }
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    assert_eq!(run(ledger).await, runs[0]);
    assert_eq!((runs[0].version, &runs[0].token), (RunVersion::new(0), &None));
    assert_eq!(runs[0].phase, new_run("x", "x").phase);
}

/// Rule 19: a failed run is found as it is, without a hidden retry; another key is a conflict.
pub async fn a_failed_run_comes_back_unchanged_and_blocks_another(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let state = RunState::Failed(Code::SINK_REFUSED);
    let commit = Commit { state, ..owner.prepared(Vec::new()) };
    owner.send(&commit).await;
    let failed = run(ledger).await;
    assert_eq!(failed.state, RunState::Failed(Code::SINK_REFUSED));
    let again = ledger.ledger().open_run(&new_run("run-2", "first")).await;
    assert_eq!(again.expect("an answer"), Opened::Run(failed.clone()));
    let other = ledger.ledger().open_run(&new_run("run-3", "second")).await;
    assert_eq!(other.expect("an answer"), Opened::Conflict(failed.clone()));
    assert_eq!(run(ledger).await, failed);
}

/// The first rules have number 1, those that replace n have n + 1, and a pipeline keeps its life.
pub async fn rules_are_numbered_from_one_on(ledger: &dyn LedgerUnderTest) {
    let then = now(ledger).await;
    let first = in_force(announce(ledger, None, "one").await);
    assert_eq!(first.rules.number, RulesNumber::new(1));
    assert_eq!((first.rules.text.as_str(), first.rules.announced_at), ("one", then));
    ledger.advance(MOMENT);
    let life = Incarnation::parse("life-2").expect("a token");
    let new = Announcement { incarnation: life, ..announcement(Some(1), "two") };
    let second = in_force(ledger.ledger().announce(&new).await.expect("an answer"));
    assert_eq!(second.rules.number, RulesNumber::new(2));
    assert_eq!(second.rules.fingerprint, new.fingerprint);
    assert_eq!(second.rules.announced_at, then.plus(MOMENT));
    assert_eq!(second.incarnation, first.incarnation);
    let found = ledger.ledger().pipeline(&pipeline()).await.expect("an answer");
    assert_eq!(found.as_ref(), Some(&second));
    for name in ["zebras", "apples"] {
        let name = PipelineName::parse(name).expect("a name");
        let new = Announcement { pipeline: name, ..announcement(None, "one") };
        ledger.ledger().announce(&new).await.expect("an answer");
    }
    let all = ledger.archive().pipelines().await.expect("an answer");
    let names: Vec<&str> = all.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["apples", "cities", "zebras"]);
    assert_eq!(all[1], second);
}

/// Of operators who announce at once one succeeds, and the others are told what is in force.
pub async fn of_announcements_at_once_exactly_one_is_in_force(ledger: &dyn LedgerUnderTest) {
    for replaces in [None, Some(1), Some(2)] {
        let mut tries = Vec::new();
        for n in 0..8 {
            let ledger = ledger.ledger();
            let new = announcement(replaces, &format!("text-{n}"));
            tries.push(tokio::spawn(async move { ledger.announce(&new).await }));
        }
        let (mut records, mut outpaced) = (Vec::new(), 0);
        for attempt in tries {
            match attempt.await.expect("no panic").expect("an answer") {
                Announced::InForce(record) => records.push(record),
                Announced::Outpaced(found) => {
                    assert!(found.is_some());
                    outpaced += 1;
                }
            }
        }
        assert_eq!((records.len(), outpaced), (1, 7));
        let found = ledger.ledger().pipeline(&pipeline()).await.expect("an answer");
        assert_eq!(found, records.pop());
    }
}

/// A repeat after a lost answer is outpaced by itself; so is whoever looked at older rules.
pub async fn a_repeated_announcement_finds_what_it_did(ledger: &dyn LedgerUnderTest) {
    assert_eq!(announce(ledger, Some(1), "one").await, Announced::Outpaced(None));
    let first = in_force(announce(ledger, None, "one").await);
    assert_eq!(announce(ledger, None, "one").await, Announced::Outpaced(Some(first)));
    let second = in_force(announce(ledger, Some(1), "two").await);
    for replaces in [None, Some(1), Some(3)] {
        let answer = announce(ledger, replaces, "three").await;
        assert_eq!(answer, Announced::Outpaced(Some(second.clone())));
    }
}

/// Rules 40, 41 and 57: what was vouched for under old rules is stale from the announcement on, a
/// worker of the old rules writes nothing more, and the run works for a new epoch.
pub async fn new_rules_make_certificates_stale_and_old_writers_lose(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    in_force(announce(ledger, Some(1), "two").await);
    assert_eq!(certificate(ledger).await.state, State::Never, "there was nothing to lose");
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::Rules));
    owner.guard.rules = RulesNumber::new(2);
    owner.land(vec![LedgerWrite::Certify(at(5))]).await;
    let before = certificate(ledger).await;
    assert_eq!((before.state, before.rules), (State::Complete, RulesNumber::new(2)));
    let epoch = run(ledger).await.epoch;
    ledger.advance(MOMENT);
    in_force(announce(ledger, Some(2), "three").await);
    let stale = Certificate {
        state: State::Stale,
        code: Some(Code::RULES_CHANGED),
        changed_at: now(ledger).await,
        ..before
    };
    assert_eq!(certificate(ledger).await, stale);
    assert!(run(ledger).await.epoch > epoch);
    let certify = vec![LedgerWrite::Certify(at(9))];
    assert_eq!(owner.commit(certify.clone()).await, Committed::Lost(Lost::Rules));
    assert_eq!(certificate(ledger).await, stale);
    owner.guard.rules = RulesNumber::new(3);
    owner.land(certify).await;
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.rules), (State::Complete, RulesNumber::new(3)));
}
