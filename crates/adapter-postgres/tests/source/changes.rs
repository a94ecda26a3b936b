//! What captures changes: statements of every kind, on every kind of table.

use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::Place;

use crate::fixture::{App, Asked};

/// A live row must be live in the feed, a tombstone have no row, and what changed a greater number.
async fn truth(app: &mut App, source: &PostgresSource, what: &str) {
    let (missed, ghosts) = source.audited().await;
    assert_eq!((missed, ghosts), (Vec::new(), Vec::new()), "{what}");
    let feed = source.everything(&Place::START).await;
    let live: Vec<&str> =
        feed.iter().filter(|(_, change)| !change.deleted).map(|(key, _)| key.as_str()).collect();
    let rows = app
        .text(
            "SELECT coalesce(string_agg(id::text, ',' ORDER BY id::text COLLATE \"C\"), '') FROM t",
        )
        .await;
    assert_eq!(live.join(","), rows, "{what}");
}

const CASES: &[(&str, &str)] = &[
    ("insert", "INSERT INTO t VALUES (9, 'a'), (8, 'b')"),
    ("shift", "UPDATE t SET id = id + 1"),
    ("swap", "UPDATE t SET id = 3 - id WHERE id IN (1, 2)"),
    ("move a key", "UPDATE t SET id = 100 WHERE id = 1"),
    ("upsert", "INSERT INTO t VALUES (1, 'x'), (50, 'y') ON CONFLICT (id) DO UPDATE SET v = excluded.v"),
    ("upsert that moves", "INSERT INTO t VALUES (2, 'x') ON CONFLICT (id) DO UPDATE SET id = 200"),
    ("do nothing", "INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING"),
    ("delete and update", "WITH d AS (DELETE FROM t WHERE id = 1) UPDATE t SET id = 77 WHERE id = 2"),
    ("delete and insert", "DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'again')"),
    ("merge", "MERGE INTO t USING (VALUES (1), (2), (300)) AS s (id) ON s.id = t.id
        WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 400 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm')"),
    ("savepoint", "BEGIN; SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; UPDATE t SET v = 's' WHERE id = 1; RELEASE a; COMMIT"),
    ("cascade", "DELETE FROM parent WHERE id = 1"),
    ("cascaded update", "UPDATE parent SET id = 5 WHERE id = 2"),
    ("deferred", "BEGIN; SET CONSTRAINTS ALL DEFERRED; UPDATE t SET id = id + 1 WHERE id <= 2; COMMIT"),
    ("a trigger of the application's that puts it back", "DELETE FROM t WHERE id = 3"),
    ("replica", "SET session_replication_role = replica; UPDATE t SET v = 'r' WHERE id = 1; RESET session_replication_role"),
    ("copy", "CREATE TEMP TABLE s AS SELECT 500 AS id, 'c' AS v; INSERT INTO t SELECT * FROM s"),
    ("truncate", "TRUNCATE t"),
    ("truncate and fill", "BEGIN; TRUNCATE t; INSERT INTO t VALUES (1, 'n'); COMMIT"),
    ("truncate that rolls back", "BEGIN; TRUNCATE t; ROLLBACK"),
];

const PLAIN: &str = "CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 5);
    CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, v text, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE,
      UNIQUE (id))";
const PARTS: &str = "CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 5);
    CREATE TABLE t (id int PRIMARY KEY, v text, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (3);
    CREATE TABLE high (v text, p int, id int NOT NULL);
    ALTER TABLE t ATTACH PARTITION high FOR VALUES FROM (3) TO (MAXVALUE)";
const LEAF: &str = "CREATE TABLE parent (id int PRIMARY KEY);
    INSERT INTO parent SELECT generate_series(1, 5);
    CREATE TABLE whole (id int PRIMARY KEY, v text, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE) PARTITION BY RANGE (id);
    CREATE TABLE t PARTITION OF whole FOR VALUES FROM (MINVALUE) TO (MAXVALUE)";

/// Rows 1 to 4, and a trigger that undoes the deletion of row 3.
const ROWS: &str = "INSERT INTO t (id, v, p) VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', NULL);
    CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF OLD.id = 3 AND OLD.v = 'three' THEN INSERT INTO t VALUES (3, 'back', NULL); END IF; RETURN NULL; END $$;
    CREATE TRIGGER back AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION back()";

/// X8, X16: whatever a statement does, the feed says what the table says.
#[tokio::test]
async fn the_feed_says_what_the_table_says_after_any_statement() {
    for (name, schema) in [("plain", PLAIN), ("partitioned", PARTS), ("leaf", LEAF)] {
        let Some(mut app) = App::new(schema).await else { return };
        app.run(ROWS).await;
        let mut spec = RelationSpec::of("t");
        spec.key = vec!["id".into()];
        let source = app.source(spec).await;
        truth(&mut app, &source, name).await;
        for (case, sql) in CASES {
            // An arbiter of ON CONFLICT cannot be deferred, nor can the older servers MERGE.
            let done =
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_string())).execute(&mut app.db).await;
            if done.is_err() {
                app.run("ROLLBACK").await;
            }
            truth(&mut app, &source, &format!("{name}: {case} {done:?}")).await;
            app.run("TRUNCATE t; DELETE FROM parent; INSERT INTO parent SELECT generate_series(1, 5);
                INSERT INTO t (id, v, p) VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', NULL)").await;
        }
    }
}

/// X16: what is written to a partition itself is seen, also by TRUNCATE, and takes nothing else along.
#[tokio::test]
async fn what_is_written_to_a_partition_is_seen() {
    let Some(mut app) = App::new(PARTS).await else { return };
    app.run(ROWS).await;
    let source = app.source(RelationSpec::of("t")).await;
    for sql in [
        "INSERT INTO high VALUES ('direct', NULL, 10)",
        "UPDATE low SET v = 'x'",
        "DELETE FROM low WHERE id = 1",
        "UPDATE t SET id = 20 WHERE id = 2",
        "INSERT INTO low VALUES (0, 'z')",
        "TRUNCATE high",
        "TRUNCATE ONLY low",
    ] {
        app.run(sql).await;
        truth(&mut app, &source, sql).await;
    }
    let feed = source.everything(&Place::START).await;
    assert!(feed["0"].deleted && feed["20"].deleted);
}

/// X39: a statement that changes nothing takes no transaction id, and none does harm to what reads.
#[tokio::test]
async fn a_statement_that_changes_nothing_takes_no_number() {
    let Some(mut app) = App::new(PLAIN).await else { return };
    app.run(ROWS).await;
    let mut spec = RelationSpec::of("t");
    spec.key = vec!["id".into()];
    let _source = app.source(spec).await;
    app.run("BEGIN; UPDATE t SET v = 'x' WHERE false; DELETE FROM t WHERE false").await;
    assert_eq!(app.text("SELECT pg_current_xact_id_if_assigned()").await, "NULL");
    app.run("COMMIT").await;
}

/// Tables that cannot be followed are refused, each with what to do.
#[tokio::test]
async fn what_cannot_be_followed_is_refused_with_a_remedy() {
    let Some(mut app) = App::new(
        "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL UNIQUE, plain text, loose text UNIQUE);
         CREATE VIEW v AS SELECT * FROM items;
         CREATE MATERIALIZED VIEW m AS SELECT * FROM items;
         CREATE UNLOGGED TABLE u (id int PRIMARY KEY);
         CREATE TABLE inherited (id int PRIMARY KEY);
         CREATE TABLE heir (id int PRIMARY KEY) INHERITS (inherited);
         CREATE TABLE none (a int);
         CREATE TABLE part (a text NOT NULL); CREATE UNIQUE INDEX ON part (a) WHERE a > 'b';
         CREATE UNIQUE INDEX ON part (lower(a));
         CREATE TABLE f (id int PRIMARY KEY) PARTITION BY LIST (id);
         CREATE UNLOGGED TABLE f1 PARTITION OF f FOR VALUES IN (1);
         CREATE TABLE j (id jsonb PRIMARY KEY);
         CREATE TABLE r (id int4range PRIMARY KEY);
         CREATE COLLATION nd (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE n (id text COLLATE nd PRIMARY KEY);
         CREATE EXTENSION IF NOT EXISTS citext; CREATE TABLE ci (id citext PRIMARY KEY)",
    ).await else { return };
    app.run("SELECT 1").await;
    for (table, key, code, text) in [
        ("v", vec![], "RELATION_REFUSED", "is a view"),
        ("m", vec![], "RELATION_REFUSED", "is a view"),
        ("u", vec![], "RELATION_REFUSED", "is unlogged"),
        ("f", vec![], "RELATION_REFUSED", "is unlogged"),
        ("inherited", vec![], "RELATION_REFUSED", "inherits"),
        ("heir", vec![], "RELATION_REFUSED", "inherits"),
        ("pg_catalog.pg_class", vec![], "RELATION_REFUSED", "no table of the application"),
        ("none", vec![], "RELATION_REFUSED", "no primary key"),
        ("none", vec!["a"], "KEY_REFUSED", "no unique index"),
        ("part", vec!["a"], "KEY_REFUSED", "no unique index"),
        ("item", vec![], "RELATION_MISSING", "the nearest name is \"items\""),
        ("items", vec!["nam"], "RELATION_MISSING", "the nearest name is \"name\""),
        ("items", vec!["plain"], "KEY_REFUSED", "no unique index"),
        ("items", vec!["loose"], "KEY_REFUSED", "may be NULL"),
        ("j", vec![], "KEY_REFUSED", "jsonb"),
        ("r", vec![], "KEY_REFUSED", "int4range"),
        ("n", vec![], "KEY_REFUSED", "collation"),
        ("ci", vec![], "KEY_REFUSED", "normal_form"),
    ] {
        let key: Vec<String> = key.into_iter().map(str::to_owned).collect();
        let opened = app.open(RelationSpec { key, ..RelationSpec::of(table) }).await;
        let error = opened.expect_err(table);
        assert_eq!(error.code.as_str(), code, "{table}: {}", error.chain());
        assert!(error.detail.contains(text), "{table}: {}", error.detail);
    }
}

/// Reserved and quoted names, dots, capitals, 63 bytes, in schemas, tables and columns.
#[tokio::test]
async fn any_name_can_be_followed() {
    let long = "ü".repeat(31);
    for (schema, table) in [
        ("public", "select"),
        ("S.x", "a\"b"),
        ("it's", "a.b c"),
        ("public", "Größe"),
        ("$x$", long.as_str()),
        ("%s", "a\\b"),
    ] {
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let name = format!("{}.{}", quote(schema), quote(table));
        let Some(mut app) = App::new(&format!(
            "CREATE SCHEMA IF NOT EXISTS {}; CREATE TABLE {name} (\"order\" text NOT NULL, \"a\"\"b\" int NOT NULL,
             \"key\" text, c1 text, ord int, PRIMARY KEY (\"order\", \"a\"\"b\"))",
            quote(schema)
        )).await else { return };
        let full = if schema == "public" { table.to_owned() } else { format!("{schema}.{table}") };
        // A schema with a dot cannot be told from its table; the search path tells it.
        let full = if schema.contains('.') {
            app.run(&format!(
                "ALTER DATABASE {} SET search_path = {}",
                app.test.name,
                quote(schema)
            ))
            .await;
            table.to_owned()
        } else {
            full
        };
        let mut spec = RelationSpec::of(full);
        spec.live_when = Some("key IS DISTINCT FROM 'hidden'".into());
        let source = app.source(spec).await;
        app.run(&format!(
            "INSERT INTO {name} VALUES ('x', 1, 'k', 'c', 1), ('y', 2, 'hidden', 'c', 2)"
        ))
        .await;
        app.run(&format!("UPDATE {name} SET \"a\"\"b\" = 3 WHERE \"order\" = 'x'")).await;
        assert_eq!(source.listed().await, ["[\"x\",3]"], "{name}");
        let feed = source.everything(&Place::START).await;
        assert!(feed["[\"x\",1]"].deleted && !feed["[\"x\",3]"].deleted);
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
        truekeep_core::ports::Capture::remove(&source).await.expect("removed");
        assert_eq!(app.text("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal").await, "0");
        assert_eq!(
            app.text("SELECT count(*) FROM pg_namespace WHERE nspname = 'truekeep'").await,
            "0"
        );
    }
}
