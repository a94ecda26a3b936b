//! Several processes on one file: connections of their own, which is all that tells them apart to
//! SQLite.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::guard::Guard;
use truekeep_core::limits::DURATION_MAX;
use truekeep_core::ports::{
    Acquired, Announcement, Commit, Committed, Event, ItemFilter, ItemKind, LedgerWrite, NewItem,
    NewRun, ProcedureKind, RunHealth, RunState,
};
use truekeep_core::{
    CommitToken, Fence, Fingerprint, HolderId, Incarnation, Key, LeaseToken, PipelineName,
    RulesNumber, RunId, RunVersion, ScopeId, Version,
};

use super::*;

const FOLLOW: ProcedureKind = ProcedureKind::Follow;
const ROUNDS: u32 = 60;

fn scope() -> ScopeId {
    ScopeId::whole(PipelineName::parse("cities").expect("a name"))
}

async fn process(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, BUSY).await.expect("opened")
}

/// A file with a pipeline and an open run, and the process that made it: while it lives no other
/// process is the last to close the file, which takes a lock.
async fn prepared() -> (TempDir, PathBuf, SqliteLedger) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let ledger = process(&path).await;
    let announcement = Announcement {
        pipeline: scope().pipeline().clone(),
        incarnation: Incarnation::parse("life").expect("a token"),
        fingerprint: Fingerprint::parse("hash").expect("a token"),
        text: "rules".to_owned(),
        replaces: None,
        above: truekeep_core::RulesNumber::default(),
        anew: false,
    };
    ledger.announce(&announcement).await.expect("announced");
    let run = NewRun {
        id: RunId::parse("run").expect("a token"),
        scope: scope(),
        procedure: FOLLOW,
        key: "key".to_owned(),
        phase: "0".to_owned(),
    };
    ledger.open_run(&run).await.expect("opened");
    (folder, path, ledger)
}

fn commit(guard: Guard, token: &str) -> Commit {
    let event = Event { code: Code::UNEXPECTED, text: guard.fence.to_string() };
    let item = NewItem {
        key: Key::new(token),
        version: Version::new(1),
        kind: ItemKind::Upsert,
        attempts: 0,
        retry_in: None,
        code: Code::UNEXPECTED,
        reason: String::new(),
    };
    Commit {
        run: RunId::parse("run").expect("a token"),
        scope: scope(),
        guard,
        token: CommitToken::parse(token).expect("a token"),
        phase: "1".to_owned(),
        state: RunState::Active,
        health: RunHealth::default(),
        delivered: 1,
        writes: vec![LedgerWrite::Record(event), LedgerWrite::Enqueue(vec![item])],
    }
}

/// A worker that takes the lease, commits twice and gives it back or lets it expire. Answers the
/// fences it was given and how many of its commits landed.
async fn work(ledger: SqliteLedger, name: String, ttl: Duration) -> (Vec<Fence>, u64) {
    let holder = HolderId::parse(&name).expect("a token");
    let (mut fences, mut landed) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let token = LeaseToken::parse(&format!("{name}-{round}")).expect("a token");
        let answer = ledger.acquire(&scope(), &holder, &token, ttl).await.expect("an answer");
        let Acquired::Ours { lease, .. } = answer else {
            tokio::task::yield_now().await;
            continue;
        };
        fences.push(lease.fence);
        let run = ledger.load(&scope(), FOLLOW).await.expect("an answer").expect("a run");
        let mut guard = Guard {
            token: token.clone(),
            fence: lease.fence,
            run_version: run.version,
            rules: RulesNumber::new(1),
        };
        for part in 0..2 {
            let commit = commit(guard.clone(), &format!("{token}-{part}"));
            match ledger.commit(&commit).await.expect("an answer") {
                Committed::Landed(version, _) => {
                    landed += 1;
                    guard.run_version = version;
                }
                Committed::Lost(_) => break,
            }
        }
        ledger.release(&scope(), &token).await.expect("an answer");
    }
    (fences, landed)
}

async fn hammer(ttl: Duration) {
    let (_folder, path, _maker) = prepared().await;
    let mut workers = Vec::new();
    for n in 0..4 {
        let ledger = process(&path).await;
        workers.push(tokio::spawn(work(ledger, format!("w{n}"), ttl)));
    }
    let (mut fences, mut landed) = (BTreeMap::new(), 0);
    for worker in workers {
        let (given, commits) = worker.await.expect("no panic");
        for fence in given {
            *fences.entry(fence).or_insert(0) += 1;
        }
        landed += commits;
    }
    assert!(landed > 0 && fences.len() > 1);
    assert!(fences.values().all(|times| *times == 1), "a fence is given once: {fences:?}");
    let ledger = process(&path).await;
    let run = ledger.load(&scope(), FOLLOW).await.expect("an answer").expect("a run");
    assert_eq!((run.version, run.delivered), (RunVersion::new(landed), landed));
    let items = ledger.list(&scope(), ItemFilter::All, None, 10_000).await.expect("items");
    assert_eq!(items.len() as u64, landed, "a commit is there whole");
    let history: Vec<u64> = ledger
        .read("read the order of events", |connection, _| {
            rows::all(connection, "SELECT text FROM event ORDER BY id", [], |row| {
                rows::word(row, "text", str::parse)
            })
        })
        .await
        .expect("events");
    assert_eq!(history.len() as u64, landed);
    assert!(history.is_sorted(), "no commit of an older fence after one of a newer");
}

/// Rules 1 and 28, L1 and L2: leases that are given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_take_turns_never_write_beside_each_other() {
    hammer(DURATION_MAX).await;
}

/// Rules 3 to 5: leases that expire at any moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_whose_leases_expire_never_write_beside_each_other() {
    hammer(Duration::from_millis(2)).await;
}

/// Rule 1: of processes that want one lease at once one gets it, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_processes_that_want_one_lease_one_gets_it() {
    let (_folder, path, _maker) = prepared().await;
    let processes = [process(&path).await, process(&path).await];
    for round in 0..50 {
        let mut tries = Vec::new();
        for (n, ledger) in processes.iter().cloned().enumerate() {
            let name = format!("p{n}-{round}");
            tries.push(tokio::spawn(async move {
                let holder = HolderId::parse(&name).expect("a token");
                let token = LeaseToken::parse(&name).expect("a token");
                let answer = ledger.acquire(&scope(), &holder, &token, DURATION_MAX).await;
                (token, answer.expect("an answer"))
            }));
        }
        let mut ours = Vec::new();
        for attempt in tries {
            let (token, answer) = attempt.await.expect("no panic");
            if matches!(answer, Acquired::Ours { .. }) {
                ours.push(token);
            }
        }
        assert_eq!(ours.len(), 1, "round {round}");
        assert!(processes[0].release(&scope(), &ours[0]).await.expect("an answer"));
    }
}

/// Readers see the last commit while another process writes; writers give up with a code.
#[tokio::test]
async fn a_reader_never_waits_behind_a_writer() {
    let (_folder, path, _maker) = prepared().await;
    let ledger = SqliteLedger::open(&path, Duration::ZERO).await.expect("opened");
    let rival = Connection::open(&path).expect("opened");
    rival.execute_batch("BEGIN IMMEDIATE; UPDATE run SET version = 99;").expect("locked");
    let pulse = ledger.pulse(&scope(), FOLLOW).await.expect("read").expect("a run");
    assert_eq!(pulse.run_version, RunVersion::new(0));
    assert!(ledger.certificate(&scope()).await.expect("read").is_some());
    ledger.list(&scope(), ItemFilter::All, None, 10).await.expect("read");
    ledger.holder(&scope()).await.expect("read");
    let (holder, token) = (HolderId::parse("h"), LeaseToken::parse("t"));
    let (holder, token) = (holder.expect("a token"), token.expect("a token"));
    let answer = ledger.acquire(&scope(), &holder, &token, DURATION_MAX).await;
    let error = answer.expect_err("locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::LEDGER_LOCKED));
    rival.execute_batch("ROLLBACK").expect("unlocked");
    let answer = ledger.acquire(&scope(), &holder, &token, DURATION_MAX).await;
    assert!(matches!(answer, Ok(Acquired::Ours { .. })));
}

/// Rule 11: the database's clock, in milliseconds.
#[tokio::test]
async fn the_clock_is_the_databases() {
    let (_folder, path, _maker) = prepared().await;
    let ledger = process(&path).await;
    let wall = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        ms(since)
    };
    let before = wall();
    let now = ledger.now().await.expect("a time").ms();
    // SQLite rounds to the millisecond.
    assert!((before - 1..=wall() + 1).contains(&now), "{before} {now}");
}
