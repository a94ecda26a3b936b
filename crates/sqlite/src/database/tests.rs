//! Files that cannot be opened are told apart, each in one line.

use std::time::Duration;

use truekeep_core::code::Code;

use super::*;
use crate::impatient;

const LEDGER: Options =
    Options { role: Role::Ledger, access: Access::Own, busy: Duration::from_millis(10) };
const SOURCE: Options =
    Options { role: Role::Source, access: Access::Guest, busy: Duration::from_millis(10) };

async fn refused(path: &Path, options: Options) -> (Code, FailureClass, String) {
    let error = Database::open(path, options).await.expect_err("cannot be opened");
    (error.code.clone(), error.class, error.chain())
}

#[tokio::test]
async fn each_unusable_file_is_told_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let (code, class, text) = refused(dir.path(), SOURCE).await;
    assert_eq!((code, class), (Code::SOURCE_UNAVAILABLE, FailureClass::Halted));
    assert!(text.contains("is a folder"), "{text}");
    let (_, _, text) = refused(&dir.path().join("none.db"), SOURCE).await;
    assert!(text.contains("there is no such file"), "{text}");
    let (_, _, text) = refused(&dir.path().join("no/where.db"), LEDGER).await;
    assert!(text.contains("there is no folder"), "{text}");
    let text_file = dir.path().join("text.db");
    std::fs::write(&text_file, "this is no database, but a text of some length".repeat(30))
        .expect("written");
    let (code, class, _) = refused(&text_file, SOURCE).await;
    assert_eq!((code, class), (Code::SOURCE_CORRUPT, FailureClass::Halted));
}

#[tokio::test]
async fn a_lock_that_lasts_is_retried() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.db");
    let ours = Database::open(&path, LEDGER).await.expect("opened");
    let other = Connection::open(&path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let error = ours
        .call("write", |db| Ok(db.execute_batch("BEGIN IMMEDIATE; COMMIT")?))
        .await
        .expect_err("locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::LEDGER_LOCKED));
}

/// Each try is a statement of its own: patience that is lost once is not lost for the next.
#[tokio::test]
async fn work_that_is_not_worth_a_wait_does_not_wait() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.db");
    let patient = Options { busy: Duration::from_secs(3_600), ..LEDGER };
    let ours = Database::open(&path, patient).await.expect("opened");
    let other = Connection::open(&path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let tried = |db: &mut Connection| {
        let begin = || db.execute_batch("BEGIN IMMEDIATE; COMMIT");
        Ok(impatient(Duration::from_millis(5), begin)?)
    };
    for _ in 0..2 {
        let error = ours.call("write", tried).await.expect_err("locked");
        assert_eq!((error.class, error.code), (FailureClass::Retry, Code::LEDGER_LOCKED));
    }
    let waiting = tokio::spawn(async move {
        ours.call("write", |db| Ok(db.execute_batch("BEGIN IMMEDIATE; COMMIT")?)).await
    });
    other.execute_batch("COMMIT").expect("released");
    waiting.await.expect("ended").expect("the others wait as long as ever");
}

#[tokio::test]
async fn what_is_ours_is_durable() {
    let dir = tempfile::tempdir().expect("a folder");
    let ours = Database::open(&dir.path().join("a.db"), LEDGER).await.expect("opened");
    let pragmas = ours
        .call("read pragmas", |db| {
            let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
            let sync: i64 = db.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
            Ok((mode, sync))
        })
        .await
        .expect("read");
    assert_eq!(pragmas, ("wal".to_owned(), 2));
}

#[tokio::test]
async fn all_that_open_a_new_file_at_once_succeed() {
    let dir = tempfile::tempdir().expect("a folder");
    let patient = Options { busy: Duration::from_secs(60), ..LEDGER };
    for round in 0..200 {
        let path: Arc<Path> = dir.path().join(format!("{round}.db")).into();
        let open = |_| {
            let path = Arc::clone(&path);
            tokio::spawn(async move { Database::open(&path, patient).await })
        };
        let opening: Vec<_> = (0..8).map(open).collect();
        for opened in opening {
            opened.await.expect("ended").expect("opened");
        }
    }
}
