//! Changes of related tables, and the marks they leave.

use truekeep_adapter_sqlite::{Cause, Projection, RelationSpec, SqliteSource, Unindexed, Watch};
use truekeep_core::failure::FailureClass;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{Capture, Feed};
use truekeep_core::{Moment, Version};

use crate::fixture::{App, Asked, text, value};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn related() -> RelationSpec {
    let query =
        "SELECT t.title, a.name, (SELECT count(*) FROM variant v WHERE v.t = t.id) AS variants
                 FROM t LEFT JOIN author a ON a.id = t.author WHERE t.id = :id";
    RelationSpec {
        document: Projection::Sql { query: query.into(), json: Vec::new() },
        watch: vec![
            Watch::Child { table: "variant".into(), key: names(&["t"]) },
            Watch::Parent { table: "author".into(), via: names(&["author"]), key: Vec::new() },
        ],
        ..RelationSpec::of("t")
    }
}

const RELATED: &str = "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE t (id INTEGER PRIMARY KEY, title TEXT, author INTEGER);
    CREATE INDEX by_author ON t (author);
    CREATE TABLE variant (id INTEGER PRIMARY KEY, t TEXT);";

/// X70: a child's key column of another type reaches its parent all the same.
#[tokio::test]
async fn a_childs_key_is_read_as_the_parents_type() {
    let app = App::new(RELATED);
    let source = app.source(related()).await;
    app.run("INSERT INTO t VALUES (1, 'a', 9), (2, 'b', 9)");
    let before = source.newest().await;
    app.run("INSERT INTO variant VALUES (1, '1'), (2, '01'), (3, 'none'), (4, NULL)");
    assert_eq!(source.changed(before).await, ["1"]);
    let before = source.newest().await;
    app.run("UPDATE variant SET t = '2' WHERE id = 1");
    assert_eq!(source.changed(before).await, ["1", "2"]);
    let before = source.newest().await;
    app.run("REPLACE INTO variant VALUES (1, '1')");
    assert_eq!(
        source.changed(before).await,
        ["1", "2"],
        "the child that was replaced had a parent too"
    );
    let before = source.newest().await;
    app.run("DELETE FROM variant");
    assert_eq!(source.changed(before).await, ["1"]);
}

/// X15, X41: a change of a parent reaches every row that refers to it, over many transactions, and
/// no page names a moment before the last of them.
#[tokio::test]
async fn a_wide_fan_out_is_expanded_before_a_moment_is_named() {
    let app = App::new(RELATED);
    app.run("INSERT INTO author VALUES (1, 'old'), (2, 'other')");
    let rows = 25 * SOURCE_WRITE_ROWS_MAX as usize;
    app.run(&format!(
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, 'v' || i, 1 FROM n"
    ));
    let source = app.source(related()).await;
    let before = source.newest().await;
    app.run("UPDATE author SET name = 'new' WHERE id = 1");
    let first = source.page(before, 1_000_000).await;
    assert!(first.changes.len() < rows, "one call expands a bounded part");
    assert!(first.end);
    assert_eq!(first.moment, Some(Moment::at(Version::new(before))), "a mark is left");
    app.run("INSERT INTO t VALUES (0, 'beside', 1)");
    let second = source.page(first.next.passed.newest().get(), 1_000_000).await;
    assert_eq!(first.changes.len() + second.changes.len(), rows + 1);
    assert_eq!(second.moment, Some(second.view.newest));
    assert_eq!(value(&source.document("77").await, "name"), text("new"));
    let idle = source.page(second.next.passed.newest().get(), 10).await;
    assert!(idle.changes.is_empty() && idle.moment == Some(idle.view.newest));
}

/// A mark made again while it is expanded is finished first and then expanded once more: no row
/// waits for ever, and none keeps the document of the first change.
#[tokio::test]
async fn a_mark_made_again_is_expanded_again() {
    let app = App::new(RELATED);
    app.run("INSERT INTO author VALUES (1, 'old')");
    let rows = 22 * SOURCE_WRITE_ROWS_MAX as usize;
    app.run(&format!(
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, 'v' || i, 1 FROM n"
    ));
    let source = app.source(related()).await;
    let before = source.newest().await;
    app.run("UPDATE author SET name = 'new'");
    let first = source.page(before, 1_000_000).await;
    assert!(first.changes.len() < rows);
    assert_eq!(first.moment, Some(Moment::at(Version::new(before))));
    app.run("UPDATE author SET name = 'newer'");
    let again: u64 = app
        .db
        .query_row("SELECT newest FROM truekeep_counter_t", [], |row| row.get(0))
        .expect("a number");
    let second = source.page(again, 1_000_000).await;
    let moment = second.moment.expect("the end").newest().get();
    assert!((before + 1..again).contains(&moment), "the first mark is done, the second is not");
    let late =
        second.changes.iter().filter(|change| !first.changes.iter().any(|c| c.key == change.key));
    assert!(late.count() > 0, "the expansion under way was finished first");
    let last = source.page(second.next.passed.newest().get(), 1_000_000).await;
    assert_eq!(last.moment, Some(last.view.newest));
    assert_eq!(
        source.changed(again).await.len(),
        rows,
        "every row has a number after the last change"
    );
}

/// X41: a mark that is made between each expansion and its page holds the moment back to itself,
/// and no further: under endless changes the moment moves on.
#[tokio::test]
async fn endless_changes_of_a_related_table_do_not_hold_the_moment_back() {
    let app = App::new(RELATED);
    app.run("INSERT INTO author VALUES (1, 'old'); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1)");
    let source = app.source(related()).await;
    // A change that comes whenever the feed's row of a record is written: after any expansion.
    app.run(
        "CREATE TRIGGER endless AFTER UPDATE ON truekeep_feed_t WHEN NEW.key = '2'
         BEGIN UPDATE author SET name = name || '+' WHERE id = 1; END",
    );
    let mut moment = source.newest().await;
    app.run("UPDATE author SET name = 'new'");
    for _ in 0..5 {
        let page = source.page(0, 100).await;
        let marks = "SELECT count(*), min(number) FROM truekeep_mark_t";
        let (count, mark): (u64, u64) =
            app.db.query_row(marks, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a mark");
        assert!(count > 0, "the next change is there already");
        let reached = page.moment.expect("the end").newest().get();
        assert_eq!(reached, mark - 1);
        assert!(reached > moment, "{reached} after {moment}");
        moment = reached;
    }
}

/// Marks whose rows no index finds are expanded in one pass over the table for all of them, part by
/// part, and in transactions of a bounded size.
#[tokio::test]
async fn rows_that_no_index_finds_are_found_in_one_pass() {
    let app = App::new(
        "CREATE TABLE author (id TEXT PRIMARY KEY, name);
         CREATE TABLE t (a INT, b INT, author TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
    );
    let rows = 45_000;
    app.run(&format!(
        "WITH n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i / 100, i % 100, 'a' || (i % 3000) FROM n;
         WITH n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
         INSERT INTO author SELECT 'a' || i, 'old' FROM n",
    ));
    let watch =
        Watch::Parent { table: "author".into(), via: vec!["author".into()], key: Vec::new() };
    let spec = || RelationSpec { watch: vec![watch.clone()], ..RelationSpec::of("t") };
    let source = app.source(spec()).await;
    let before = source.newest().await;
    app.run("UPDATE author SET name = 'new' WHERE rowid <= 300");
    let page = source.page(before, 1_000_000).await;
    assert_eq!(page.changes.len(), 4_500, "300 marks of 15 rows each");
    let before = page.view.newest.newest().get();
    assert_eq!(page.moment, Some(page.view.newest));
    app.run("UPDATE author SET name = 'newer'");
    let (mut pages, mut seen) = (0, std::collections::BTreeSet::new());
    let mut after = before;
    loop {
        let page = source.page(after, 1_000_000).await;
        assert!(page.changes.len() <= 20 * SOURCE_WRITE_ROWS_MAX as usize);
        seen.extend(page.changes.iter().map(|change| change.key.clone()));
        (after, pages) = (page.next.passed.newest().get(), pages + 1);
        if page.moment == Some(page.view.newest) {
            break;
        }
    }
    assert_eq!(seen.len(), rows);
    assert!(pages >= 5, "{pages}");
    let unindexed = source.unindexed().await.expect("looked");
    let index = "CREATE INDEX \"t_author\" ON \"t\" (\"author\")";
    let cause = Cause::Change("author".into());
    let found = Unindexed { table: "t".into(), cause, indexes: vec![index.into()] };
    assert_eq!(unindexed, [found]);
    app.run(index);
    assert_eq!(source.unindexed().await.expect("looked"), []);
    app.run("UPDATE author SET name = 'newest' WHERE rowid <= 2");
    assert_eq!(source.changed(after).await.len(), 30);
}

/// What no index finds is told with the statement that helps, by the way values are compared.
#[tokio::test]
async fn a_table_that_is_looked_through_is_told_with_the_index_that_helps() {
    let schema = "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, title, author TEXT);
        CREATE TABLE variant (id INTEGER PRIMARY KEY, t TEXT);
        CREATE TABLE number (t INTEGER)";
    let app = App::new(schema);
    let child = |table: &str| Watch::Child { table: table.into(), key: names(&["t"]) };
    let watch = [related().watch, vec![child("number")]].concat();
    let source = app.source(RelationSpec { watch, ..related() }).await;
    let unindexed = source.unindexed().await.expect("looked");
    let told: Vec<(&str, &Cause)> = unindexed.iter().map(|u| (&*u.table, &u.cause)).collect();
    let change = |table: &str| Cause::Change(table.into());
    let wanted = [
        ("variant", Cause::Document),
        ("t", change("author")),
        ("t", change("number")),
        ("number", Cause::Document),
    ];
    assert_eq!(told, wanted.iter().map(|(table, cause)| (*table, cause)).collect::<Vec<_>>());
    let indexes: Vec<&String> = unindexed.iter().flat_map(|found| &found.indexes).collect();
    assert!(indexes[2].contains("(CAST(\"author\" AS NUMERIC))"), "{indexes:?}");
    for index in indexes {
        app.run(index);
    }
    assert_eq!(source.unindexed().await.expect("looked"), []);
    let columns = RelationSpec { watch: vec![child("number")], ..RelationSpec::of("t") };
    app.run("DROP INDEX \"number_t\"");
    let source = app.source(columns).await;
    assert_eq!(source.unindexed().await.expect("looked"), [], "no document reads it");
}

/// X41: a fold that another's lock keeps out is given up; the page is read and moves no moment.
#[tokio::test]
async fn a_fold_that_is_given_up_moves_no_moment() {
    let app = App::new(RELATED);
    app.run("INSERT INTO author VALUES (1, 'old'); INSERT INTO t VALUES (1, 'a', 1)");
    app.source(related()).await;
    let short = std::time::Duration::from_millis(1);
    let source = SqliteSource::open(app.path(), related(), short).await.expect("opened");
    let before = source.newest().await;
    app.run("UPDATE author SET name = 'new'; BEGIN IMMEDIATE");
    let page = source.page(before, 10).await;
    assert!(page.end && page.changes.is_empty());
    assert_eq!(page.moment, Some(Moment::at(Version::new(before))));
    assert!(source.pending().await.expect("answered"), "a mark waits");
    let error = source.number(&[]).await.expect_err("locked");
    assert_eq!(error.class, FailureClass::Retry);
    app.run("COMMIT");
    let page = source.page(before, 10).await;
    assert_eq!(page.changes.len(), 1);
    assert_eq!(page.moment, Some(page.view.newest));
    assert!(!source.pending().await.expect("answered"));
}
