//! Files: what cannot be opened, what is replaced, and what is synced before it is used.

use std::time::Duration;

use rusqlite::Connection;
use truekeep_adapter_sqlite::{RelationSpec, SqliteSource, introspect};
use truekeep_core::Place;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Feed, Loaded, Records};

use crate::fixture::{App, Asked, BUSY, consumer, key};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a')";

/// A missing file, a folder and what is no database are told apart.
#[tokio::test]
async fn each_unusable_file_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let junk = folder.path().join("junk.db");
    std::fs::write(&junk, "no database, but long enough to be read as a page of one ".repeat(40))
        .expect("written");
    let cases = [
        (folder.path().join("none.db"), Code::SOURCE_UNAVAILABLE, "no such file"),
        (folder.path().to_owned(), Code::SOURCE_UNAVAILABLE, "is a folder"),
        (junk, Code::SOURCE_CORRUPT, "not a database"),
    ];
    for (path, code, text) in cases {
        let error =
            SqliteSource::open(&path, RelationSpec::of("t"), BUSY).await.expect_err("refused");
        assert_eq!((error.class, &error.code), (FailureClass::Halted, &code));
        assert!(error.chain().contains(text), "{}", error.chain());
        introspect(&path, BUSY).await.expect_err("refused");
    }
}

/// A lock that lasts is a failure that passes; reads go on beside it in WAL mode.
#[tokio::test]
async fn a_lock_that_lasts_is_retried() {
    let app = App::new(SCHEMA);
    app.t().await;
    let short = Duration::from_millis(1);
    let source =
        SqliteSource::open(app.path(), RelationSpec::of("t"), short).await.expect("opened");
    app.run("BEGIN IMMEDIATE; UPDATE t SET v = 'b'");
    let error = source.number(&[]).await.expect_err("locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_LOCKED));
    assert_eq!(source.changed(0).await, ["1"]);
    app.run("COMMIT");
    source.number(&[]).await.expect("numbered");
}

/// A file that may not be written can be opened, and says what is wrong when it is to be written.
#[tokio::test]
async fn a_read_only_connection_is_an_operators() {
    let app = App::in_mode("delete", SCHEMA);
    let source = app.open(RelationSpec::of("t")).await.expect("opened");
    app.db.pragma_update(None, "locking_mode", "exclusive").expect("set");
    app.run("BEGIN EXCLUSIVE");
    let short = Duration::from_millis(1);
    let error =
        SqliteSource::open(app.path(), RelationSpec::of("t"), short).await.expect_err("locked");
    assert_eq!(error.class, FailureClass::Retry);
    app.run("COMMIT");
    drop(source);
}

/// A database that was put in another's place is read, not the one that nobody sees any more.
#[tokio::test]
async fn a_file_that_was_replaced_is_opened_anew() {
    let app = App::new(SCHEMA);
    let source = app.t().await;
    let before = source.page(0, 1).await.view.incarnation;
    let other =
        App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'other')");
    other.t().await;
    let moved = app.path().with_extension("moved");
    other.run(&format!("VACUUM INTO '{}'", moved.display()));
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", app.path().display()));
    }
    std::fs::rename(&moved, app.path()).expect("moved");
    assert_ne!(source.page(0, 1).await.view.incarnation, before);
    assert!(matches!(source.one("1").await, Loaded::Live(_)));
    std::fs::remove_file(app.path()).expect("removed");
    let error = source.changes(&consumer(), &Place::START, 1).await.expect_err("gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SOURCE_UNAVAILABLE));
}

/// X2, S2, X42: what a snapshot saw is synced before it is used: where the sync fails, nothing is
/// answered; what was synced once is not synced again while nobody commits.
#[cfg(unix)]
#[tokio::test]
async fn nothing_is_used_that_could_not_be_synced() {
    let app = App::new(SCHEMA);
    let source = app.t().await;
    app.run("UPDATE t SET v = 'b'");
    source.page(0, 10).await;
    // The connections keep their open file; our sync goes by the path.
    let wal = format!("{}-wal", app.path().display());
    let aside = format!("{wal}.aside");
    std::fs::rename(&wal, &aside).expect("renamed");
    std::os::unix::fs::symlink(&wal, &wal).expect("a link to itself");
    source.page(0, 10).await;
    app.run("UPDATE t SET v = 'c'");
    for _ in 0..2 {
        let error = source.changes(&consumer(), &Place::START, 10).await.expect_err("not synced");
        assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_UNAVAILABLE));
    }
    source.load(&[key("1")], usize::MAX).await.expect_err("not synced");
    source.keys(None, 10).await.expect_err("not synced");
    source.find(&[key("1")]).await.expect_err("not synced");
    std::fs::remove_file(&wal).expect("removed");
    std::fs::rename(&aside, &wal).expect("renamed");
    assert_eq!(source.page(0, 10).await.changes.len(), 1);
}

/// What the second process of the next test does, in place of a test of its own.
const WRITER: &str = "TRUEKEEP_TEST_WRITER";

/// X56: syncing the database file leaves this process's locks on it alone. A second process tries
/// to write while this one holds the lock.
#[test]
fn syncing_leaves_our_locks_alone() {
    if let Ok(path) = std::env::var(WRITER) {
        let db = Connection::open(path).expect("opened");
        db.busy_timeout(Duration::ZERO).expect("set");
        let locked = db.execute_batch("BEGIN IMMEDIATE; COMMIT").is_err();
        assert!(locked, "the lock is gone");
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let app = App::in_mode("delete", SCHEMA);
    runtime.block_on(async {
        let source = app.t().await;
        let writer = app.connect();
        writer.execute_batch("BEGIN IMMEDIATE").expect("locked");
        source.page(0, 10).await;
        let tried = std::process::Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "files::syncing_leaves_our_locks_alone"])
            .env(WRITER, app.path())
            .output()
            .expect("run");
        assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stdout));
    });
}

/// Each table of a database is listed with its key and, if it cannot be followed, the reason.
#[tokio::test]
async fn a_database_is_introspected() {
    let app = App::new(
        "CREATE TABLE a (x INT, y TEXT, PRIMARY KEY (y, x)); CREATE TABLE b (x);
         CREATE VIEW c AS SELECT * FROM a; CREATE TABLE d (k TEXT COLLATE NOCASE PRIMARY KEY);
         CREATE VIRTUAL TABLE e USING fts5(z)",
    );
    app.source(RelationSpec::of("a")).await;
    let found = introspect(&app.path(), BUSY).await.expect("listed");
    let told: Vec<(&str, Vec<String>, Option<&str>)> = found
        .iter()
        .map(|t| (t.name.as_str(), t.primary_key.clone(), t.refusal.as_deref()))
        .collect();
    assert_eq!(told[0], ("a", vec!["y".to_owned(), "x".to_owned()], None));
    assert_eq!(found[0].columns.len(), 2);
    let reasons = [("b", "no primary key"), ("c", "is a view"), ("d", "NOCASE"), ("e", "virtual")];
    for ((name, _, refusal), (wanted, reason)) in told[1..].iter().zip(reasons) {
        assert_eq!(*name, wanted);
        assert!(refusal.is_some_and(|refusal| refusal.contains(reason)), "{refusal:?}");
    }
    assert_eq!(told.len(), 5);
}
