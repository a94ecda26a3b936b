//! Trouble: what a commit that got no answer left behind, and who may do what.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions};
use truekeep_core::certificate::Claim;
use truekeep_core::failure::FailureClass;
use truekeep_core::guard::Guard;
use truekeep_core::ports::{
    Acquired, Announcement, Commit, Committed, Discarded, Event, ItemKind, LedgerWrite, NewItem,
    NewRun, ProcedureKind, Removal, Retried, RunHealth, RunState, Settle, Steer, Steered, Steering,
};
use truekeep_core::{
    CommitToken, Fingerprint, Incarnation, Key, Moment, RulesNumber, RunId, RunVersion, Version,
};
use truekeep_postgres_server::{Cut, Line};

use super::*;

const TTL: Duration = Duration::from_secs(60);

/// What whoever works with a ledger is granted; what is documented is what is tested.
const GRANTS: [&str; 2] = [
    "GRANT USAGE ON SCHEMA truekeep_ledger TO worker",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA truekeep_ledger TO worker",
];

fn scope() -> ScopeId {
    ScopeId::whole(PipelineName::parse("cities").expect("a name"))
}

fn holder() -> HolderId {
    HolderId::parse("holder").expect("a token")
}

/// A pipeline, a run and a lease, and the first commit of its holder.
async fn prepared(ledger: &PostgresLedger) -> Commit {
    let announcement = Announcement {
        pipeline: scope().pipeline().clone(),
        incarnation: Incarnation::parse("life").expect("a token"),
        fingerprint: Fingerprint::parse("hash").expect("a token"),
        text: "rules".to_owned(),
        replaces: None,
        above: RulesNumber::default(),
        anew: false,
    };
    ledger.announce(&announcement).await.expect("announced");
    let run = RunId::parse("run").expect("a token");
    let new = NewRun {
        id: run.clone(),
        scope: scope(),
        procedure: ProcedureKind::Follow,
        key: "key".to_owned(),
        phase: "0".to_owned(),
    };
    ledger.open_run(&new).await.expect("opened");
    let token = LeaseToken::parse("lease").expect("a token");
    let answer = ledger.acquire(&scope(), &holder(), &token, TTL).await.expect("an answer");
    let Acquired::Ours { lease, .. } = answer else { panic!("{answer:?}") };
    Commit {
        run,
        scope: scope(),
        guard: Guard {
            token,
            fence: lease.fence,
            run_version: RunVersion::new(0),
            rules: RulesNumber::new(1),
        },
        token: CommitToken::parse("commit").expect("a token"),
        phase: "1".to_owned(),
        state: RunState::Active,
        health: RunHealth::default(),
        delivered: 7,
        writes: Vec::new(),
    }
}

/// All that a worker and an operator do, from a lease to a removal.
async fn everything(ledger: &PostgresLedger) {
    let mut commit = prepared(ledger).await;
    let item = |key: &str| NewItem {
        key: Key::new(key),
        version: Version::new(1),
        kind: ItemKind::Upsert,
        attempts: 0,
        retry_in: Some(Duration::ZERO),
        code: Code::UNEXPECTED,
        reason: String::new(),
    };
    let parked = NewItem { retry_in: None, ..item("parked") };
    commit.writes = vec![
        LedgerWrite::Enqueue(vec![item("a"), parked]),
        LedgerWrite::Certify(Claim::Begun),
        LedgerWrite::Record(Event { code: Code::UNEXPECTED, text: String::new() }),
    ];
    let landed = ledger.commit(&commit).await.expect("an answer");
    let Committed::Landed(version, _) = landed else { panic!("{landed:?}") };
    commit.guard.run_version = version;
    let claimed = ledger.claim(&scope(), &commit.guard, 10).await.expect("an answer");
    assert_eq!(claimed.expect("claimed").len(), 1);
    commit.token = CommitToken::parse("settled").expect("a token");
    commit.writes = vec![
        LedgerWrite::Settle(vec![Settle { key: Key::new("a"), version: Version::new(1) }]),
        LedgerWrite::Certify(Claim::UpTo(Moment::at(Version::new(5)))),
    ];
    assert!(matches!(ledger.commit(&commit).await, Ok(Committed::Landed(..))));
    let tokens = [commit.guard.token.clone()];
    assert!(ledger.renew(&holder(), &tokens, TTL).await.expect("renewed").is_empty());
    let given_up = ledger.discard(&scope(), &Key::new("parked"), Version::new(1), "me").await;
    assert_eq!(given_up.expect("an answer"), Discarded::GivenUp);
    let wished = ledger.retry(&scope(), &Key::new("parked")).await;
    assert_eq!(wished.expect("an answer"), Retried::Pending);
    let wished = ledger.request(&scope(), &Key::new("b"), Version::new(2), ItemKind::Delete).await;
    assert_eq!(wished.expect("an answer"), Retried::Pending);
    assert_eq!(ledger.history(&scope(), 10).await.expect("read").len(), 2);
    let record = ledger.pipelines().await.expect("read").remove(0);
    let name = scope().pipeline().clone();
    let steer = Steer {
        pipeline: name.clone(),
        to: Steering::Pause,
        seen: record.revision,
        by: "me".into(),
    };
    assert!(matches!(ledger.steer(&steer).await, Ok(Steered::Done(_))));
    let removal = Removal {
        pipeline: name.clone(),
        incarnation: record.incarnation.clone(),
        purge: false,
        newest: Version::new(1),
        request_max: Duration::ZERO,
        by: "me".into(),
    };
    assert!(ledger.remove(&removal).await.expect("removed").is_some());
    assert!(ledger.drop_part(&name, &record.incarnation, 100).await.expect("dropped"));
}

/// Rule 28: a commit whose answer is lost may have landed or not; the same commit with the same token
/// finds it out, and lands once.
#[tokio::test]
async fn a_commit_without_an_answer_lands_once_when_it_is_repeated() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let line = Line::to(&test).await;
    let ledger = PostgresLedger::open(&line.address, PATIENCE).await.expect("opened");
    let mut commit = prepared(&ledger).await;
    for (number, cut) in [(1, Cut::AfterCommit), (2, Cut::BeforeCommit)] {
        commit.token = CommitToken::parse(&format!("commit-{number}")).expect("a token");
        commit.guard.run_version = RunVersion::new(number - 1);
        line.cut(cut);
        let error = ledger.commit(&commit).await.expect_err("no answer");
        assert_eq!((error.class, error.code), (FailureClass::Unknown, Code::LEDGER_UNAVAILABLE));
        if cut == Cut::AfterCommit {
            let run = ledger.load(&scope(), ProcedureKind::Follow).await.expect("an answer");
            assert_eq!(run.expect("a run").version, RunVersion::new(1), "it landed");
        }
        for _ in 0..2 {
            let landed = ledger.commit(&commit).await.expect("an answer");
            assert!(
                matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(number))
            );
        }
    }
    let run = ledger.load(&scope(), ProcedureKind::Follow).await.expect("an answer");
    assert_eq!(run.expect("a run").delivered, 14);
}

/// A lease, a run and rules that were given without an answer are given again, not to another.
#[tokio::test]
async fn what_was_given_without_an_answer_is_given_again() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let line = Line::to(&test).await;
    let ledger = PostgresLedger::open(&line.address, PATIENCE).await.expect("opened");
    let held = prepared(&ledger).await;
    assert!(ledger.release(&scope(), &held.guard.token).await.expect("released"));
    let holder = HolderId::parse("next").expect("a token");
    let token = LeaseToken::parse("next-lease").expect("a token");
    line.cut(Cut::AfterCommit);
    let error = ledger.acquire(&scope(), &holder, &token, TTL).await.expect_err("no answer");
    assert_eq!(error.class, FailureClass::Unknown);
    let answer = ledger.acquire(&scope(), &holder, &token, TTL).await.expect("an answer");
    let fence = held.guard.fence.next();
    assert!(matches!(answer, Acquired::Ours { lease, .. } if lease.fence == fence));
    line.cut(Cut::AfterCommit);
    let tokens = [token];
    let error = ledger.renew(&holder, &tokens, TTL).await.expect_err("no answer");
    assert_eq!(error.class, FailureClass::Unknown);
    assert!(ledger.renew(&holder, &tokens, TTL).await.expect("an answer").is_empty());
}

/// A server that is stopped, or crashes, while a worker is connected: each call fails with a class that
/// brings it back, and what was committed is there.
#[tokio::test]
async fn a_server_that_restarts_is_gone_on_with() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let test = server.database().await;
    let patience = Duration::from_millis(200);
    let ledger = PostgresLedger::open(&test.address, patience).await.expect("opened");
    let mut commit = prepared(&ledger).await;
    for (number, crash) in [(1, false), (2, true)] {
        if crash {
            server.kill();
        } else {
            server.stop();
        }
        // Each connection is found to be dead once.
        for _ in 0..3 {
            let error = ledger.commit(&commit).await.expect_err("no server");
            assert_eq!((error.class, error.code), (FailureClass::Retry, Code::LEDGER_UNAVAILABLE));
        }
        server.start();
        let landed = ledger.commit(&commit).await.expect("an answer");
        assert!(
            matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(number))
        );
        commit.token = CommitToken::parse("next").expect("a token");
        commit.guard.run_version = RunVersion::new(number);
    }
}

/// Each kind of trouble has its class, leaves nothing half done, and the same commit lands after it.
#[tokio::test]
async fn trouble_in_a_commit_leaves_nothing_behind() {
    let Some(subject) = Subject::new().await else { return };
    let ledger = &subject.ledger;
    let commit = prepared(ledger).await;
    for (body, class, code) in [
        ("RAISE SQLSTATE '40001'", FailureClass::Retry, Code::LEDGER_LOCKED),
        ("RAISE SQLSTATE '40P01'", FailureClass::Retry, Code::LEDGER_LOCKED),
        ("RAISE SQLSTATE '57014'", FailureClass::Retry, Code::LEDGER_UNAVAILABLE),
        ("RAISE SQLSTATE '53100'", FailureClass::Retry, Code::LEDGER_UNAVAILABLE),
        ("RAISE SQLSTATE '25006'", FailureClass::Retry, Code::LEDGER_UNAVAILABLE),
        ("RAISE SQLSTATE '42501'", FailureClass::Halted, Code::LEDGER_UNAVAILABLE),
        ("RAISE SQLSTATE 'XX001'", FailureClass::Halted, Code::LEDGER_CORRUPT),
        (
            "PERFORM pg_terminate_backend(pg_backend_pid())",
            FailureClass::Retry,
            Code::LEDGER_UNAVAILABLE,
        ),
    ] {
        let trigger = format!(
            "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NULL; END $$;
            CREATE TRIGGER fails AFTER UPDATE ON truekeep_ledger.run EXECUTE FUNCTION fails()"
        );
        subject.test.run(&trigger).await;
        let error = ledger.commit(&commit).await.expect_err(body);
        assert_eq!((error.class, error.code), (class, code), "{body}");
        subject.test.run("DROP TRIGGER fails ON truekeep_ledger.run; DROP FUNCTION fails()").await;
        let run = ledger.load(&scope(), ProcedureKind::Follow).await.expect("an answer");
        assert_eq!(run.expect("a run").version, RunVersion::new(0), "{body}");
    }
    let landed = ledger.commit(&commit).await.expect("an answer");
    assert!(matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(1)));
}

/// Whoever waits for what we hold while we wait for what they hold gets it: we give way, come again,
/// and are nobody's victim nor make one.
#[tokio::test]
async fn of_two_that_wait_for_each_other_we_give_way() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let ledger = PostgresLedger::open(&test.address, PATIENCE).await.expect("opened");
    let commit = prepared(&ledger).await;
    let mut rival = test.connect().await;
    let lease = "BEGIN; SELECT FROM truekeep_ledger.lease FOR UPDATE";
    sqlx::raw_sql(lease).execute(&mut rival).await.expect("held");
    let ours = tokio::spawn({
        let (ledger, commit) = (ledger.clone(), commit.clone());
        async move { ledger.commit(&commit).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut rival).await.expect("read") == 0 {
        tokio::task::yield_now().await;
    }
    let pipeline = "SELECT FROM truekeep_ledger.pipeline FOR UPDATE; COMMIT";
    sqlx::raw_sql(pipeline).execute(&mut rival).await.expect("no victim");
    let landed = ours.await.expect("no panic").expect("an answer");
    assert!(matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(1)));
}

/// X21: what was confirmed is on disk, whatever the database prefers.
#[tokio::test]
async fn a_commit_is_on_disk_though_the_database_would_not_wait() {
    let Some(subject) = Subject::new().await else { return };
    let sql = format!("ALTER DATABASE {} SET synchronous_commit = off", subject.test.name);
    subject.test.run(&sql).await;
    let ledger = PostgresLedger::open(&subject.test.address, PATIENCE).await.expect("opened");
    let (mut transaction, _) =
        ledger.writing("test", Hold::Pipeline(scope().pipeline())).await.expect("begun");
    let query = Transaction::query("SELECT current_setting('synchronous_commit') AS id");
    let setting = rows::first(&mut transaction, query, rows::identity).await;
    let setting = transaction.end(setting).await.expect("read").expect("a row");
    assert_eq!(setting.as_str(), "on");
}

/// What stands in front of the server's own functions on a search path stands not in front of ours.
#[tokio::test]
async fn a_function_on_the_search_path_is_not_called() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let sql = format!("ALTER DATABASE {} SET search_path = public, pg_catalog", test.name);
    test.run(&sql).await;
    let false_clock = "CREATE FUNCTION public.floor(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0.0';
        CREATE FUNCTION public.floor(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 0.0'";
    test.run(false_clock).await;
    let ledger = PostgresLedger::open(&test.address, PATIENCE).await.expect("opened");
    assert!(ledger.now().await.expect("a time").ms() > 0);
}

/// X55: through a pooler that divides transactions everything works as without, whatever other clients
/// of it leave in its connections.
#[tokio::test]
async fn a_pooler_by_transaction_changes_nothing() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let Some(pooler) = truekeep_postgres_server::pooler(&server) else { return };
    let test = server.database().await;
    let address = pooler.address(&test.name);
    let ledger = PostgresLedger::open(&address, PATIENCE).await.expect("opened");
    let mut commit = prepared(&ledger).await;
    let mut others = Vec::new();
    for number in 0..4 {
        let ledger = PostgresLedger::open(&address, PATIENCE).await.expect("opened");
        others.push(tokio::spawn(async move {
            let scope =
                ScopeId::whole(PipelineName::parse(&format!("other-{number}")).expect("a name"));
            for _ in 0..50 {
                assert!(ledger.pipeline(scope.pipeline()).await.expect("read").is_none());
                ledger
                    .renew(&HolderId::parse("nobody").expect("a token"), &[], TTL)
                    .await
                    .expect("nothing");
            }
        }));
    }
    // A pooler refuses what it does not know at the start.
    let client: PgConnectOptions = address.parse().expect("an address");
    let mut client = client.extra_float_digits(None).connect().await.expect("connected");
    for number in 1..=50 {
        let spoilt = "SET synchronous_commit = off; SET search_path = public; SET lock_timeout = 0";
        sqlx::raw_sql(spoilt).execute(&mut client).await.expect("set");
        let landed = ledger.commit(&commit).await.expect("an answer");
        assert!(
            matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(number))
        );
        assert!(
            ledger
                .renew(&holder(), std::slice::from_ref(&commit.guard.token), TTL)
                .await
                .expect("renewed")
                .is_empty()
        );
        commit.guard.run_version = RunVersion::new(number);
        commit.token = CommitToken::parse(&format!("commit-{number}")).expect("a token");
    }
    for other in others {
        other.await.expect("done");
    }
}

/// Roles of who makes a ledger and who works with it: the documented rights are enough, and each of
/// them is needed. One that is taken away halts and says so.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let (owner, worker) = (format!("{}_owner", test.name), format!("{}_worker", test.name));
    test.run(&format!("CREATE ROLE {owner} LOGIN; CREATE ROLE {worker} LOGIN")).await;
    test.run("REVOKE CREATE ON SCHEMA public FROM public").await;
    test.run(&format!("CREATE SCHEMA truekeep_ledger AUTHORIZATION {owner}")).await;
    let owned = PostgresLedger::open(&test.address_of(&owner), PATIENCE).await.expect("made");
    drop(owned);
    let refused = PostgresLedger::open(&test.address_of(&worker), PATIENCE).await;
    let error = refused.expect_err("no right");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::LEDGER_UNAVAILABLE));
    for grant in GRANTS {
        test.run(&grant.replace("worker", &worker)).await;
    }
    let ledger = PostgresLedger::open(&test.address_of(&worker), PATIENCE).await.expect("opened");
    everything(&ledger).await;
    test.run(&format!("REVOKE UPDATE ON truekeep_ledger.lease FROM {worker}")).await;
    let error = ledger.renew(&holder(), &[], TTL).await.expect_err("no right");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::LEDGER_UNAVAILABLE));
    drop(ledger);
    let mut admin = test.connect().await;
    let drop = format!("DROP OWNED BY {owner}, {worker}; DROP ROLE {owner}, {worker}");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut admin).await.expect("dropped");
}
