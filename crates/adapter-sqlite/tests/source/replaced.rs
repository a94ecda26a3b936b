//! What a REPLACE removes over a unique index of values that are made: generated columns and
//! expressions.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Loaded};

use crate::fixture::{App, Asked, key};
use truekeep_adapter_sqlite::RelationSpec;

/// A statement removes row 1 of a table; the feed says that it is gone.
async fn removes(schema: &str, rows: &str, statement: &str) {
    let app = App::new(schema);
    let source = app.t().await;
    app.run(rows);
    let before = source.newest().await;
    app.run(statement);
    let there: i64 = app
        .db
        .query_row("SELECT count(*) FROM t WHERE id = 1", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(there, 0, "{schema}: {statement} removes the row");
    let changed = source.changed(before).await;
    assert!(changed.contains(&"1".to_owned()), "{schema}: {statement}: {changed:?}");
    assert_eq!(source.one("1").await, Loaded::Absent);
    assert!(!source.listed().await.contains(&key("1").to_string()), "{schema}: {statement}");
}

const ROWS: &str = "INSERT INTO t (id, a, b) VALUES (1, 'x', 'q'), (2, 'y', 'q')";

/// Before an update SQLite knows of NEW only what a trigger names.
#[tokio::test]
async fn a_row_replaced_over_a_generated_column_is_gone() {
    for kind in ["VIRTUAL", "STORED"] {
        let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b";
        for schema in [
            format!("{table}, g AS (a || '-' || b) {kind} UNIQUE)"),
            format!(
                "{table}, g TEXT GENERATED ALWAYS AS (a || '-' || b) {kind}); CREATE UNIQUE INDEX ui ON t (lower(g))"
            ),
            format!("{table}, g AS (a || '-' || b) {kind}, h AS (upper(g)) {kind} UNIQUE)"),
            format!(
                "{table}, g AS (a IS NOT NULL AND b IS NOT NULL) {kind}); CREATE UNIQUE INDEX ui ON t (a) WHERE g"
            ),
        ] {
            removes(&schema, ROWS, "UPDATE OR REPLACE t SET a = 'x' WHERE id = 2").await;
            removes(&schema, ROWS, "INSERT OR REPLACE INTO t (id, a, b) VALUES (3, 'x', 'q')")
                .await;
        }
    }
}

/// A NULL in a NOT NULL column becomes its default after the triggers before the change.
#[tokio::test]
async fn a_row_replaced_over_a_value_made_of_a_default_is_gone() {
    let text = "CREATE TABLE t (id INTEGER PRIMARY KEY, b, a TEXT NOT NULL DEFAULT 'x'";
    let number = "CREATE TABLE t (id INTEGER PRIMARY KEY, b, a INTEGER NOT NULL DEFAULT '5'";
    let statements = [
        "INSERT OR REPLACE INTO t (id, a) VALUES (3, NULL)",
        "UPDATE OR REPLACE t SET a = NULL WHERE id = 2",
    ];
    for statement in statements {
        for made in [
            ", g AS (a || '!') VIRTUAL UNIQUE)",
            ", g AS (a || '!') STORED UNIQUE)",
            ", g AS (a || '!') STORED, h TEXT AS (upper(g)) VIRTUAL UNIQUE)",
            ", text AS (CAST(a AS text)) UNIQUE)",
            "); CREATE UNIQUE INDEX ui ON t (lower(a))",
        ] {
            let rows = "INSERT INTO t (id, a) VALUES (1, 'x'), (2, 'y')";
            removes(&format!("{text}{made}"), rows, statement).await;
        }
        for made in
            [", g INTEGER AS (a + 1) UNIQUE)", ", g TEXT AS (a + 1), h AS (g || '!') UNIQUE)"]
        {
            let rows = "INSERT INTO t (id, a) VALUES (1, 5), (2, 6)";
            removes(&format!("{number}{made}"), rows, statement).await;
        }
    }
}

/// The number that a row gets by itself is not known before it is there.
#[tokio::test]
async fn a_unique_expression_of_the_row_number_is_refused() {
    for (schema, index) in [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, g AS (id % 2) UNIQUE)", "sqlite_autoindex_t_1"),
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, g AS (id), h AS (g % 2)); CREATE UNIQUE INDEX ui ON t (h)",
            "ui",
        ),
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE UNIQUE INDEX ui ON t (a, id % 2)",
            "ui",
        ),
    ] {
        let app = App::new(schema);
        let error = match app.open(RelationSpec::of("t")).await {
            Err(error) => error,
            Ok(source) => source.install().await.expect_err("refused"),
        };
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::RELATION_REFUSED));
        for name in [index, "\"id\""] {
            assert!(error.detail.contains(name), "{}", error.detail);
        }
    }
}

/// The condition of a partial index may name the number: the row that is there decides.
#[tokio::test]
async fn a_partial_index_may_name_the_row_number() {
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); CREATE UNIQUE INDEX ui ON t (a) WHERE id > 0";
    removes(schema, ROWS, "INSERT OR REPLACE INTO t (a) VALUES ('x')").await;
}
