//! Whether a place is one that the feed gave: a source that was restored and then overtaken is told
//! by the stamps of its numbers, whatever was acknowledged before.

use std::path::PathBuf;
use std::time::Duration;

use truekeep_adapter_sqlite::{RelationSpec, SqliteSource, Watch};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, CaptureState, Feed, Registration};
use truekeep_core::{Moment, Place, RegistrationCounter};

use crate::fixture::{App, Asked, consumer};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0)";

/// The place after everything that there is.
async fn end(source: &SqliteSource) -> Place {
    source.changes(&consumer(), &Place::START, 1_000).await.expect("a page").next
}

async fn acknowledge(source: &SqliteSource, counter: u64, passed: Moment) {
    let counter = RegistrationCounter::new(counter);
    let registration = Registration { counter, passed };
    source.register(&consumer(), &registration).await.expect("registered");
}

/// Whether the source knows a place, by a page and by a look.
async fn knows(source: &SqliteSource, place: &Place) -> bool {
    let page = source.changes(&consumer(), place, 10).await.expect("a page");
    let view = source.view(&consumer(), place).await.expect("a view");
    assert_eq!(page.view.continues, view.continues);
    view.continues
}

/// A copy of the file, as a backup takes it beside an application.
fn back_up(app: &App, name: &str) -> PathBuf {
    app.run("PRAGMA wal_checkpoint(TRUNCATE)");
    let copy = app.path().with_extension(name);
    std::fs::copy(app.path(), &copy).expect("copied");
    copy
}

/// Puts a copy in the place of the file.
fn restore(app: &mut App, copy: &PathBuf) {
    app.db = rusqlite::Connection::open_in_memory().expect("opened");
    for side in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{side}", app.path().display()));
    }
    let aside = app.path().with_extension("aside");
    std::fs::copy(copy, &aside).expect("copied");
    std::fs::rename(aside, app.path()).expect("replaced");
    app.db = app.connect();
}

fn updates(app: &App, count: u32) {
    for _ in 0..count {
        app.run("UPDATE t SET v = v + 1 WHERE id = 1");
    }
}

/// Rule 121: whatever was acknowledged, a place of a lost future is none of a source that was
/// restored to before it and has gone on past it; one of the time before the backup is.
#[tokio::test]
async fn a_place_of_a_lost_future_is_told_once_it_is_overtaken() {
    for acknowledged_since in [false, true] {
        let mut app = App::new(SCHEMA);
        let source = app.t().await;
        updates(&app, 3);
        let before = end(&source).await;
        acknowledge(&source, 1, before.passed.clone()).await;
        let copy = back_up(&app, "backup");
        updates(&app, 5);
        let lost = end(&source).await;
        if acknowledged_since {
            acknowledge(&source, 2, lost.passed.clone()).await;
        }
        assert!(knows(&source, &lost).await && knows(&source, &before).await);
        let now = back_up(&app, "now");
        restore(&mut app, &copy);
        assert!(!knows(&source, &lost).await, "it is behind");
        updates(&app, 3);
        assert!(!knows(&source, &lost).await, "it is still behind");
        updates(&app, 2);
        assert!(!knows(&source, &lost).await, "it is at the same number");
        updates(&app, 50);
        assert!(!knows(&source, &lost).await, "it is beyond");
        assert!(knows(&source, &before).await && knows(&source, &Place::START).await);
        restore(&mut app, &now);
        assert!(knows(&source, &lost).await, "the real one is back");
    }
}

/// A number that was given to something else in the new future has no stamp at all.
#[tokio::test]
async fn a_place_whose_number_is_a_marks_now_is_told() {
    let mut app = App::new(
        "CREATE TABLE author (id INTEGER PRIMARY KEY, name); CREATE TABLE t (id INTEGER PRIMARY KEY, v);
         INSERT INTO author VALUES (1, ''); INSERT INTO t VALUES (1, 0)",
    );
    let parent =
        Watch::Parent { table: "author".into(), via: vec!["v".into()], key: vec!["id".into()] };
    let spec = RelationSpec { watch: vec![parent], ..RelationSpec::of("t") };
    let source = app.source(spec).await;
    acknowledge(&source, 1, end(&source).await.passed).await;
    let copy = back_up(&app, "backup");
    updates(&app, 4);
    let lost = end(&source).await;
    restore(&mut app, &copy);
    for _ in 0..6 {
        app.run("UPDATE author SET name = name || '+'");
    }
    assert!(!knows(&source, &lost).await);
}

/// Outdated numbers keep their stamps from what a consumer acknowledged on, since its cursor is one
/// of them; below, they are swept.
#[tokio::test]
async fn stamps_are_kept_from_the_acknowledged_number_on() {
    let app = App::new(SCHEMA);
    let source = app.t().await;
    let mut places = Vec::new();
    for _ in 0..9 {
        updates(&app, 1);
        places.push(end(&source).await);
    }
    acknowledge(&source, 1, places[4].passed.clone()).await;
    while source.prune().await.expect("pruned") > 0 {}
    let left = || {
        let select =
            "SELECT group_concat(version) FROM (SELECT * FROM truekeep_order_t ORDER BY 1)";
        app.db.query_row(select, [], |row| row.get::<_, String>(0)).expect("some")
    };
    let numbers: Vec<String> = places[4..].iter().map(|place| place.passed.to_string()).collect();
    assert_eq!(left(), numbers.join(","));
    for place in &places {
        assert!(knows(&source, place).await);
        let other = Place { rest: "00".repeat(8), ..place.clone() };
        let kept = place.passed.includes(&places[4].passed);
        assert_eq!(knows(&source, &other).await, !kept, "nothing is known of what was swept");
    }
    acknowledge(&source, 2, places[8].passed.clone()).await;
    while source.prune().await.expect("pruned") > 0 {}
    assert_eq!(left(), numbers[4]);
}

/// Tables of an earlier form are no feed: they are made anew, and nothing of the application fails.
#[tokio::test]
async fn a_feed_of_an_earlier_form_is_begun_anew() {
    let app = App::new(SCHEMA);
    let source = app.t().await;
    let before = end(&source).await;
    let old = source.view(&consumer(), &before).await.expect("a view").incarnation;
    let earlier = "DROP TABLE truekeep_order_t;
        CREATE TABLE truekeep_order_t (version INTEGER PRIMARY KEY, key TEXT NOT NULL)";
    app.connect().execute_batch(earlier).expect("changed");
    let state = source.verify().await.expect("verified").state;
    assert_eq!(state, CaptureState::Broken(Code::CAPTURE_MISSING));
    source.capture().await;
    updates(&app, 1);
    assert_eq!(source.changed(0).await, ["1"]);
    assert_ne!(source.view(&consumer(), &before).await.expect("a view").incarnation, old);
}

/// A burst's outdated numbers go though nothing is acknowledged any more; afterwards a look finds
/// nothing to write.
#[tokio::test]
async fn outdated_numbers_go_while_nothing_happens() {
    let app = App::new(SCHEMA);
    let source = app.t().await;
    app.run(
        "WITH n (i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t SELECT i, 0 FROM n; UPDATE t SET v = 1; UPDATE t SET v = 2",
    );
    let newest = source.newest().await;
    let place = source.page(newest, 1).await.view.newest;
    acknowledge(&source, 1, place).await;
    let count = || -> i64 {
        let select = "SELECT count(*) FROM truekeep_order_t";
        app.db.query_row(select, [], |row| row.get(0)).expect("counted")
    };
    assert!(count() > 50_000);
    let mut calls = 0;
    while source.prune().await.expect("pruned") > 0 {
        calls += 1;
    }
    assert!(calls >= 10, "one call looks at a bounded number: {calls}");
    assert_eq!(count(), 20_000);
    app.run("BEGIN IMMEDIATE");
    assert_eq!(source.prune().await.expect("no lock is asked for"), 0);
}

/// An application that keeps the lock is worth more than a short feed; what could not be removed is
/// removed by a later call.
#[tokio::test]
async fn pruning_waits_for_no_application() {
    const PATIENCE: Duration = Duration::from_secs(3_600);
    let app = App::new(SCHEMA);
    app.t().await;
    let spec = RelationSpec::of("t");
    let source = SqliteSource::open(app.path(), spec, PATIENCE).await.expect("opened");
    updates(&app, 9);
    acknowledge(&source, 1, end(&source).await.passed).await;
    app.run("BEGIN IMMEDIATE");
    let pruned = tokio::time::timeout(Duration::from_secs(60), source.prune()).await;
    let error = pruned.expect("less than any patience").expect_err("it is locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_LOCKED));
    app.run("COMMIT");
    while source.prune().await.expect("pruned") > 0 {}
    let count = "SELECT count(*) FROM truekeep_order_t";
    assert_eq!(app.db.query_row(count, [], |row| row.get(0)), Ok(1));
}
