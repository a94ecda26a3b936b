//! The mirror's table is made, recognised and never taken over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Batch, Body, Delivery, Mark, Outcome, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    (folder, path)
}

fn mapped(table: &str, columns: &[(&str, &str)]) -> MirrorSpec {
    let column = |(name, declared): &(&str, &str)| MirrorColumn {
        name: (*name).into(),
        declared: (*declared).into(),
    };
    MirrorSpec {
        table: table.into(),
        layout: Layout::Columns(columns.iter().map(column).collect()),
    }
}

async fn open(path: &Path, spec: &MirrorSpec) -> SqliteSink {
    SqliteSink::open(path, spec.clone(), Duration::from_secs(5)).await.expect("opened")
}

async fn prepared(path: &Path, spec: &MirrorSpec) -> SqliteSink {
    let sink = open(path, spec).await;
    sink.prepare().await.expect("prepared");
    sink
}

async fn mismatch(path: &Path, spec: &MirrorSpec) -> String {
    let error = open(path, spec).await.prepare().await.expect_err("it does not fit");
    assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::MIRROR_MISMATCH));
    error.chain()
}

fn batch(number: u64, names: &[&str]) -> Batch {
    let names: Arc<[Box<str>]> = names.iter().map(|name| (*name).into()).collect();
    let values = vec![Value::Text(number.to_string().into()); names.len()];
    Batch {
        follows: BatchName::default(),
        mark: Mark {
            ledger: LedgerId::parse("ledger").expect("a token"),
            pipeline: Incarnation::parse("pipeline").expect("a token"),
            rules: RulesNumber::new(1),
            fence: Fence::new(1),
            number: MarkNumber::new(number),
            removed: false,
        },
        deliveries: vec![Delivery {
            key: Key::new("k"),
            rank: Rank { rules: RulesNumber::new(1), version: Version::new(number) },
            body: Body::Upsert(Arc::new(Document::new(names, values))),
        }],
    }
}

#[tokio::test]
async fn table_of_somebody_else_is_never_taken_over() {
    let (_folder, path) = file();
    let db = Connection::open(&path).expect("opened");
    db.execute_batch(
        "CREATE TABLE theirs (id, name); INSERT INTO theirs VALUES (1, 'kept');
         CREATE TABLE alike (_key TEXT PRIMARY KEY, _rules INTEGER, _version INTEGER, name);
         CREATE VIEW seen AS SELECT * FROM theirs;",
    )
    .expect("made");
    for table in ["theirs", "THEIRS", "alike", "seen"] {
        let text = mismatch(&path, &mapped(table, &[("name", "")])).await;
        assert!(text.contains(&format!("`{table}`")), "{text}");
    }
    let tables: u32 =
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("read");
    assert_eq!(tables, 4, "three and the index of a key");
    let kept: String = db.query_row("SELECT name FROM theirs", [], |row| row.get(0)).expect("read");
    assert_eq!(kept, "kept");
}

#[tokio::test]
async fn column_that_differs_is_named() {
    let (_folder, path) = file();
    let spec = mapped("m", &[("a", "INTEGER"), ("b", "TEXT")]);
    assert!(prepared(&path, &spec).await.inspect().await.expect("it fits"));
    for (columns, told) in [
        (&[("a", ""), ("c", "")][..], "column 5 is `b` (without a type), not `c`"),
        (&[("a", "")], "it has column `b` (without a type) too many"),
        (&[("a", ""), ("b", ""), ("c", "")], "it lacks column `c` (without a type)"),
    ] {
        let text = mismatch(&path, &mapped("m", columns)).await;
        assert!(text.contains(told), "{text}");
    }
    // What is declared in the source is told only, so it may change.
    prepared(&path, &mapped("m", &[("a", "REAL"), ("b", "")])).await;
}

#[tokio::test]
async fn column_that_would_convert_values_is_found() {
    let (_folder, path) = file();
    let spec = mapped("m", &[("a", "")]);
    prepared(&path, &spec).await;
    let db = Connection::open(&path).expect("opened");
    db.execute_batch("ALTER TABLE m DROP COLUMN a; ALTER TABLE m ADD COLUMN a INTEGER")
        .expect("altered");
    let text = mismatch(&path, &spec).await;
    assert!(text.contains("`a` (INTEGER), not `a` (without a type)"), "{text}");
}

#[tokio::test]
async fn indexes_triggers_and_generated_columns_of_others_are_welcome() {
    let (_folder, path) = file();
    let spec = mapped("m", &[("a", "")]);
    let sink = prepared(&path, &spec).await;
    let db = Connection::open(&path).expect("opened");
    db.execute_batch(
        "ALTER TABLE m ADD COLUMN twice AS (a || a);
         CREATE INDEX by_twice ON m (twice);
         CREATE TABLE log (a);
         CREATE TRIGGER logs AFTER INSERT ON m BEGIN INSERT INTO log VALUES (NEW.a); END;",
    )
    .expect("added");
    sink.prepare().await.expect("it still fits");
    let applied = sink.apply(batch(1, &["a"])).await.expect("applied");
    assert_eq!(applied.outcomes, [Outcome::Applied]);
    let found: (String, String) = db
        .query_row("SELECT twice, log.a FROM m, log", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("read");
    assert_eq!(found, ("11".into(), "1".into()));
}

#[tokio::test]
async fn lost_companions_are_noticed() {
    let (_folder, path) = file();
    let spec = mapped("m", &[("a", "")]);
    let sink = prepared(&path, &spec).await;
    sink.apply(batch(1, &["a"])).await.expect("applied");
    let db = Connection::open(&path).expect("opened");
    db.execute_batch("DROP TABLE m__truekeep_tombstones").expect("dropped");
    let text = mismatch(&path, &spec).await;
    assert!(text.contains("there is no `m__truekeep_tombstones` beside it"), "{text}");
    let error = sink.apply(batch(2, &["a"])).await.expect_err("it lacks its tombstones");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
}

/// Rule 124.
#[tokio::test]
async fn dropped_mirror_is_made_anew_without_a_mark() {
    let (_folder, path) = file();
    let spec = mapped("m", &[("a", "")]);
    let sink = prepared(&path, &spec).await;
    sink.apply(batch(1, &["a"])).await.expect("applied");
    let db = Connection::open(&path).expect("opened");
    db.execute_batch("DROP TABLE m").expect("dropped");
    let error = sink.apply(batch(2, &["a"])).await.expect_err("there is no table");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
    assert_eq!(sink.mark().await.expect("read"), None);
    sink.prepare().await.expect("prepared");
    assert_eq!(sink.mark().await.expect("read"), None);
    assert_eq!(sink.apply(batch(1, &["a"])).await.expect("applied").outcomes, [Outcome::Applied]);
}

#[tokio::test]
async fn mirror_that_was_never_made_has_no_mark_and_no_listing() {
    let (_folder, path) = file();
    let sink = open(&path, &mapped("m", &[("a", "")])).await;
    assert_eq!(sink.mark().await.expect("read"), None);
    assert!(!sink.inspect().await.expect("it can be told"));
    let error = sink.list(None, 10).await.expect_err("there is no table");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
}

#[tokio::test]
async fn oddly_named_mirrors_share_a_file() {
    let (_folder, path) = file();
    let names = ["a\"\"b", "a.b", "a b", "order", "Ünï", "'", "{names}", "a", "%"];
    for (number, name) in (1..).zip(names) {
        let spec = mapped(name, &[(name, ""), ("group", "")]);
        let sink = prepared(&path, &spec).await;
        for number in 1..=number {
            sink.apply(batch(number, &[name, "group"])).await.expect("applied");
        }
    }
    for (number, name) in (1..).zip(names) {
        let sink = prepared(&path, &mapped(name, &[(name, ""), ("group", "")])).await;
        let mark = sink.mark().await.expect("read").expect("written");
        assert_eq!(mark.number, MarkNumber::new(number), "{name}");
        assert_eq!(sink.list(None, 10).await.expect("listed").entries.len(), 1);
    }
}

#[tokio::test]
async fn names_that_cannot_be_are_told_before_anything_is_made() {
    let (_folder, path) = file();
    for spec in [
        mapped("", &[("a", "")]),
        mapped("a\0", &[("a", "")]),
        mapped("m", &[]),
        mapped("m", &[("a", ""), ("A", "")]),
        mapped("m", &[("_Version", "")]),
        mapped("m", &[("a\0", "")]),
        MirrorSpec { table: "m".into(), layout: Layout::Json { column: "_key".into() } },
    ] {
        let error = SqliteSink::open(&path, spec, Duration::ZERO).await.expect_err("no such table");
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::CONFIG_INVALID));
        assert!(!path.exists());
    }
    let text = mismatch(&path, &mapped("sqlite_mine", &[("a", "")])).await;
    assert!(text.contains("reserved"), "{text}");
}

#[tokio::test]
async fn file_whose_text_is_not_utf_8_is_refused() {
    let (_folder, path) = file();
    let db = Connection::open(&path).expect("opened");
    db.execute_batch("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a)").expect("made");
    let text = mismatch(&path, &mapped("m", &[("a", "")])).await;
    assert!(text.contains("UTF-16le"), "{text}");
}

#[tokio::test]
async fn key_that_cannot_be_named_is_passed_over_by_the_listing() {
    let (_folder, path) = file();
    let sink = prepared(&path, &mapped("m", &[("a", "")])).await;
    let db = Connection::open(&path).expect("opened");
    db.execute("INSERT INTO m VALUES (x'61', 1, 1, 1)", []).expect_err("a key is text");
    let names = ["a", "b", "c"];
    // Before, between, and after the others, and more in a row than a page has.
    for bytes in ["00ff", "61", "61ff", "61fffe", "61ffff", "62", "62ff", "63", "ff", "ffff"] {
        let sql = format!("INSERT INTO m VALUES (CAST(x'{bytes}' AS TEXT), 1, 1, 1)");
        db.execute(&sql, []).expect("planted");
    }
    for limit in 1..5 {
        let (mut keys, mut pages) = (Vec::<Key>::new(), 0);
        loop {
            let page = sink.list(keys.last().cloned(), limit).await.expect("listed");
            keys.extend(page.entries.into_iter().map(|entry| entry.key));
            pages += 1;
            if page.end {
                break;
            }
            assert!(pages < 4, "the listing ends");
        }
        assert_eq!(keys, names.map(Key::new), "pages of {limit}");
    }
    sink.apply(batch(1, &["a"])).await.expect("applied");
}

#[tokio::test]
async fn document_of_other_columns_is_refused_by_name() {
    let (_folder, path) = file();
    let sink = prepared(&path, &mapped("m", &[("a", ""), ("b", "")])).await;
    for (names, told) in [
        (&["a"][..], "the document has no value `b`"),
        (&["a", "b", "c"], "the mirror has no column `c`"),
    ] {
        let applied = sink.apply(batch(1, names)).await.expect("answered");
        assert_eq!(applied.outcomes, [Outcome::Refused(Code::SINK_REFUSED, told.into())]);
    }
    let applied = sink.apply(batch(2, &["b", "a"])).await.expect("answered");
    assert_eq!(applied.outcomes, [Outcome::Applied]);
}

/// A trigger that rolls back the whole transaction refuses its record and no other.
#[tokio::test]
async fn trigger_that_rolls_everything_back_refuses_its_record_alone() {
    let (_folder, path) = file();
    let sink = prepared(&path, &mapped("m", &[("a", "")])).await;
    let db = Connection::open(&path).expect("opened");
    db.execute_batch(
        "CREATE TRIGGER t AFTER INSERT ON m WHEN NEW._key LIKE 'bad%'
         BEGIN SELECT RAISE(ROLLBACK, 'all or nothing'); END;",
    )
    .expect("made");
    let mut sent = batch(1, &["a"]);
    let first = sent.deliveries[0].clone();
    let named = |text: &str| Delivery { key: Key::new(text), ..first.clone() };
    sent.deliveries = ["a", "bad 1", "b", "bad 2", "c"].map(named).into();
    let outcomes = sink.apply(sent).await.expect("answered").outcomes;
    let refused: Vec<bool> =
        outcomes.iter().map(|outcome| matches!(outcome, Outcome::Refused(..))).collect();
    assert_eq!(refused, [false, true, false, true, false], "{outcomes:?}");
    let landed = sink.list(None, 10).await.expect("listed").entries;
    assert_eq!(landed.len(), 3);
}

/// A record that a trigger drops in silence is not taken for written, nor for deleted.
#[tokio::test]
async fn record_that_a_trigger_ignores_is_refused() {
    let (_folder, path) = file();
    let sink = prepared(&path, &mapped("m", &[("a", "")])).await;
    sink.apply(batch(1, &["a"])).await.expect("applied");
    let db = Connection::open(&path).expect("opened");
    db.execute_batch(
        "CREATE TRIGGER i BEFORE INSERT ON m WHEN NEW._key = 'new'
         BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER u BEFORE UPDATE ON m BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER d BEFORE DELETE ON m BEGIN SELECT RAISE(IGNORE); END;",
    )
    .expect("made");
    let update = batch(2, &["a"]);
    let mut insert = batch(3, &["a"]);
    insert.deliveries[0].key = Key::new("new");
    let mut delete = batch(4, &["a"]);
    delete.deliveries[0].body = Body::Delete;
    for sent in [update, insert, delete] {
        let outcomes = sink.apply(sent).await.expect("answered").outcomes;
        assert!(matches!(outcomes[..], [Outcome::Refused(..)]), "{outcomes:?}");
    }
    // Nothing of a refused delete stays: the record is as it was, and can be written again.
    db.execute_batch("DROP TRIGGER u").expect("dropped");
    let outcomes = sink.apply(batch(2, &["a"])).await.expect("answered").outcomes;
    assert_eq!(outcomes, [Outcome::Applied]);
}

/// What the mirror lost while it was written is not a fault of the records.
#[tokio::test]
async fn column_dropped_under_the_writer_halts_and_refuses_no_record() {
    let (_folder, path) = file();
    let sink = prepared(&path, &mapped("m", &[("a", ""), ("b", "")])).await;
    sink.apply(batch(1, &["a", "b"])).await.expect("applied");
    let db = Connection::open(&path).expect("opened");
    db.execute_batch("ALTER TABLE m DROP COLUMN b").expect("dropped");
    let error = sink.apply(batch(2, &["a", "b"])).await.expect_err("a column is gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
}
