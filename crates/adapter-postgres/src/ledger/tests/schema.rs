//! The schema: how a ledger is made, migrated, recognised and refused.

use sqlx::{AssertSqlSafe, PgConnection, Row};
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

/// A statement has one name in both ledgers; this one has some more.
#[test]
fn statements_have_the_names_that_they_have_in_sqlite() {
    let names = |home: &str| {
        let sql = std::path::Path::new(home).join("src/ledger/sql");
        let mut names = std::collections::BTreeSet::new();
        for noun in std::fs::read_dir(sql).expect("a folder") {
            let noun = noun.expect("read");
            for verb in std::fs::read_dir(noun.path()).expect("a folder") {
                names.insert((noun.file_name(), verb.expect("read").file_name()));
            }
        }
        names
    };
    let ours = names(env!("CARGO_MANIFEST_DIR"));
    let theirs = names(concat!(env!("CARGO_MANIFEST_DIR"), "/../adapter-sqlite"));
    assert!(!theirs.is_empty() && theirs.is_subset(&ours), "{theirs:?}\n{ours:?}");
}

const SCOPE: &str = "
    INSERT INTO truekeep_ledger.pipeline VALUES ('p', 'i', 'working', 0, 1, 0, false, NULL, 0);
    INSERT INTO truekeep_ledger.certificate VALUES ('p', 'p', 'never', NULL, NULL, 1, 0, 0, 0);
    INSERT INTO truekeep_ledger.run
    SELECT 'r' || n, 'p', 'p', CASE n WHEN 1 THEN 'follow' ELSE 'reconcile' END, 'k' || n, n, 0, '0',
        CASE n WHEN 1 THEN 'active' ELSE 'succeeded' END, NULL, 0, NULL, '', NULL, NULL, NULL, 0
    FROM generate_series(1, 1000) AS n;
    INSERT INTO truekeep_ledger.event (scope, at, code, text)
    SELECT 'p', n, 'CODE', 'text' FROM generate_series(1, 1000) AS n;
    ANALYZE truekeep_ledger.run, truekeep_ledger.event";

/// What runs in each turn, with what it is run with.
const HOT: [(&str, &str, &str); 13] = [
    ("claim of nothing", sql::ITEM_CLAIM, "'p', 1000000, 'lease', 100"),
    ("claim of some", sql::ITEM_CLAIM, "'p', 2000100, 'lease', 100"),
    ("claim of all that may be", sql::ITEM_CLAIM, "'p', 9000000, 'lease', 100"),
    ("reclaim", sql::ITEM_RECLAIM, "'p', 1000000, 'lease'"),
    ("tally", sql::ITEM_TALLY, "'p'"),
    ("pulse", sql::RUN_PULSE, "'p', 'follow', 1000000"),
    ("count", sql::CERTIFICATE_COUNT, "'p', 1000000"),
    ("settle", sql::ITEM_SETTLE, "'p', ARRAY['\\x31'::bytea, '\\x32'], ARRAY[9, 9]"),
    ("page", sql::ITEM_LIST, "'p', '\\x35', NULL, 100"),
    ("guard", sql::GUARD_READ, "'p', 'p', 'r1'"),
    ("guard of a claim", sql::GUARD_READ, "'p', 'p', NULL"),
    ("newest run", sql::RUN_LOAD, "'p', 'follow'"),
    ("old events", sql::EVENT_PRUNE, "'p', 0, 100"),
];

/// What runs in each turn reads a bounded part of an index, however many items wait: of 100,000 no more
/// than of 1,000. A million are measured by `cargo xtask bench items`.
#[tokio::test]
async fn the_hot_statements_take_no_longer_the_more_items_wait() {
    let Some(subject) = Subject::new().await else { return };
    let mut admin = subject.test.connect().await;
    sqlx::raw_sql(SCOPE).execute(&mut admin).await.expect("made");
    let mut before = [0; HOT.len()];
    for items in [1_000, 100_000] {
        let filled = format!(
            "TRUNCATE truekeep_ledger.item, truekeep_ledger.tally;
            INSERT INTO truekeep_ledger.item
            SELECT 'p', n::text::bytea, n, 'upsert', CASE WHEN n % 4 = 0 THEN 'parked' ELSE 'retry' END,
                1, 2000000 + n, 'CODE', 'reason', 5, NULL
            FROM generate_series(1, {items}) AS n;
            ANALYZE truekeep_ledger.item"
        );
        sqlx::raw_sql(AssertSqlSafe(filled)).execute(&mut admin).await.expect("filled");
        let unsettled = value(&subject.test, "SELECT unsettled FROM truekeep_ledger.tally").await;
        assert_eq!(unsettled, items / 4 * 3);
        for (before, (name, text, parameters)) in before.iter_mut().zip(HOT) {
            let plan = planned(&mut admin, text, parameters).await;
            let root = &plan[0]["Plan"];
            let pages = root["Shared Hit Blocks"].as_i64().expect("a number")
                + root["Shared Read Blocks"].as_i64().expect("a number");
            if items == 1_000 {
                *before = pages;
                continue;
            }
            // An index has a level more.
            assert!(pages <= *before * 2 + 50, "{name}: {before} pages, then {pages}: {plan:#}");
            assert!(most_rows(root) <= 1_000, "{name}: {plan:#}");
            let whole = scanned(root);
            assert!(!whole.iter().any(|table| table == "item"), "{name}: {plan:#}");
        }
    }
}

async fn planned(admin: &mut PgConnection, text: &str, parameters: &str) -> serde_json::Value {
    let sql = format!(
        "PREPARE hot AS {text}; BEGIN; \
         EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE hot ({parameters})"
    );
    let plan = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *admin).await.expect(text);
    let plan: String = plan.last().expect("a plan").get_unchecked(0);
    sqlx::raw_sql("ROLLBACK; DEALLOCATE hot").execute(admin).await.expect("undone");
    serde_json::from_str(&plan).expect("JSON")
}

/// The most rows that any step hands on or throws away.
fn most_rows(plan: &serde_json::Value) -> i64 {
    let of = |key: &str| plan[key].as_i64().unwrap_or(0);
    let own = of("Actual Rows").max(of("Rows Removed by Filter"));
    let steps = plan["Plans"].as_array().into_iter().flatten();
    steps.map(most_rows).fold(own, i64::max)
}

/// The tables that are read from end to end.
fn scanned(plan: &serde_json::Value) -> Vec<String> {
    let steps = plan["Plans"].as_array().into_iter().flatten();
    let mut found: Vec<String> = steps.flat_map(scanned).collect();
    if plan["Node Type"] == "Seq Scan" {
        found.extend(plan["Relation Name"].as_str().map(str::to_owned));
    }
    found
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
