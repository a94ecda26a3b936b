//! The schema: how a ledger is made, migrated, recognised and refused.

use rusqlite::Connection;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Announced, Announcement};
use truekeep_core::{Fingerprint, Incarnation, PipelineName};

use super::*;

const SECOND: Migration =
    Migration { number: 2, name: "second", sql: "CREATE TABLE second (one TEXT) STRICT;" };
const LATER: &[Migration] = &[SQLITE[0], SECOND];
const BROKEN: &[Migration] = &[
    SQLITE[0],
    Migration { number: 2, name: "broken", sql: "CREATE TABLE half (one TEXT); SELECT nothing;" },
];

async fn open(path: &Path, steps: &'static [Migration]) -> Result<SqliteLedger, PortError> {
    SqliteLedger::open_with(path, BUSY, steps, Clock::Database).await
}

async fn refused(path: &Path, steps: &'static [Migration]) -> PortError {
    open(path, steps).await.expect_err("refused")
}

async fn announced(ledger: &SqliteLedger) {
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

fn value(path: &Path, sql: &str) -> String {
    let connection = Connection::open(path).expect("opened");
    connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).map_or_else(
        |error| error.to_string(),
        |value| match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        },
    )
}

#[tokio::test]
async fn every_statement_prepares_on_a_migrated_database() {
    let subject = Subject::new().await;
    let prepared = subject.ledger.write("prepare", |transaction, _| {
        for (name, text) in sql::ALL {
            let statement = transaction.prepare(text);
            assert!(statement.is_ok(), "{name}: {statement:?}");
            assert!(text.starts_with("-- "), "{name} says what it is for");
        }
        Ok(())
    });
    prepared.await.expect("prepared");
}

/// The other tables have a row per scope; these two can be large.
#[tokio::test]
async fn no_statement_reads_all_items_or_all_history() {
    let subject = Subject::new().await;
    let planned = subject.ledger.read("plan", |connection, _| {
        for (name, text) in sql::ALL {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}"))?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                let step: String = row.get("detail")?;
                for large in ["item", "i", "event"] {
                    assert!(
                        !format!("{step} ").contains(&format!("SCAN {large} ")),
                        "{name}: {step}"
                    );
                }
            }
        }
        Ok(())
    });
    planned.await.expect("planned");
}

/// Rule 24.
#[tokio::test]
async fn an_older_schema_is_refused_until_it_is_migrated_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let ledger = open(&path, SQLITE).await.expect("made");
    announced(&ledger).await;
    let identity = ledger.identity().await.expect("an identity");
    drop(ledger);
    let error = refused(&path, LATER).await;
    assert_eq!((error.class, error.code.clone()), (FailureClass::Halted, Code::LEDGER_VERSION));
    assert!(error.chain().contains("truekeep migrate"), "{}", error.chain());
    let mut reports = Vec::new();
    for _ in 0..2 {
        reports.push(super::super::schema::migrate(&path, BUSY, LATER).await.expect("migrated"));
    }
    assert_eq!(reports[0], MigrationReport { before: 1, after: 2 });
    assert_eq!(reports[1], MigrationReport { before: 2, after: 2 });
    let ledger = open(&path, LATER).await.expect("opened");
    assert_eq!(ledger.identity().await.expect("an identity"), identity);
    assert_eq!(ledger.pipelines().await.expect("pipelines").len(), 1);
}

/// Rule 24.
#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    drop(open(&path, LATER).await.expect("made"));
    let error = refused(&path, SQLITE).await;
    assert_eq!((error.class, error.code.clone()), (FailureClass::Halted, Code::LEDGER_VERSION));
    assert!(!error.chain().contains("truekeep migrate"), "that would not help");
    let error = SqliteLedger::migrate(&path, BUSY).await.expect_err("refused");
    assert_eq!(error.code, Code::LEDGER_VERSION);
    assert_eq!(value(&path, "PRAGMA user_version"), "2");
}

/// Rule 24: each step is taken once, however many take it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn migrations_at_once_have_one_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    drop(open(&path, SQLITE).await.expect("made"));
    let mut tries = Vec::new();
    for _ in 0..8 {
        let path = path.clone();
        let migrate = async move { super::super::schema::migrate(&path, BUSY, LATER).await };
        tries.push(tokio::spawn(migrate));
    }
    for attempt in tries {
        let report = attempt.await.expect("no panic").expect("migrated");
        assert_eq!(report.after, 2);
    }
    open(&path, LATER).await.expect("opened");
}

/// Two processes that start on a new path make one ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_ledger_that_is_opened_at_once_is_one_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let mut tries = Vec::new();
    for _ in 0..8 {
        let path = path.clone();
        tries.push(tokio::spawn(async move { open(&path, LATER).await }));
    }
    let mut identities = Vec::new();
    for attempt in tries {
        let ledger = attempt.await.expect("no panic").expect("opened");
        identities.push(ledger.identity().await.expect("an identity"));
    }
    identities.dedup();
    assert_eq!(identities.len(), 1, "{identities:?}");
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_version_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    drop(open(&path, SQLITE).await.expect("made"));
    super::super::schema::migrate(&path, BUSY, BROKEN).await.expect_err("the step fails");
    assert_eq!(value(&path, "PRAGMA user_version"), "1");
    assert_eq!(value(&path, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), "0");
    open(&path, SQLITE).await.expect("still a ledger");
}

#[tokio::test]
async fn another_programs_database_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    for version in [0, 1] {
        let path = folder.path().join(format!("app-{version}.db"));
        let app = Connection::open(&path).expect("opened");
        app.execute_batch("CREATE TABLE users (name TEXT)").expect("made");
        app.pragma_update(None, "user_version", version).expect("set");
        let before = std::fs::read(&path).expect("read");
        for error in [
            refused(&path, SQLITE).await,
            SqliteLedger::migrate(&path, BUSY).await.expect_err("refused"),
        ] {
            assert_eq!((error.class, error.code), (FailureClass::Halted, Code::LEDGER_CORRUPT));
        }
        assert_eq!(std::fs::read(&path).expect("read"), before);
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_an_empty_file_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    std::fs::write(&path, "no database at all, but long enough to be looked at").expect("written");
    assert_eq!(refused(&path, SQLITE).await.code, Code::LEDGER_CORRUPT);
    assert_eq!(refused(folder.path(), SQLITE).await.code, Code::LEDGER_UNAVAILABLE);
    let lost = folder.path().join("absent").join("ledger.db");
    assert_eq!(refused(&lost, SQLITE).await.code, Code::LEDGER_UNAVAILABLE);
    std::fs::write(&path, "").expect("written");
    open(&path, SQLITE).await.expect("made");
}

#[tokio::test]
async fn what_is_ours_survives_a_power_cut() {
    let subject = Subject::new().await;
    let settings = subject.ledger.writer.call("read the settings", |connection| {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let sync: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        Ok((mode, sync))
    });
    assert_eq!(settings.await.expect("settings"), ("wal".to_owned(), 2), "WAL with FULL");
}
