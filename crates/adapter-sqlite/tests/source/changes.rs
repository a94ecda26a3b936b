//! Changes of every kind, each with what the feed says of it.

use rusqlite::ErrorCode;
use truekeep_adapter_sqlite::SqliteSource;
use truekeep_core::ports::{Capture, Feed, Loaded};
use truekeep_core::{Moment, Value, Version};

use crate::fixture::{App, Asked, consumer, value};

/// The keys that changed since a version, each with whether its row is gone.
async fn outcome(source: &SqliteSource, after: u64) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for key in source.changed(after).await {
        let gone = source.one(&key).await == Loaded::Absent;
        all.push((key, gone));
    }
    all
}

/// A statement, whether it works, and the keys that it changes, each with whether its row is gone.
type Form = (&'static str, bool, &'static [(&'static str, bool)]);

/// X23: an OR clause of the outer statement overrides every other clause inside a trigger; each of
/// the nine forms leaves the feed right, and none makes the application's statement fail.
#[tokio::test]
async fn no_outer_or_clause_disturbs_the_feed() {
    let forms: &[Form] = &[
        ("INSERT OR IGNORE INTO t VALUES (1, 'b')", true, &[]),
        ("INSERT OR REPLACE INTO t VALUES (1, 'b')", true, &[("1", false)]),
        ("UPDATE OR IGNORE t SET v = 'b' WHERE id = 1", true, &[("1", false)]),
        ("UPDATE OR REPLACE t SET v = 'b' WHERE id = 1", true, &[("1", false)]),
        (
            "INSERT INTO t VALUES (1, 'b') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
            true,
            &[("1", false)],
        ),
        ("INSERT OR FAIL INTO t VALUES (2, 'b')", true, &[("2", false)]),
        ("INSERT OR ROLLBACK INTO t VALUES (2, 'b')", true, &[("2", false)]),
        ("UPDATE OR ROLLBACK t SET v = 'b' WHERE id = 1", true, &[("1", false)]),
        ("UPDATE OR FAIL t SET v = 'b' WHERE id = 1", true, &[("1", false)]),
        ("INSERT OR FAIL INTO t VALUES (2, 'b'), (1, 'b')", false, &[("2", false)]),
        ("INSERT OR ABORT INTO t VALUES (2, 'b'), (1, 'b')", false, &[]),
        ("UPDATE OR REPLACE t SET id = 1 WHERE id = 5", true, &[("1", false), ("5", true)]),
        ("UPDATE OR REPLACE t SET u = 'one' WHERE id = 5", true, &[("1", true), ("5", false)]),
        ("INSERT OR REPLACE INTO t VALUES (6, 'x', 'one')", true, &[("1", true), ("6", false)]),
        ("REPLACE INTO t VALUES (1, 'x', 'five')", true, &[("1", false), ("5", true)]),
    ];
    for recursive in ["OFF", "ON"] {
        for (statement, works, wanted) in forms {
            let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v, u UNIQUE)");
            app.run(&format!("PRAGMA recursive_triggers = {recursive}"));
            let source = app.t().await;
            app.run("INSERT INTO t VALUES (1, 'a', 'one'), (5, 'e', 'five')");
            let before = source.newest().await;
            let statement =
                statement.replace("INTO t VALUES (1, 'b')", "INTO t (id, v) VALUES (1, 'b')");
            let statement =
                statement.replace("INTO t VALUES (2, 'b')", "INTO t (id, v) VALUES (2, 'b')");
            let done = app.db.execute_batch(&statement);
            let refused = done.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
            assert_eq!(refused, (!works).then_some(ErrorCode::ConstraintViolation), "{statement}");
            let wanted: Vec<(String, bool)> =
                wanted.iter().map(|(key, gone)| ((*key).to_owned(), *gone)).collect();
            assert_eq!(outcome(&source, before).await, wanted, "{statement} {recursive}");
        }
    }
}

/// X8: swap, shift, delete and reuse of keys: no live row is called deleted.
#[tokio::test]
async fn keys_that_change_places_are_live() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let source = app.t().await;
    app.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    for (statement, tombstones) in [
        ("UPDATE t SET id = id + 1 WHERE id = 3; UPDATE t SET id = id + 1 WHERE id = 2", vec!["2"]),
        ("UPDATE t SET id = -id; UPDATE t SET id = 5 + id", vec!["-1", "-3", "-4", "3"]),
        ("BEGIN; DELETE FROM t WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2; COMMIT", vec!["2"]),
        ("BEGIN; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'again'); COMMIT", vec![]),
        ("DELETE FROM t", vec!["1", "4"]),
    ] {
        let before = source.newest().await;
        app.run(statement);
        let changes = source.changes_after(before).await;
        let gone: Vec<&str> = changes
            .iter()
            .filter(|(_, change)| change.deleted)
            .map(|(key, _)| key.as_str())
            .collect();
        let rows: Vec<String> = app
            .db
            .prepare("SELECT id FROM t ORDER BY CAST(id AS TEXT)")
            .expect("prepared")
            .query_map([], |row| row.get::<_, i64>(0).map(|id| id.to_string()))
            .expect("queried")
            .collect::<Result<_, _>>()
            .expect("read");
        assert_eq!(source.listed().await, rows, "{statement}");
        for key in tombstones {
            assert!(gone.contains(&key), "{statement}: {key} in {gone:?}");
        }
    }
}

/// Cascades of foreign keys, also those of DROP TABLE, are changes of the rows they reach.
#[tokio::test]
async fn cascades_are_recorded() {
    let app = App::new(
        "PRAGMA foreign_keys = ON; CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
         INSERT INTO p VALUES (1), (2), (3); INSERT INTO t VALUES (10, 1), (20, 2), (30, 3)",
    );
    let source = app.t().await;
    let before = source.newest().await;
    app.run("DELETE FROM p WHERE id = 1; UPDATE p SET id = 7 WHERE id = 2");
    assert_eq!(outcome(&source, before).await, [("10".into(), true), ("20".into(), false)]);
    assert_eq!(value(&source.document("20").await, "p"), Value::Integer(7));
    let before = source.newest().await;
    app.run("DROP TABLE p");
    assert_eq!(outcome(&source, before).await, [("20".into(), true), ("30".into(), true)]);
}

/// One transaction of a million rows is one run of numbers, read in pages.
#[tokio::test]
async fn a_large_transaction_is_read_in_pages() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let source = app.t().await;
    let rows = 1_000_000;
    app.run(&format!(
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, 'v' || i FROM n"
    ));
    let (mut after, mut seen) = (0, 0);
    loop {
        let page = source.page(after, 10_000).await;
        seen += page.changes.len();
        after = page.next.passed.newest().get();
        if page.end {
            assert_eq!(page.moment.map(|moment| moment.newest().get()), Some(after));
            break;
        }
        assert_eq!(page.moment, None);
    }
    assert_eq!(seen, rows);
}

/// A client that reads the counter in its own transaction has a token that orders its change.
#[tokio::test]
async fn the_counter_in_a_transaction_is_a_token() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let source = app.t().await;
    app.run("BEGIN; INSERT INTO t VALUES (1, 'a')");
    let token: u64 = app
        .db
        .query_row("SELECT newest FROM truekeep_counter_t", [], |row| row.get(0))
        .expect("a token");
    app.run("COMMIT; INSERT INTO t VALUES (2, 'b')");
    let changes = source.changes_after(0).await;
    assert_eq!(changes["1"].version.get(), token);
    assert!(changes["2"].version.get() > token);
}

/// What a REPLACE removed is settled when the feed is pruned, and is then pruned like a tombstone.
#[tokio::test]
async fn what_a_replace_removed_is_pruned_in_the_end() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE)");
    let source = app.t().await;
    app.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    app.run("REPLACE INTO t VALUES (3, 'a'); INSERT OR IGNORE INTO t VALUES (4, 'b')");
    let changes = source.changes_after(0).await;
    assert!(!changes["1"].deleted, "its trigger ran before it went");
    let page = source.audit(None, 100).await.expect("a page");
    assert_eq!(page.ghosts, []);
    let registration = truekeep_core::ports::Registration {
        counter: truekeep_core::RegistrationCounter::new(1),
        passed: Moment::at(
            changes["2"].version.max(changes["1"].version).max(changes["3"].version),
        ),
    };
    source.register(&consumer(), &registration).await.expect("registered");
    while source.prune().await.expect("pruned") > 0 {}
    assert_eq!(source.changed(0).await, ["2", "3"]);
    assert_eq!(source.listed().await, ["2", "3"]);
}

/// Outdated numbers are passed over by pages, which go on behind them, and swept by pruning.
#[tokio::test]
async fn outdated_numbers_are_passed_over_and_swept() {
    let app =
        App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0), (2, 0)");
    let source = app.t().await;
    for _ in 0..100 {
        app.run("UPDATE t SET v = v + 1 WHERE id = 1");
    }
    app.run("UPDATE t SET v = 1 WHERE id = 2");
    let (mut after, mut seen, mut pages) = (0, Vec::new(), 0);
    loop {
        let page = source.page(after, 1).await;
        seen.extend(page.changes.iter().map(|change| change.key.to_string()));
        pages += 1;
        if page.end {
            break;
        }
        assert!(page.next.passed.newest().get() > after, "a page without changes goes on");
        after = page.next.passed.newest().get();
    }
    assert_eq!(seen, ["1", "2"]);
    assert!(pages > 2, "some pages hold only outdated numbers");
    let passed = Moment::at(Version::new(after));
    let registration = truekeep_core::ports::Registration {
        counter: truekeep_core::RegistrationCounter::new(1),
        passed,
    };
    source.register(&consumer(), &registration).await.expect("registered");
    source.prune().await.expect("pruned");
    let left: i64 = app
        .db
        .query_row("SELECT count(*) FROM truekeep_order_t", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(left, 2, "one number a key is left");
    assert_eq!(source.changed(0).await, ["1", "2"]);
}
