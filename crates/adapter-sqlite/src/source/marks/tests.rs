//! What may happen between the snapshot in which rows are found and the transaction that numbers
//! them.

use std::time::Duration;

use truekeep_core::ports::Capture;

use super::*;
use truekeep_core::relation::{RelationSpec, Watch};

fn spec() -> RelationSpec {
    let parent = Watch::Parent { table: "p".into(), via: vec!["p".into()], key: vec!["id".into()] };
    RelationSpec { watch: vec![parent], ..RelationSpec::of("t") }
}

/// Two rows of one parent, captured, and a mark of it.
async fn marked() -> (tempfile::TempDir, Connection, Resolved) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let db = Connection::open(&path).expect("opened");
    db.execute_batch(
        "CREATE TABLE p (id INTEGER PRIMARY KEY, v); CREATE TABLE t (id INTEGER PRIMARY KEY, p);
         INSERT INTO p VALUES (1, 0), (2, 0); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)",
    )
    .expect("a schema");
    let busy = Duration::from_secs(5);
    let source = SqliteSource::open(&path, spec(), busy).await.expect("opened");
    source.install().await.expect("installed");
    while !source.fill().await.expect("filled").done {}
    db.execute_batch("UPDATE p SET v = 1 WHERE id = 1").expect("marked");
    let relation = Resolved::of(&db, &spec()).expect("resolved");
    (folder, db, relation)
}

fn feed(db: &Connection) -> Vec<(String, i64, i64)> {
    let mut select = db
        .prepare("SELECT key, version, deleted FROM truekeep_feed_t ORDER BY version")
        .expect("prepared");
    select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("queried")
        .collect::<Result<_, _>>()
        .expect("read")
}

fn marks(db: &Connection) -> i64 {
    db.query_row("SELECT count(*) FROM truekeep_mark_t", [], |row| row.get(0)).expect("counted")
}

fn looked(db: &Connection, relation: &Resolved) -> Step {
    step(db, relation, None).expect("looked").expect("a mark")
}

#[tokio::test]
async fn a_row_that_went_meanwhile_stays_a_tombstone() {
    let (_folder, db, relation) = marked().await;
    let found = looked(&db, &relation);
    assert_eq!((found.keys.len(), marks(&db)), (2, 1), "looking takes no mark away");
    db.execute_batch("DELETE FROM t WHERE id = 1").expect("deleted");
    let tombstone = feed(&db).pop().expect("a row");
    assert_eq!((&*tombstone.0, tombstone.2), ("1", 1));
    assert!(number(&db, &relation, found).expect("numbered").is_none());
    let after = feed(&db);
    assert!(after.contains(&tombstone), "{after:?}");
    assert_eq!(after.last().map(|row| &*row.0), Some("2"));
    assert_eq!(marks(&db), 0);
}

#[tokio::test]
async fn a_mark_made_meanwhile_is_left_for_the_next_expansion() {
    let (_folder, db, relation) = marked().await;
    let found = looked(&db, &relation);
    db.execute_batch("UPDATE p SET v = 2").expect("marked");
    assert!(number(&db, &relation, found).expect("numbered").is_none());
    assert_eq!(marks(&db), 2);
    assert_eq!(looked(&db, &relation).keys.len(), 3);
}

#[tokio::test]
async fn what_another_reader_has_expanded_is_not_numbered_again() {
    let (_folder, db, relation) = marked().await;
    let (slow, fast) = (looked(&db, &relation), looked(&db, &relation));
    assert!(number(&db, &relation, fast).expect("numbered").is_none());
    let before = feed(&db);
    assert!(number(&db, &relation, slow).expect("left").is_none());
    assert_eq!(feed(&db), before);
}

#[tokio::test]
async fn an_expansion_of_another_schema_begins_again() {
    let (_folder, db, relation) = marked().await;
    let mut found = looked(&db, &relation);
    found.expansion.schema_version -= 1;
    assert!(found.expansion.is_done());
    let again = step(&db, &relation, Some(found.expansion)).expect("looked").expect("a mark");
    assert_eq!(again.keys.len(), 2);
}
