//! Transactions against a real server: their settings, their failures, their secrets.

use std::time::Duration;

use sqlx::Row;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_postgres_server::TestDatabase;

use crate::{Access, Database, Failure, Options, Role, Transaction};

const WRITE: Access<'_> = Access::Write { statement_max: Duration::from_secs(10) };
const READ: Access<'_> = Access::Snapshot { of: &[], statement_max: Duration::from_secs(10) };

async fn opened(test: &TestDatabase) -> Database {
    Database::open(&test.address, Options::of(Role::Source)).await.expect("opened")
}

async fn fails(database: &Database, sql: &str) -> PortError {
    let mut transaction = database.begin("test", WRITE).await.expect("begun");
    let work = transaction.run(sql).await.map_err(Failure::from);
    transaction.end(work).await.expect_err(sql)
}

/// X55: what a role or a database prefers decides nothing of ours, and each transaction reads its
/// settings back.
#[tokio::test]
async fn each_transaction_brings_its_settings_and_reads_them_back() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let mut admin = test.connect().await;
    for setting in [
        "synchronous_commit = off",
        "lock_timeout = 0",
        "DateStyle = 'German, DMY'",
        "TimeZone = 'Asia/Kathmandu'",
    ] {
        let sql = format!("ALTER DATABASE {} SET {setting}", test.name);
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.expect("set");
    }
    let database = opened(&test).await;
    for access in [READ, WRITE] {
        let mut transaction = database.begin("test", access).await.expect("begun");
        let query = "SELECT current_setting('synchronous_commit') || current_setting('lock_timeout')
             || current_setting('row_security') || current_setting('TimeZone') || '2026-01-02'::date";
        let row = transaction.row(Transaction::query(query)).await.expect("a row");
        assert_eq!(row.get::<String, _>(0), "on200msoffUTC2026-01-02");
        transaction.confirm().await.expect("in force");
        transaction.run("SET LOCAL row_security = on").await.expect("set");
        let Err(Failure::Port(error)) = transaction.confirm().await else { panic!("not noticed") };
        assert_eq!(error.class, FailureClass::Halted);
        let ended = transaction.end::<()>(Err(error.into())).await;
        assert!(ended.is_err());
    }
}

/// The mapping is tested by causing the trouble.
#[tokio::test]
async fn trouble_has_the_class_that_it_has() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let database = opened(&test).await;
    let mut admin = test.connect().await;
    sqlx::raw_sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")
        .execute(&mut admin)
        .await
        .expect("made");
    for (sql, class, code) in [
        ("SELECT 1 / 0", FailureClass::Terminal, Code::SOURCE_READ_FAILED),
        ("INSERT INTO t VALUES (1)", FailureClass::Terminal, Code::SOURCE_READ_FAILED),
        ("SELECT nothing", FailureClass::Terminal, Code::SOURCE_READ_FAILED),
        (
            "SELECT pg_terminate_backend(pg_backend_pid())",
            FailureClass::Retry,
            Code::SOURCE_UNAVAILABLE,
        ),
        (
            "SET LOCAL statement_timeout = 1; SELECT pg_sleep(60)",
            FailureClass::Retry,
            Code::SOURCE_READ_FAILED,
        ),
    ] {
        let error = fails(&database, sql).await;
        assert_eq!((error.class, error.code), (class, code), "{sql}");
    }
    sqlx::raw_sql("BEGIN; LOCK TABLE t").execute(&mut admin).await.expect("locked");
    let error = fails(&database, "SELECT * FROM t").await;
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_LOCKED));
    // A spoiled connection is never handed out again.
    database.begin("test", READ).await.expect("begun").end(Ok(())).await.expect("ended");
}

/// A commit that is not answered may have happened; a read that is not answered did nothing.
#[tokio::test]
async fn an_unanswered_commit_is_unknown() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    let database = opened(&test).await;
    let mut admin = test.connect().await;
    for (access, class) in [(WRITE, FailureClass::Unknown), (READ, FailureClass::Retry)] {
        let mut transaction = database.begin("test", access).await.expect("begun");
        let row =
            transaction.row(Transaction::query("SELECT pg_backend_pid()")).await.expect("a row");
        let ended = sqlx::query("SELECT pg_terminate_backend($1, 10000)")
            .bind(row.get::<i32, _>(0))
            .fetch_one(&mut admin)
            .await
            .expect("ended");
        assert!(ended.get::<bool, _>(0));
        let error = transaction.end(Ok(())).await.expect_err("no answer");
        assert_eq!(error.class, class);
    }
}

/// Neither an error nor a description tells a password, however odd it is.
#[tokio::test]
async fn a_password_is_never_told() {
    for address in [
        "postgres://me:s3cr%2Ft%40@127.0.0.1:1/none",
        "postgres://me:s3cr/t@127.0.0.1:1:none",
        "postgres://me:s3cr t@[::1/x?sslmode=what",
        "s3cr",
    ] {
        let options = Options { patience: Duration::from_millis(100), ..Options::of(Role::Ledger) };
        let error = Database::open(address, options).await.expect_err("none");
        for text in [error.chain(), format!("{error:?}")] {
            assert!(!text.contains("s3cr"), "{text}");
        }
    }
}
