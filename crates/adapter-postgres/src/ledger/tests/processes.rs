//! Several processes on one database: connections of their own, which is all that tells them apart to
//! the server.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

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

async fn process(test: &TestDatabase) -> PostgresLedger {
    PostgresLedger::open(&test.address, PATIENCE).await.expect("opened")
}

/// A database with a pipeline and an open run; none without a server.
async fn prepared() -> Option<TestDatabase> {
    let test = truekeep_postgres_server::database().await?;
    let ledger = process(&test).await;
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
    Some(test)
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
async fn work(ledger: PostgresLedger, name: String, ttl: Duration) -> (Vec<Fence>, u64) {
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
    let Some(test) = prepared().await else { return };
    let mut workers = Vec::new();
    for n in 0..4 {
        let ledger = process(&test).await;
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
    let ledger = process(&test).await;
    let run = ledger.load(&scope(), FOLLOW).await.expect("an answer").expect("a run");
    assert_eq!((run.version, run.delivered), (RunVersion::new(landed), landed));
    let items = ledger.list(&scope(), ItemFilter::All, None, 10_000).await.expect("items");
    assert_eq!(items.len() as u64, landed, "a commit is there whole");
    let mut reading = ledger.reading("read the order of events").await.expect("begun");
    let query = Transaction::query("SELECT text FROM truekeep_ledger.event ORDER BY id");
    let found = rows::all(&mut reading, query, |row| rows::word(row, "text", str::parse)).await;
    let history: Vec<u64> = reading.end(found).await.expect("events");
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
    hammer(Duration::from_millis(20)).await;
}

/// Rule 1: of processes that want one lease at once one gets it, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_processes_that_want_one_lease_one_gets_it() {
    let Some(test) = prepared().await else { return };
    let processes = [process(&test).await, process(&test).await];
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
    let Some(test) = prepared().await else { return };
    let ledger = process(&test).await;
    let mut rival = test.connect().await;
    let lock = "BEGIN; UPDATE truekeep_ledger.pipeline SET revision = 99; \
                UPDATE truekeep_ledger.run SET version = 99;";
    sqlx::raw_sql(lock).execute(&mut rival).await.expect("locked");
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
    sqlx::raw_sql("ROLLBACK").execute(&mut rival).await.expect("unlocked");
    let answer = ledger.acquire(&scope(), &holder, &token, DURATION_MAX).await;
    assert!(matches!(answer, Ok(Acquired::Ours { .. })));
}

/// Rule 11: the server's clock, in milliseconds.
#[tokio::test]
async fn the_clock_is_the_servers() {
    let Some(test) = prepared().await else { return };
    let ledger = process(&test).await;
    let wall = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        ms(since)
    };
    let before = wall();
    let now = ledger.now().await.expect("a time").ms();
    assert!((before - 1..=wall() + 1).contains(&now), "{before} {now}");
}

/// L1: a lease whose renewal was under way when it ended is not taken, neither by what was seen
/// before the renewal nor by a clock that was read before it.
#[tokio::test]
async fn a_lease_whose_renewal_is_under_way_is_not_taken() {
    let Some(test) = prepared().await else { return };
    let ledger = process(&test).await;
    let ttl = Duration::from_secs(60);
    let (holder, token) = (HolderId::parse("h"), LeaseToken::parse("t"));
    let (holder, token) = (holder.expect("a token"), token.expect("a token"));
    let answer = ledger.acquire(&scope(), &holder, &token, ttl).await;
    assert!(matches!(answer, Ok(Acquired::Ours { .. })));
    test.run("UPDATE truekeep_ledger.lease SET expires_at = expires_at - 2 * ttl_ms").await;
    let mut renewal = test.connect().await;
    let begun = "BEGIN; SELECT FROM truekeep_ledger.lease FOR NO KEY UPDATE";
    sqlx::raw_sql(begun).execute(&mut renewal).await.expect("held");
    let taker = tokio::spawn(async move {
        let (holder, token) = (HolderId::parse("rival"), LeaseToken::parse("other"));
        let (holder, token) = (holder.expect("a token"), token.expect("a token"));
        ledger.acquire(&scope(), &holder, &token, ttl).await
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while !taker.is_finished()
        && sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut renewal).await.expect("read") == 0
    {
        tokio::task::yield_now().await;
    }
    let done = "UPDATE truekeep_ledger.lease SET expires_at = \
                floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 + ttl_ms; COMMIT";
    sqlx::raw_sql(done).execute(&mut renewal).await.expect("renewed");
    let answer = taker.await.expect("no panic").expect("an answer");
    assert!(matches!(answer, Acquired::Held { .. }), "{answer:?}");
}

/// What is not known stays so until the answer was given: a name gets its first row before or after.
#[tokio::test]
async fn nobody_names_a_pipeline_while_it_is_found_missing() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let ledger = process(&test).await;
    let mut rival = test.connect().await;
    let free = "SELECT FROM truekeep_ledger.ledger FOR NO KEY UPDATE NOWAIT";
    for hold in [Hold::Scope(&scope()), Hold::Pipeline(scope().pipeline())] {
        let (transaction, _) = ledger.writing("test", hold).await.expect("begun");
        assert!(sqlx::raw_sql(free).execute(&mut rival).await.is_err());
        transaction.end(Ok(())).await.expect("ended");
        sqlx::raw_sql(free).execute(&mut rival).await.expect("free");
    }
}
