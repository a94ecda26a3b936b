//! Documents: every value as exact as the database has it, and SQL of the user's.

use truekeep_adapter_postgres::{Projection, RelationSpec, Watch};
use truekeep_core::code::Code;
use truekeep_core::ports::{Loaded, Records};
use truekeep_core::{Key, Place, Value};

use crate::fixture::{App, Asked};

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn json(text: &str) -> Value {
    Value::Json(text.into())
}

/// Equal means equal and different means different: no rounding, no text that means something else.
#[tokio::test]
async fn values_are_as_exact_as_the_database_has_them() {
    let Some(mut app) =
        App::new("CREATE TYPE pair AS (a int, b text); CREATE TYPE mood AS ENUM ('sad')").await
    else {
        return;
    };
    let cases: &[(&str, &str, Value)] = &[
        ("int8", "9223372036854775807", Value::Integer(i64::MAX)),
        ("int8", "9007199254740993", Value::Integer(9_007_199_254_740_993)),
        ("float8", "-0", Value::Real(-0.0)),
        ("float8", "0.1", Value::Real(0.1)),
        ("float8", "NaN", Value::Real(f64::NAN)),
        ("float8", "-Infinity", Value::Real(f64::NEG_INFINITY)),
        ("float4", "0.1", Value::Real(0.1)),
        (
            "numeric",
            "12345678901234567890123456789012345678",
            json("12345678901234567890123456789012345678"),
        ),
        ("numeric", "1.0", json("1.0")),
        ("numeric", "1.00", json("1.00")),
        ("numeric", "NaN", text("NaN")),
        ("text", "", text("")),
        ("text", "NULL", text("NULL")),
        ("text", "a\u{1f600}", text("a\u{1f600}")),
        ("char(4)", "ab", text("ab")),
        ("bool", "t", json("true")),
        ("bytea", "\\x00ff", Value::Blob([0, 255].into())),
        (
            "jsonb",
            "{\"b\":1.0,\"a\":12345678901234567890123}",
            json("{\"a\": 12345678901234567890123, \"b\": 1.0}"),
        ),
        ("json", "{\"b\":1, \"a\":1.0,\"a\":2}", json("{\"b\":1, \"a\":1.0,\"a\":2}")),
        ("timestamptz", "2026-01-02 03:04:05.000006+02", text("2026-01-02T01:04:05.000006+00:00")),
        ("timestamp", "2026-01-02 03:04:05", text("2026-01-02T03:04:05")),
        ("timestamptz", "infinity", text("infinity")),
        ("date", "2026-01-02", text("2026-01-02")),
        ("interval", "1 mon 2 days 03:00", text("1 mon 2 days 03:00:00")),
        (
            "uuid",
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("int4range", "[1,5]", text("[1,6)")),
        ("int[]", "{1,NULL,3}", json("[1,null,3]")),
        ("text[]", "{a,\"NULL\",NULL}", json("[\"a\",\"NULL\",null]")),
        ("pair", "(1,x)", json("{\"a\":1,\"b\":\"x\"}")),
        ("mood", "sad", text("sad")),
        ("inet", "1.2.3.4", text("1.2.3.4/32")),
        ("numeric", "-0.000", json("0.000")),
        (
            "numeric",
            "-99999999999999999999999999999999999999.99999",
            json("-99999999999999999999999999999999999999.99999"),
        ),
        ("float8", "0.30000000000000004", Value::Real(0.300_000_000_000_000_04)),
        ("float8", "5e-324", Value::Real(5e-324)),
        ("float8", "Infinity", Value::Real(f64::INFINITY)),
        ("json", "1.0", json("1.0")),
        ("jsonb", "1.0", json("1.0")),
        ("jsonb", "null", json("null")),
        ("jsonb", "\"NULL\"", json("\"NULL\"")),
        ("int[]", "{}", json("[]")),
        ("int[]", "{{1,2},{3,4}}", json("[[1,2],[3,4]]")),
        ("float8[]", "{NaN,-0}", json("[\"NaN\",-0]")),
        ("pair[]", "{\"(1,)\",NULL}", json("[{\"a\":1,\"b\":null},null]")),
        ("tstzrange", "[2026-01-02 03:04+02,)", text("[\"2026-01-02 01:04:00+00\",)")),
        ("int4range", "empty", text("empty")),
        ("interval", "1 day", text("1 day")),
        ("interval", "24:00:00", text("24:00:00")),
        ("time", "24:00", text("24:00:00")),
        ("timetz", "01:02:03+02", text("01:02:03+02")),
        ("timestamp", "0044-03-15 01:00 BC", text("0044-03-15T01:00:00 BC")),
        ("date", "-infinity", text("-infinity")),
        ("bit(3)", "101", text("101")),
        ("varchar(9)", "a  ", text("a  ")),
        ("bytea", "", Value::Blob([].into())),
        ("xml", "<a>1</a>", text("<a>1</a>")),
    ];
    app.run(
        "SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'SQL, DMY'; SET extra_float_digits = -10",
    )
    .await;
    for (nth, (of, value, wanted)) in cases.iter().enumerate() {
        app.run(&format!("CREATE TABLE t (id int PRIMARY KEY, v {of})")).await;
        app.run(&format!("INSERT INTO t VALUES (1, '{value}'), (2, NULL)")).await;
        let source = app.open(RelationSpec::of("t")).await.expect("opened");
        let Loaded::Live(document) = source.one("1").await else { panic!("{of}") };
        assert_eq!(document.values(), [Value::Integer(1), wanted.clone()], "{nth}: {of} {value}");
        let Loaded::Live(document) = source.one("2").await else { panic!("{of}") };
        assert_eq!(document.values()[1], Value::Null);
        app.run("DROP TABLE t").await;
    }
}

const SHOP: &str = "CREATE TABLE author (id int PRIMARY KEY, name text);
    CREATE TABLE book (id int PRIMARY KEY, title text, author int REFERENCES author, hidden bool NOT NULL DEFAULT false);
    CREATE TABLE copy (id int PRIMARY KEY, book bigint, place text);
    INSERT INTO author VALUES (1, 'A'), (2, 'B');
    INSERT INTO book VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 1), (4, 'four', NULL);
    INSERT INTO copy VALUES (10, 1, 'x'), (11, 1, 'y')";

const KEYED: &str =
    "SELECT b.title || ':id' AS title, a.name AS author, -- :id is no parameter here
    (SELECT jsonb_agg(c.place ORDER BY c.id) FROM copy c WHERE c.book = :id) AS copies
    FROM book b LEFT JOIN author a ON a.id = b.author WHERE b.id = :id;";

const JOINED: &str =
    "SELECT b.id, json_build_object('title', b.title, 'author', a.name) AS document
    FROM book b LEFT JOIN author a ON a.id = b.author";

fn sql(query: &str) -> Projection {
    Projection::Sql { query: query.into(), json: Vec::new() }
}

/// A document may be SQL that asks for a key, or SQL of all rows that has it.
#[tokio::test]
async fn a_document_may_be_sql() {
    let Some(app) = App::new(SHOP).await else { return };
    let spec = RelationSpec {
        document: sql(KEYED),
        live_when: Some("NOT hidden -- at the end".into()),
        ..RelationSpec::of("book")
    };
    let source = app.open(spec).await.expect("opened");
    let names: Vec<String> = source.shape().into_iter().map(|column| column.name).collect();
    assert_eq!(names, ["title", "author", "copies"]);
    let Loaded::Live(document) = source.one("1").await else { panic!("absent") };
    assert_eq!(document.values(), [text("one:id"), text("A"), json("[\"x\", \"y\"]")]);
    let source = app
        .open(RelationSpec { document: sql(JOINED), ..RelationSpec::of("book") })
        .await
        .expect("opened");
    let Loaded::Live(document) = source.one("4").await else { panic!("absent") };
    assert_eq!(
        document.values(),
        [Value::Integer(4), json("{\"title\" : \"four\", \"author\" : null}")]
    );
    for (query, code, said) in [
        ("SELECT nothing FROM book WHERE id = :id", Code::RELATION_MISSING, "nothing"),
        ("SELECT 1 WHERE :other = 1", Code::CONFIG_INVALID, ":other"),
        ("SELECT title FROM book", Code::CONFIG_INVALID, "the key's columns"),
        ("SELECT 1 AS a, 2 AS a WHERE :id = 1", Code::CONFIG_INVALID, "two values"),
        ("DELETE FROM book WHERE id = :id RETURNING id", Code::CONFIG_INVALID, "syntax"),
        (
            "WITH d AS (DELETE FROM book RETURNING id) SELECT * FROM d",
            Code::CONFIG_INVALID,
            "top level",
        ),
        ("SELECT 1) AS x; DELETE FROM book; SELECT (1", Code::CONFIG_INVALID, ""),
    ] {
        let error = app
            .open(RelationSpec { document: sql(query), ..RelationSpec::of("book") })
            .await
            .expect_err(query);
        assert_eq!(error.code, code, "{query}: {}", error.chain());
        assert!(error.detail.contains(said), "{query}: {}", error.detail);
    }
}

/// One record whose SQL fails is told alone; its neighbours are loaded.
#[tokio::test]
async fn a_document_that_cannot_be_made_is_told_alone() {
    let Some(mut app) = App::new("CREATE TABLE t (id int PRIMARY KEY, n int)").await else {
        return;
    };
    app.run("INSERT INTO t SELECT g, g % 4 FROM generate_series(1, 40) g").await;
    let document = sql("SELECT 10 / n AS v FROM t WHERE id = :id");
    let source =
        app.open(RelationSpec { document, ..RelationSpec::of("t") }).await.expect("opened");
    let keys: Vec<Key> = (1..=41).map(|n| Key::new(n.to_string())).collect();
    let loaded = source.load(&keys, usize::MAX).await.expect("loaded");
    for (key, loaded) in keys.iter().zip(&loaded) {
        let n: i64 = key.as_str().parse().expect("a number");
        match (n, loaded) {
            (41, Loaded::Absent) => {}
            (n, Loaded::Unloadable(code, why)) if n % 4 == 0 => {
                assert_eq!(*code, Code::DOCUMENT_UNREADABLE);
                assert_eq!(why, "division by zero");
            }
            (n, Loaded::Live(document)) if n % 4 != 0 => {
                assert_eq!(document.values(), [Value::Integer(10 / (n % 4))]);
            }
            other => panic!("{other:?}"),
        }
    }
    let document = sql("SELECT x FROM generate_series(1, 2) x WHERE :id = 1");
    let source =
        app.open(RelationSpec { document, ..RelationSpec::of("t") }).await.expect("opened");
    assert!(
        matches!(source.one("1").await, Loaded::Unloadable(code, _) if code == Code::DOCUMENT_UNREADABLE)
    );
    assert_eq!(source.one("2").await, Loaded::Absent);
}

/// A document over the limit is told with its size, and never sent; bytes are bounded over a page.
#[tokio::test]
async fn a_document_over_the_limit_is_not_read() {
    let Some(mut app) = App::new("CREATE TABLE t (id int PRIMARY KEY, big text, small text)").await
    else {
        return;
    };
    app.run("INSERT INTO t VALUES (1, repeat('x', 5000), 'a'), (2, repeat('y', 999), 'b'), (3, 'z', 'c'), (4, repeat('w', 999), 'd')").await;
    let source = app
        .open(RelationSpec { document_max: 1_020, ..RelationSpec::of("t") })
        .await
        .expect("opened");
    let keys: Vec<Key> = ["1", "2", "3", "4"].into_iter().map(Key::new).collect();
    let loaded = source.load(&keys, 1_100).await.expect("loaded");
    assert_eq!(loaded.len(), 3, "the fourth is over the bytes asked for");
    assert!(
        matches!(&loaded[0], Loaded::Unloadable(code, why) if *code == Code::DOCUMENT_TOO_LARGE && why.contains("5009"))
    );
    assert!(matches!(loaded[1], Loaded::Live(_)) && matches!(loaded[2], Loaded::Live(_)));
}

/// A large column that an update leaves alone stands in the document.
#[tokio::test]
async fn a_large_column_that_did_not_change_is_in_the_document() {
    let Some(mut app) = App::new("CREATE TABLE t (id int PRIMARY KEY, big text, n int)").await
    else {
        return;
    };
    app.run("INSERT INTO t VALUES (1, (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 65536) g), 1)").await;
    let source = app.source(RelationSpec::of("t")).await;
    app.run("UPDATE t SET n = 2").await;
    let Loaded::Live(document) = source.one("1").await else { panic!("absent") };
    assert_eq!(document.values()[1].bytes(), 2 << 20);
    assert_eq!(document.values()[2], Value::Integer(2));
}

/// Rule 38: the same rule decides what is live in pages of keys and in documents.
#[tokio::test]
async fn what_is_not_wanted_is_not_live() {
    let Some(mut app) = App::new(SHOP).await else { return };
    let spec = RelationSpec { live_when: Some("NOT hidden".into()), ..RelationSpec::of("book") };
    let source = app.source(spec).await;
    app.run("UPDATE book SET hidden = true WHERE id IN (2, 3)").await;
    assert_eq!(source.listed().await, ["1", "4"]);
    assert_eq!(source.one("2").await, Loaded::Absent);
    assert_eq!(
        source.audited().await,
        (Vec::new(), Vec::new()),
        "the feed knows them all the same"
    );
}

/// X15, X24, X70: what a document is made of changes it, whichever table that is in, with TRUNCATE
/// too; and what decides how it is made is in the fingerprint.
#[tokio::test]
async fn a_document_changes_with_its_related_rows() {
    let Some(mut app) = App::new(SHOP).await else { return };
    let watch = vec![
        Watch::Child { table: "copy".into(), key: vec!["book".into()] },
        Watch::Parent { table: "author".into(), via: vec!["author".into()], key: Vec::new() },
    ];
    let source =
        app.source(RelationSpec { document: sql(KEYED), watch, ..RelationSpec::of("book") }).await;
    let mut at = source.page(&Place::START, 100).await;
    for (change, keys) in [
        ("INSERT INTO copy VALUES (12, 2, 'z')", "2"),
        ("UPDATE copy SET book = 3 WHERE id = 12", "2,3"),
        ("DELETE FROM copy WHERE id = 12", "3"),
        ("UPDATE author SET name = 'AA' WHERE id = 1", "1,3"),
        ("UPDATE author SET id = 20 WHERE id = 2 AND false", ""),
        ("TRUNCATE copy", "1"),
        ("INSERT INTO copy VALUES (1, NULL, 'nowhere')", ""),
        ("INSERT INTO copy VALUES (2, 99999999999, 'no key'), (3, 1, 'x')", "1"),
    ] {
        app.run(change).await;
        let page = source.page(&at.next, 100).await;
        let mut changed: Vec<&str> =
            page.changes.iter().map(|change| change.key.as_str()).collect();
        changed.sort_unstable();
        assert_eq!(changed.join(","), keys, "{change}");
        assert!(page.end && page.moment.is_some(), "{change}");
        at = page;
    }
}

/// X15a: children of two parents in two orders do not make a deadlock of what was none, and no
/// statement fails for two children of one parent.
#[tokio::test]
async fn watching_makes_no_deadlocks() {
    let Some(mut app) = App::new(SHOP).await else { return };
    let watch = vec![Watch::Child { table: "copy".into(), key: vec!["book".into()] }];
    let _source = app.source(RelationSpec { watch, ..RelationSpec::of("book") }).await;
    app.run("INSERT INTO copy VALUES (20, 1, 'a'), (21, 2, 'b'), (22, 1, 'c'), (23, 2, 'd')").await;
    let mut other = app.other().await;
    for (one, two) in [
        ("BEGIN", "BEGIN"),
        ("UPDATE copy SET place = 'p' WHERE id = 20", "UPDATE copy SET place = 'q' WHERE id = 23"),
        ("UPDATE copy SET place = 'p' WHERE id = 21", "UPDATE copy SET place = 'q' WHERE id = 22"),
        ("COMMIT", "COMMIT"),
    ] {
        app.run(one).await;
        crate::fixture::run(&mut other, two).await;
    }
    app.run("UPDATE copy SET place = 'both' WHERE book = 1").await;
}

/// X24: views and functions that a document is made by are part of its rules.
#[tokio::test]
async fn what_a_document_is_made_by_is_in_the_fingerprint() {
    let Some(mut app) = App::new(SHOP).await else { return };
    app.run("CREATE VIEW inner_view AS SELECT * FROM author; CREATE VIEW shown AS SELECT * FROM inner_view;
        CREATE FUNCTION deep(t text) RETURNS text LANGUAGE sql AS 'SELECT upper(t)';
        CREATE FUNCTION loud(t text) RETURNS text LANGUAGE sql AS 'SELECT deep(t) || ''!'''").await;
    let document = sql(
        "SELECT loud(title) AS t, (SELECT name FROM shown s WHERE s.id = b.author) AS n FROM book b WHERE id = :id",
    );
    let spec = RelationSpec { document, ..RelationSpec::of("book") };
    let mut before = app.open(spec.clone()).await.expect("opened").fingerprint_parts();
    assert_eq!(before, app.open(spec.clone()).await.expect("opened").fingerprint_parts());
    for change in [
        "CREATE OR REPLACE FUNCTION deep(t text) RETURNS text LANGUAGE sql AS 'SELECT lower(t)'",
        "CREATE OR REPLACE VIEW inner_view AS SELECT id, name || '.' AS name FROM author",
        "ALTER TABLE book ALTER title TYPE varchar",
    ] {
        if app.run_if_possible(change).await {
            let after = app.open(spec.clone()).await.expect("opened").fingerprint_parts();
            if !change.contains("varchar") {
                assert_ne!(before, after, "{change}");
            }
            before = after;
        }
    }
}
