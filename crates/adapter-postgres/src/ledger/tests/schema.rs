//! The schema: how a ledger is made, migrated, recognised and refused.

use sqlx::{AssertSqlSafe, Row};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Announced, Announcement};
use truekeep_core::{Fingerprint, Incarnation};

use super::*;

const SECOND: Migration =
    Migration { number: 2, name: "second", sql: "CREATE TABLE truekeep_ledger.second (one text)" };
const LATER: &[Migration] = &[POSTGRES[0], SECOND];
const BROKEN: &[Migration] = &[
    POSTGRES[0],
    Migration {
        number: 2,
        name: "broken",
        sql: "CREATE TABLE truekeep_ledger.half (one text); SELECT nothing;",
    },
];

async fn open(
    test: &TestDatabase,
    steps: &'static [Migration],
) -> Result<PostgresLedger, PortError> {
    let database = connect(&test.address, PATIENCE).await?;
    PostgresLedger::open_with(database, steps, Clock::Server).await
}

async fn migrate(address: &str, steps: &'static [Migration]) -> Result<MigrationReport, PortError> {
    super::super::schema::migrate(&connect(address, PATIENCE).await?, steps).await
}

async fn announced(ledger: &PostgresLedger) {
    let announcement = Announcement {
        pipeline: PipelineName::parse("cities").expect("a name"),
        incarnation: Incarnation::parse("life").expect("a token"),
        fingerprint: Fingerprint::parse("hash").expect("a token"),
        text: "rules".to_owned(),
        replaces: None,
        above: truekeep_core::RulesNumber::default(),
        anew: false,
    };
    let answer = ledger.announce(&announcement).await.expect("an answer");
    assert!(matches!(answer, Announced::InForce(_)));
}

async fn value(test: &TestDatabase, sql: &'static str) -> i64 {
    let mut admin = test.connect().await;
    sqlx::query_scalar(sql).fetch_one(&mut admin).await.expect("a value")
}

const VERSION: &str = "SELECT version::int8 FROM truekeep_ledger.ledger";

#[tokio::test]
async fn every_statement_prepares_on_a_migrated_database() {
    let Some(subject) = Subject::new().await else { return };
    let mut admin = subject.test.connect().await;
    for (name, text) in sql::ALL {
        assert!(text.starts_with("-- "), "{name} says what it is for");
        if text.contains("CREATE SCHEMA") {
            continue;
        }
        let prepared = format!("PREPARE statement AS {text}");
        let prepared = sqlx::raw_sql(AssertSqlSafe(prepared)).execute(&mut admin).await;
        assert!(prepared.is_ok(), "{name}: {prepared:?}");
        sqlx::raw_sql("DEALLOCATE statement").execute(&mut admin).await.expect("forgotten");
    }
}

/// What runs in each turn reads a bounded part of an index, however many items wait.
#[tokio::test]
async fn the_hot_statements_take_no_longer_the_more_items_wait() {
    let Some(subject) = Subject::new().await else { return };
    let mut admin = subject.test.connect().await;
    let filled = "INSERT INTO truekeep_ledger.pipeline VALUES ('p', 'i', 'working', 0, 1, 0, false, NULL, 0);
        INSERT INTO truekeep_ledger.certificate VALUES ('p/0', 'p', 'never', NULL, NULL, 1, 0, 0, 0);
        INSERT INTO truekeep_ledger.run VALUES ('r', 'p/0', 'p', 'follow', 'k', 1, 0, '0', 'active', NULL, 0, NULL, '', NULL, NULL, NULL, 0);
        INSERT INTO truekeep_ledger.item
        SELECT 'p/0', n::text::bytea, n, 'upsert', CASE WHEN n % 4 = 0 THEN 'parked' ELSE 'retry' END,
            1, 2000000 + n, 'CODE', 'reason', 5, NULL
        FROM generate_series(1, 20000) AS n;
        ANALYZE truekeep_ledger.item";
    sqlx::raw_sql(filled).execute(&mut admin).await.expect("filled");
    assert_eq!(value(&subject.test, "SELECT unsettled FROM truekeep_ledger.tally").await, 15_000);
    for (name, text, parameters) in [
        ("claim", sql::ITEM_CLAIM, "'p/0', 1000000, 'lease', 100"),
        ("claim of some", sql::ITEM_CLAIM, "'p/0', 2000100, 'lease', 100"),
        ("reclaim", sql::ITEM_RECLAIM, "'p/0', 1000000, 'lease'"),
        ("tally", sql::ITEM_TALLY, "'p/0'"),
        ("pulse", sql::RUN_PULSE, "'p/0', 'follow', 1000000"),
        ("count", sql::CERTIFICATE_COUNT, "'p/0', 1000000"),
        ("settle", sql::ITEM_SETTLE, "'p/0', ARRAY['\\x31'::bytea, '\\x32'], ARRAY[9, 9]"),
        ("page", sql::ITEM_LIST, "'p/0', NULL, NULL, 100"),
    ] {
        let planned = format!(
            "PREPARE hot AS {text}; BEGIN; \
             EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE hot ({parameters})"
        );
        let plan = sqlx::raw_sql(AssertSqlSafe(planned)).fetch_all(&mut admin).await.expect(name);
        let plan: String = plan.last().expect("a plan").get_unchecked(0);
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        sqlx::raw_sql("ROLLBACK; DEALLOCATE hot").execute(&mut admin).await.expect("undone");
        let pages = plan[0]["Plan"]["Shared Hit Blocks"].as_i64().expect("a number")
            + plan[0]["Plan"]["Shared Read Blocks"].as_i64().expect("a number");
        assert!(pages < 4_000, "{name} touches {pages} pages: {plan:#}");
        assert!(most_rows(&plan[0]["Plan"]) <= 1_000, "{name}: {plan:#}");
    }
}

/// The most rows that any step hands on or throws away.
fn most_rows(plan: &serde_json::Value) -> i64 {
    let of = |key: &str| plan[key].as_i64().unwrap_or(0);
    let own = of("Actual Rows").max(of("Rows Removed by Filter"));
    let steps = plan["Plans"].as_array().into_iter().flatten();
    steps.map(most_rows).fold(own, i64::max)
}

/// Rule 24.
#[tokio::test]
async fn an_older_schema_is_refused_until_it_is_migrated_and_nothing_is_lost() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let ledger = open(&test, POSTGRES).await.expect("made");
    announced(&ledger).await;
    let identity = ledger.identity().await.expect("an identity");
    drop(ledger);
    let error = open(&test, LATER).await.expect_err("refused");
    assert_eq!((error.class, error.code.clone()), (FailureClass::Halted, Code::LEDGER_VERSION));
    assert!(error.chain().contains("truekeep migrate"), "{}", error.chain());
    let mut reports = Vec::new();
    for _ in 0..2 {
        reports.push(migrate(&test.address, LATER).await.expect("migrated"));
    }
    assert_eq!(reports[0], MigrationReport { before: 1, after: 2 });
    assert_eq!(reports[1], MigrationReport { before: 2, after: 2 });
    let ledger = open(&test, LATER).await.expect("opened");
    assert_eq!(ledger.identity().await.expect("an identity"), identity);
    assert_eq!(ledger.pipelines().await.expect("pipelines").len(), 1);
}

/// Rule 24.
#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    drop(open(&test, LATER).await.expect("made"));
    let error = open(&test, POSTGRES).await.expect_err("refused");
    assert_eq!((error.class, error.code.clone()), (FailureClass::Halted, Code::LEDGER_VERSION));
    assert!(!error.chain().contains("truekeep migrate"), "that would not help");
    let error = PostgresLedger::migrate(&test.address, PATIENCE).await.expect_err("refused");
    assert_eq!(error.code, Code::LEDGER_VERSION);
    let error = PostgresLedger::find(&test.address, PATIENCE).await.expect_err("refused");
    assert_eq!(error.code, Code::LEDGER_VERSION);
    assert_eq!(value(&test, VERSION).await, 2);
}

/// Rule 24: each step is taken once, however many take it at once, and a new ledger is one ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn migrations_at_once_have_one_result() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    for (steps, after) in [(POSTGRES, 1), (LATER, 2)] {
        let mut tries = Vec::new();
        for _ in 0..8 {
            let address = test.address.clone();
            tries.push(tokio::spawn(async move { migrate(&address, steps).await }));
        }
        for attempt in tries {
            let report = attempt.await.expect("no panic").expect("migrated");
            assert_eq!(report.after, after);
        }
    }
    open(&test, LATER).await.expect("opened");
    assert_eq!(value(&test, "SELECT count(*) FROM truekeep_ledger.ledger").await, 1);
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_version_before_it() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    drop(open(&test, POSTGRES).await.expect("made"));
    migrate(&test.address, BROKEN).await.expect_err("the step fails");
    assert_eq!(value(&test, VERSION).await, 1);
    let half = "SELECT count(*) FROM pg_class WHERE relname = 'half'";
    assert_eq!(value(&test, half).await, 0);
    open(&test, POSTGRES).await.expect("still a ledger");
}

#[tokio::test]
async fn another_programs_schema_is_refused_and_looking_makes_none() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    assert!(PostgresLedger::find(&test.address, PATIENCE).await.expect("looked").is_none());
    test.run("CREATE SCHEMA truekeep_ledger").await;
    assert!(PostgresLedger::find(&test.address, PATIENCE).await.expect("looked").is_none());
    test.run("CREATE TABLE truekeep_ledger.users (name text)").await;
    for error in [
        open(&test, POSTGRES).await.expect_err("refused"),
        PostgresLedger::migrate(&test.address, PATIENCE).await.expect_err("refused"),
        PostgresLedger::find(&test.address, PATIENCE).await.expect_err("refused"),
    ] {
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::LEDGER_CORRUPT));
    }
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'truekeep_ledger'";
    assert_eq!(value(&test, tables).await, 1);
}
