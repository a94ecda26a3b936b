//! Documents: values as exact as the source has them, and what cannot be made.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params};
use truekeep_adapter_sqlite::{Column, Projection, RelationSpec};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Loaded, Records};
use truekeep_core::{Document, Value};

use crate::fixture::{App, Asked, key, text, value};

struct Raw<'a>(&'a [u8]);

impl ToSql for Raw<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// Integers over 2^53, infinities, -0.0, NUL, broken text, blobs and NULL arrive bit by bit.
#[tokio::test]
async fn values_are_exact() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let source = app.t().await;
    let cases: Vec<(Box<dyn ToSql>, Value)> = vec![
        (Box::new(9_007_199_254_740_993_i64), Value::Integer(9_007_199_254_740_993)),
        (Box::new(i64::MIN), Value::Integer(i64::MIN)),
        (Box::new(f64::INFINITY), Value::Real(f64::INFINITY)),
        (Box::new(f64::NEG_INFINITY), Value::Real(f64::NEG_INFINITY)),
        (Box::new(-0.0), Value::Real(-0.0)),
        (Box::new(f64::MIN_POSITIVE / 2.0), Value::Real(f64::MIN_POSITIVE / 2.0)),
        (Box::new(rusqlite::types::Null), Value::Null),
        (Box::new(""), text("")),
        (Box::new("a\0b"), text("a\0b")),
        (Box::new("ﷺ e\u{301}"), text("ﷺ e\u{301}")),
        (Box::new(Raw(b"\xffa")), Value::InvalidText(Box::from(&b"\xffa"[..]))),
        (Box::new(vec![0_u8, 255]), Value::Blob(Box::from([0_u8, 255]))),
        (Box::new(Vec::<u8>::new()), Value::Blob(Box::from([]))),
    ];
    for (place, (given, wanted)) in cases.iter().enumerate() {
        app.db
            .execute("INSERT INTO t VALUES (?1, ?2)", params![place as i64, given])
            .expect("inserted");
        let document = source.document(&place.to_string()).await;
        assert_eq!(value(&document, "v"), *wanted);
    }
}

/// JSON is kept as it is written; text that is not JSON stays text.
#[tokio::test]
async fn json_is_kept_as_it_is_written() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a JSON, b TEXT)");
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let source = app.t().await;
    let query = "SELECT a, b FROM t WHERE id = ?1".to_owned();
    let document = Projection::Sql { query, json: vec!["b".into()] };
    let by_query = app.source(RelationSpec { document, ..RelationSpec::of("t") }).await;
    for (id, json, is_json) in [
        (1, "{\"b\":1, \"a\" : 1.00, \"b\":2e400}", true),
        (2, deep.as_str(), true),
        (3, "{a:1}", false),
        (4, "", false),
        (5, "null", true),
        (6, "\"\\ud800\"", true),
    ] {
        app.db.execute("INSERT INTO t VALUES (?1, ?2, ?2)", params![id, json]).expect("inserted");
        let wanted = if is_json { Value::Json(json.into()) } else { text(json) };
        let document = source.document(&id.to_string()).await;
        assert_eq!((value(&document, "a"), value(&document, "b")), (wanted.clone(), text(json)));
        let document = by_query.document(&id.to_string()).await;
        assert_eq!((value(&document, "a"), value(&document, "b")), (wanted.clone(), wanted));
    }
}

/// Generated columns are values; columns that `SELECT *` hides are not; names are shared.
#[tokio::test]
async fn columns_are_those_that_a_select_shows() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT, g TEXT AS (v || '!'), s AS (v + 1) STORED);
         INSERT INTO t (id, v) VALUES (1, 5), (2, 6)",
    );
    let source = app.t().await;
    let columns = source.shape();
    let named: Vec<(&str, &str)> =
        columns.iter().map(|c| (c.name.as_str(), c.declared_type.as_str())).collect();
    assert_eq!(named, [("id", "INTEGER"), ("v", "INT"), ("g", "TEXT"), ("s", "")]);
    let loaded = source.load(&[key("1"), key("2")], usize::MAX).await.expect("loaded");
    let [Loaded::Live(one), Loaded::Live(two)] = &loaded[..] else { panic!("{loaded:?}") };
    assert_eq!(one.values(), [Value::Integer(1), Value::Integer(5), text("5!"), Value::Integer(6)]);
    assert!(std::sync::Arc::ptr_eq(one.names(), two.names()));
    app.run("CREATE TABLE unrelated (a)");
    let later = source.document("1").await;
    assert!(std::sync::Arc::ptr_eq(one.names(), later.names()), "over changes of the schema too");
    let document = Projection::Columns(vec!["S".into(), "v".into()]);
    let some = app.source(RelationSpec { document, ..RelationSpec::of("t") }).await;
    assert_eq!(some.document("1").await.values(), [Value::Integer(6), Value::Integer(5)]);
    app.run("ALTER TABLE t ADD COLUMN more DEFAULT 'x'");
    let widened: Document = source.document("1").await;
    assert_eq!(value(&widened, "more"), text("x"));
    assert_eq!(
        source.shape().last(),
        Some(&Column { name: "more".into(), declared_type: String::new() })
    );
}

/// Rule 65: a document over the limit is not read; the others are.
#[tokio::test]
async fn a_document_over_the_limit_is_unloadable() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v);
         INSERT INTO t VALUES (1, zeroblob(1000)), (2, 'small'), (3, NULL)",
    );
    let source = app.source(RelationSpec { document_max: 1_000, ..RelationSpec::of("t") }).await;
    match source.one("1").await {
        Loaded::Unloadable(code, reason) => {
            assert_eq!(code, Code::DOCUMENT_TOO_LARGE);
            assert!(reason.contains("1008 bytes"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(source.one("2").await, Loaded::Live(_)));
    assert!(matches!(source.one("3").await, Loaded::Live(_)));
}

fn query(sql: &str) -> RelationSpec {
    let document = Projection::Sql { query: sql.into(), json: Vec::new() };
    RelationSpec { document, ..RelationSpec::of("t") }
}

/// A projection that fails for one record says so of that record, and the others are read.
#[tokio::test]
async fn a_projection_that_fails_for_a_record_parks_that_one() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, j); CREATE TABLE many (t);
         INSERT INTO t VALUES (1, '[1]'), (2, 'broken'), (3, '[3]'); INSERT INTO many VALUES (3), (3)",
    );
    let source = app
        .source(query("SELECT json_extract(j, '$[0]') AS x FROM t LEFT JOIN many ON many.t = id WHERE id = :id"))
        .await;
    let keys = [key("1"), key("2"), key("3"), key("4")];
    let loaded = source.load(&keys, usize::MAX).await.expect("loaded");
    assert!(
        matches!(&loaded[0], Loaded::Live(document) if document.values() == [Value::Integer(1)])
    );
    for (place, reason) in [(1, "malformed JSON"), (2, "more than one row")] {
        match &loaded[place] {
            Loaded::Unloadable(code, text) => {
                assert_eq!(*code, Code::DOCUMENT_UNREADABLE);
                assert!(text.contains(reason), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(loaded[3], Loaded::Absent);
}

/// A row that is gone has no document, even if the SQL gives a row for any key; a document without
/// a row is absent.
#[tokio::test]
async fn a_row_that_is_gone_has_no_document() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 2)");
    let counting = app.source(query("SELECT count(*) AS n FROM t WHERE id = @id")).await;
    assert!(matches!(counting.one("1").await, Loaded::Live(_)));
    assert_eq!(counting.one("2").await, Loaded::Absent);
    let picky = app.source(query("SELECT v FROM t WHERE id = ?1 AND v > 5")).await;
    assert_eq!(picky.one("1").await, Loaded::Absent);
}

/// What can never run is refused when it is opened, with what to do.
#[tokio::test]
async fn a_projection_that_can_never_run_is_refused() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let live = |condition: &str| RelationSpec {
        live_when: Some(condition.into()),
        ..RelationSpec::of("t")
    };
    let columns = |name: &str| RelationSpec {
        document: Projection::Columns(vec![name.into()]),
        ..RelationSpec::of("t")
    };
    let cases = [
        (query("SELECT w FROM t WHERE id = :id"), Code::RELATION_MISSING, "no such column: w"),
        (query("SELECT v FROM u WHERE id = :id"), Code::RELATION_MISSING, "no such table: u"),
        (query("SELEC v"), Code::CONFIG_INVALID, "syntax error"),
        (query("DELETE FROM t WHERE id = :id"), Code::CONFIG_INVALID, "no SELECT"),
        (query("SELECT v FROM t"), Code::CONFIG_INVALID, "does not ask for a key"),
        (query("SELECT v FROM t WHERE id = :v"), Code::CONFIG_INVALID, ":v"),
        (query("SELECT v, v FROM t WHERE id = :id"), Code::CONFIG_INVALID, "two values"),
        (live("gone = 1"), Code::RELATION_MISSING, "`live_when`"),
        (live("v >"), Code::CONFIG_INVALID, "`live_when`"),
        (columns("vv"), Code::RELATION_MISSING, "nearest name is \"v\""),
    ];
    for (spec, code, text) in cases {
        let error = app.open(spec.clone()).await.expect_err("refused");
        assert_eq!((error.class, &error.code), (FailureClass::Halted, &code), "{spec:?}");
        assert!(error.detail.contains(text), "{}", error.detail);
    }
    let source = app.source(query("SELECT v FROM t WHERE id = :id")).await;
    app.run("INSERT INTO t VALUES (1, 1); ALTER TABLE t DROP COLUMN v");
    let error = source.load(&[key("1")], usize::MAX).await.expect_err("the column is gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::RELATION_MISSING));
}

/// Rule 38, X25: `live_when` decides alike for documents and for the listing of keys.
#[tokio::test]
async fn a_rule_decides_what_is_live_everywhere() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, gone INT);
         INSERT INTO t VALUES (1, 0), (2, 1), (3, NULL), (4, 0)",
    );
    let spec =
        RelationSpec { live_when: Some("gone = 0 OR id > 9".into()), ..RelationSpec::of("t") };
    let source = app.source(spec).await;
    assert_eq!(source.listed().await, ["1", "4"]);
    assert_eq!(source.one("2").await, Loaded::Absent);
    assert_eq!(source.one("3").await, Loaded::Absent);
    app.run("UPDATE t SET gone = 1 WHERE id = 1; UPDATE t SET gone = 0 WHERE id = 2");
    assert_eq!(source.listed().await, ["2", "4"]);
    let page = source.audit(None, 100).await.expect("a page");
    assert_eq!((page.missed, page.ghosts), (vec![], vec![]), "the feed knows rows, not rules");
}

/// A listing looks at so many rows for each key that is asked for, and then goes on from where it
/// was: over rows that no rule wants, over tombstones, and over keys that are not UTF-8.
#[tokio::test]
async fn a_listing_of_few_keys_comes_in_bounded_pages() {
    let app = App::new(
        "CREATE TABLE t (id TEXT PRIMARY KEY, live INT);
         WITH n(i) AS (VALUES (100) UNION ALL SELECT i + 1 FROM n WHERE i < 699)
         INSERT INTO t SELECT iif(i BETWEEN 130 AND 150, CAST('a' || i || x'FF' AS TEXT), 'a' || i),
                              i IN (140, 650) FROM n",
    );
    let ruled = |rule: Option<&str>| RelationSpec {
        live_when: rule.map(str::to_owned),
        ..RelationSpec::of("t")
    };
    let source = app.source(ruled(Some("live = 1"))).await;
    let all = app.source(ruled(None)).await;
    app.run("DELETE FROM t WHERE id >= 'a200' AND live = 0");
    let (mut listed, mut places) = (Vec::new(), Vec::new());
    let mut after = None;
    while let Some(next) = {
        let page = source.keys(after.take(), 5).await.expect("a page");
        listed.extend(page.keys.into_iter().map(|(key, _)| key.to_string()));
        page.next
    } {
        places.push(next.to_string());
        after = Some(next);
    }
    assert_eq!(listed, ["a650"]);
    assert_eq!(places[..2], ["a151", "a191"], "40 rows at most, and on to what sorts as a key");
    assert_eq!(places.len(), 14, "{places:?}");
    assert_eq!(all.keys(Some(key("a199")), 5).await.expect("a page").keys, []);
}

/// X24: the fingerprint holds what decides how documents look, views included.
#[tokio::test]
async fn the_fingerprint_names_what_decides_documents() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE VIEW base AS SELECT id, v FROM t;
         CREATE VIEW \"my view\" AS SELECT id, v FROM base; CREATE VIEW unused AS SELECT 1",
    );
    let source = app.source(query("SELECT v FROM \"my view\" WHERE id = :id")).await;
    let before = source.fingerprint_parts();
    assert!(!before.iter().any(|part| part.contains("unused")), "{before:?}");
    let _ = source.newest().await;
    assert_eq!(source.fingerprint_parts(), before);
    app.run("CREATE TABLE other (a); DROP VIEW unused");
    let _ = source.newest().await;
    assert_eq!(source.fingerprint_parts(), before);
    app.run("DROP VIEW base; CREATE VIEW base AS SELECT id, v + 1 AS v FROM t");
    let _ = source.newest().await;
    let after = source.fingerprint_parts();
    assert_ne!(after, before);
    let all = app.t().await;
    let before = all.fingerprint_parts();
    app.run("ALTER TABLE t ADD COLUMN w");
    let _ = all.newest().await;
    assert_ne!(all.fingerprint_parts(), before, "all columns are one more");
}
