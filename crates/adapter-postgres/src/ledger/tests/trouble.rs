//! Trouble: what a commit that got no answer left behind, and who may do what.

use sqlx::AssertSqlSafe;
use truekeep_core::failure::FailureClass;
use truekeep_core::guard::Guard;
use truekeep_core::ports::{
    Acquired, Announcement, Commit, Committed, NewRun, ProcedureKind, RunHealth, RunState,
};
use truekeep_core::{CommitToken, Fingerprint, Incarnation, RulesNumber, RunId, RunVersion};

use super::*;

const TTL: Duration = Duration::from_secs(60);

fn scope() -> ScopeId {
    ScopeId::whole(PipelineName::parse("cities").expect("a name"))
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
    let holder = HolderId::parse("holder").expect("a token");
    let token = LeaseToken::parse("lease").expect("a token");
    let answer = ledger.acquire(&scope(), &holder, &token, TTL).await.expect("an answer");
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

/// Rule 28: a server that dies while it commits leaves the outcome unknown; the same commit with the
/// same token finds it out, and lands once.
#[tokio::test]
async fn a_commit_without_an_answer_lands_once_when_it_is_repeated() {
    let Some(subject) = Subject::new().await else { return };
    let ledger = &subject.ledger;
    let commit = prepared(ledger).await;
    let killer = "CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER dies AFTER UPDATE ON truekeep_ledger.run
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dies();";
    subject.test.run(killer).await;
    let error = ledger.commit(&commit).await.expect_err("no answer");
    assert_eq!((error.class, error.code), (FailureClass::Unknown, Code::LEDGER_UNAVAILABLE));
    subject.test.run("DROP TRIGGER dies ON truekeep_ledger.run").await;
    for _ in 0..2 {
        let landed = ledger.commit(&commit).await.expect("an answer");
        assert!(matches!(landed, Committed::Landed(version, _) if version == RunVersion::new(1)));
    }
    let run = ledger.load(&scope(), ProcedureKind::Follow).await.expect("an answer");
    assert_eq!(run.expect("a run").delivered, 7);
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

/// The documented rights are enough to make a ledger and to work with it, and a worker needs none to
/// make schemas.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let role = format!("{}_worker", test.name);
    test.run(&format!("CREATE ROLE {role} LOGIN")).await;
    test.run("REVOKE CREATE ON SCHEMA public FROM public").await;
    test.run(&format!("CREATE SCHEMA truekeep_ledger AUTHORIZATION {role}")).await;
    let address = test.address_of(&role);
    let ledger = PostgresLedger::open(&address, PATIENCE).await.expect("made");
    let commit = prepared(&ledger).await;
    let landed = ledger.commit(&commit).await.expect("an answer");
    assert!(matches!(landed, Committed::Landed(..)));
    drop(ledger);
    let mut admin = test.connect().await;
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut admin).await.expect("dropped");
}
