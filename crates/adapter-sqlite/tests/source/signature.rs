//! What breaks capture is told; what does not keeps trust.

use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteSource, Watch};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, CaptureState, Feed};
use truekeep_core::{Place, Version};

use crate::fixture::{App, Asked, consumer};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE, v, w);
    CREATE TABLE c (id INTEGER PRIMARY KEY, t INTEGER);
    CREATE TABLE p (id INTEGER PRIMARY KEY, name);
    CREATE TABLE other (x, y);
    INSERT INTO t VALUES (1, 'a', 1, 1), (2, 'b', 2, 2);";

fn spec() -> RelationSpec {
    let names = |name: &str| vec![name.to_owned()];
    RelationSpec {
        document: Projection::Columns(names("u")),
        watch: vec![
            Watch::Child { table: "c".into(), key: names("t") },
            Watch::Parent { table: "p".into(), via: names("v"), key: Vec::new() },
        ],
        ..RelationSpec::of("t")
    }
}

async fn state(source: &SqliteSource) -> CaptureState {
    source.page(0, 1).await.view.capture
}

async fn trusted(source: &SqliteSource) -> bool {
    matches!(state(source).await, CaptureState::Trusted(_))
}

/// Drops one of our triggers and makes it again from its own text.
fn made_again(app: &App, name: &str) -> String {
    let sql: String = app
        .db
        .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
        .expect("a trigger");
    format!("DROP TRIGGER \"{name}\"; {sql};")
}

fn triggers(app: &App) -> Vec<String> {
    app.db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid")
        .expect("prepared")
        .query_map([], |row| row.get(0))
        .expect("queried")
        .collect::<Result<_, _>>()
        .expect("read")
}

const HARMLESS: &[&str] = &[
    "CREATE TABLE more (a); CREATE INDEX mi ON more (a)",
    "CREATE INDEX plain ON t (v); DROP INDEX plain",
    "ANALYZE; ANALYZE; REINDEX; PRAGMA user_version = 5",
    "CREATE VIRTUAL TABLE f USING fts5(a); DROP TABLE f",
    "CREATE TRIGGER theirs AFTER INSERT ON t BEGIN SELECT 1; END; DROP TRIGGER theirs",
    "CREATE VIEW theirs AS SELECT * FROM t",
    "ALTER TABLE t ADD COLUMN z DEFAULT 5",
    "ALTER TABLE t RENAME COLUMN w TO ww",
    "ALTER TABLE t DROP COLUMN w",
    "ALTER TABLE c ADD COLUMN z; ALTER TABLE other DROP COLUMN y",
    "ALTER TABLE other RENAME TO another; DROP TABLE another",
    "VACUUM",
    "PRAGMA auto_vacuum = 1; VACUUM",
    "CREATE TABLE moree (a); CREATE INDEX mei ON moree (a); VACUUM",
];

/// Rule 57, X49: a change of the schema without effect on capture keeps trust; one at a time and
/// all together, also while no page is read between them.
#[tokio::test]
async fn a_harmless_change_keeps_trust() {
    for statement in HARMLESS {
        let app = App::new(SCHEMA);
        let source = app.source(spec()).await;
        let before = state(&source).await;
        app.run(statement);
        assert_eq!(state(&source).await, before, "{statement}");
        app.run("INSERT INTO t (id, u) VALUES (3, 'c')");
        assert_eq!(state(&source).await, before, "{statement}");
        let report = source.install().await.expect("installed");
        assert_eq!((report.state, report.differences), (before, vec![]), "{statement}");
    }
    let app = App::new(SCHEMA);
    let source = app.source(spec()).await;
    for round in 0..3 {
        for statement in HARMLESS.iter().filter(|statement| !statement.contains("TABLE t ")) {
            let _ = app.db.execute_batch(statement);
            assert!(trusted(&source).await, "{statement} in round {round}");
        }
        app.run("VACUUM");
        assert!(trusted(&source).await);
    }
}

/// Rows that take another column's values pass by every trigger: a change of the columns that a
/// pipeline uses is a gap, and one of any other column is none. One pipeline that keeps trust takes
/// nothing from another one that must not.
#[tokio::test]
async fn columns_that_change_places_are_a_gap() {
    const SWAP: &str = "ALTER TABLE t RENAME COLUMN a TO tmp; ALTER TABLE t RENAME COLUMN b TO a;
        ALTER TABLE t RENAME COLUMN tmp TO b";
    const RESET: &str = "ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b DEFAULT 'reset'";
    const RELATED: &str =
        "ALTER TABLE c RENAME COLUMN v TO tmp; ALTER TABLE c RENAME COLUMN w TO v";
    let columns = |name: &str| RelationSpec {
        document: Projection::Columns(vec![name.into()]),
        ..RelationSpec::of("t")
    };
    let live = |rule: &str| RelationSpec { live_when: Some(rule.into()), ..columns("z") };
    let watch = vec![Watch::Child { table: "c".into(), key: vec!["t".into()] }];
    let query = RelationSpec {
        document: Projection::Sql {
            query: "SELECT t.*, (SELECT group_concat(v) FROM c WHERE t = id) AS c FROM t WHERE id = :id".into(),
            json: vec![],
        },
        watch: watch.clone(),
        ..RelationSpec::of("t")
    };
    for (spec, statements, gap) in [
        (RelationSpec::of("t"), SWAP, true),
        (RelationSpec::of("t"), RESET, true),
        (RelationSpec::of("t"), "ALTER TABLE t ADD COLUMN more", true),
        (columns("a"), SWAP, true),
        (columns("b"), SWAP, true),
        (columns("b"), RESET, true),
        (columns("a"), RESET, false),
        (columns("z"), SWAP, false),
        (columns("z"), "ALTER TABLE t ADD COLUMN more", false),
        (live("a IS NULL"), SWAP, true),
        (live("z IS NULL"), SWAP, false),
        (live("(SELECT 1 FROM t AS o WHERE o.id = t.id)"), SWAP, true),
        (RelationSpec { watch, ..columns("z") }, RELATED, false),
        (query.clone(), SWAP, true),
        (query, "ALTER TABLE c ADD COLUMN more", true),
    ] {
        let what = format!("{spec:?}: {statements}");
        let app = App::new(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, z, a, b); INSERT INTO t VALUES (1, 'z', 'a', 'b');
             CREATE TABLE c (t INTEGER, v, w)",
        );
        let source = app.source(spec.clone()).await;
        let beside = app.source(columns("id")).await;
        source.capture().await;
        let before = state(&source).await;
        app.run(&format!("BEGIN; {statements}; COMMIT"));
        assert!(trusted(&beside).await, "{what}");
        if gap {
            let broken = CaptureState::Broken(Code::CAPTURE_CHANGED);
            assert_eq!(state(&source).await, broken, "{what}");
            assert!(!source.verify().await.expect("a report").differences.is_empty(), "{what}");
            let newest = source.newest().await;
            source.capture().await;
            assert_eq!(source.changed(newest).await, ["1"], "{what}");
            assert!(trusted(&source).await && trusted(&beside).await, "{what}");
            assert_ne!(state(&source).await, before, "{what}");
        } else {
            assert_eq!(state(&source).await, before, "{what}");
        }
    }
}

/// A renamed column of the key keeps its triggers, which SQLite rewrites; the rules name the old one.
#[tokio::test]
async fn a_renamed_key_column_is_missing() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    let by_name = RelationSpec { key: vec!["id".into()], ..RelationSpec::of("t") };
    let named = app.source(by_name).await;
    let primary = app.open(RelationSpec::of("t")).await.expect("opened");
    app.run("ALTER TABLE t RENAME COLUMN id TO ident; INSERT INTO t VALUES (1, 2)");
    let error = named.changes(&consumer(), &Place::START, 1).await.expect_err("missing");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::RELATION_MISSING));
    assert_eq!(primary.changed(0).await, ["1"]);
    assert_eq!(
        state(&primary).await,
        CaptureState::Broken(Code::CAPTURE_CHANGED),
        "its key is another"
    );
}

/// X7, X44, X49: whatever took a trigger away for a moment is a gap, on related tables too, even if
/// the same text stands there again in one transaction.
#[tokio::test]
async fn a_gap_is_seen_whatever_closed_it() {
    let app = App::new(SCHEMA);
    app.source(spec()).await;
    let all = triggers(&app);
    assert_eq!(all.len(), 18);
    let every: String = all.iter().map(|name| made_again(&app, name)).collect();
    let mut cases: Vec<(String, String)> =
        all.iter().map(|name| (name.clone(), made_again(&app, name))).collect();
    cases.push(("every trigger".into(), every));
    cases.push((
        "a table rebuilt in twelve steps".into(),
        "CREATE TABLE n (id INTEGER PRIMARY KEY, u UNIQUE, v, w); INSERT INTO n SELECT * FROM t;
         DROP TABLE t; ALTER TABLE n RENAME TO t;"
            .into(),
    ));
    cases.push((
        "tables that change names".into(),
        "CREATE TABLE n (id INTEGER PRIMARY KEY, u UNIQUE, v, w); INSERT INTO n SELECT * FROM t;
         ALTER TABLE t RENAME TO old; ALTER TABLE n RENAME TO t;"
            .into(),
    ));
    cases.push((
        "a related table rebuilt".into(),
        "CREATE TABLE n (id INTEGER PRIMARY KEY, t INTEGER); DROP TABLE c; ALTER TABLE n RENAME TO c;".into(),
    ));
    cases.push(("a new way to lose a row".into(), "CREATE UNIQUE INDEX ui ON t (v, w);".into()));
    cases.push(("the seal".into(), "DROP VIEW truekeep_seal_t;".into()));
    for (what, statements) in cases {
        let app = App::new(SCHEMA);
        let source = app.source(spec()).await;
        app.run(&format!("BEGIN; {statements} COMMIT"));
        assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED), "{what}");
        let report = source.verify().await.expect("a report");
        assert!(!report.differences.is_empty(), "{what}");
        app.run("INSERT INTO t VALUES (9, 'z', 9, 9)");
        let before = source.newest().await;
        source.capture().await;
        assert!(trusted(&source).await, "{what}");
        let again = source.changed(before).await;
        for key in ["1", "2", "9"] {
            assert!(again.iter().any(|changed| changed == key), "{what}: {key} is delivered again");
        }
        app.run("UPDATE t SET v = 7 WHERE id = 2");
        assert_eq!(source.changed(source.newest().await - 1).await, ["2"], "{what}");
    }
}

/// A trigger that is made later runs before ours, and may keep the row and skip the rest: capture is
/// broken until ours stand behind it, and every row is delivered again.
#[tokio::test]
async fn a_trigger_made_later_breaks_capture_until_install() {
    let guard = "CREATE TRIGGER guard AFTER INSERT ON";
    for (trigger, write) in [
        (
            format!("{guard} t WHEN NEW.v IS NULL BEGIN SELECT RAISE(IGNORE); END"),
            "INSERT INTO t (id) VALUES",
        ),
        (
            format!("{guard} t BEGIN INSERT INTO other VALUES (1, 1); END"),
            "INSERT OR FAIL INTO t (id) VALUES",
        ),
        (
            format!("{guard} c BEGIN SELECT RAISE(FAIL, 'no'); END"),
            "INSERT INTO c VALUES (1, 1); INSERT INTO t (id) VALUES",
        ),
    ] {
        let app = App::new(SCHEMA);
        app.run("CREATE UNIQUE INDEX ou ON other (x); INSERT INTO other VALUES (1, 1)");
        let source = app.source(spec()).await;
        app.run(&trigger);
        assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED), "{trigger}");
        let report = source.verify().await.expect("a report");
        assert!(report.differences.iter().any(|line| line.contains("\"guard\"")), "{report:?}");
        let _ = app.db.execute_batch(&format!("{write} (7)"));
        let _ = app.db.execute_batch("INSERT INTO t (id) VALUES (7)");
        source.capture().await;
        assert!(trusted(&source).await, "{trigger}");
        assert!(source.listed().await.contains(&"7".to_owned()), "{trigger}");
        let before = source.newest().await;
        let _ = app.db.execute_batch(&format!("{write} (8)"));
        assert!(!trigger.contains(" ON t ") || source.changed(before).await == ["8"], "{trigger}");
        app.run("VACUUM");
        assert!(trusted(&source).await, "{trigger}");
    }
}

/// X7: VACUUM moves the places of triggers; so does dropping and making one again, which is told
/// from it by the schema's number, also after a VACUUM and with the pages of a while missed.
#[tokio::test]
async fn a_gap_beside_a_vacuum_is_seen() {
    for vacuums in ["VACUUM;", "VACUUM; VACUUM;"] {
        let app = App::new(SCHEMA);
        let source = app.source(spec()).await;
        app.run(vacuums);
        if vacuums == "VACUUM;" {
            assert!(trusted(&source).await);
        }
        let last = triggers(&app).pop().expect("a trigger");
        app.run(&made_again(&app, &last));
        assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED));
        app.run("VACUUM");
        assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED));
    }
}

/// X7: all triggers and the seal made again in their order have their texts and their order, but
/// not their places.
#[tokio::test]
async fn everything_made_again_in_order_is_a_gap() {
    let app = App::new(SCHEMA);
    let source = app.source(spec()).await;
    app.run("CREATE VIEW theirs AS SELECT * FROM t");
    assert!(trusted(&source).await);
    let mut made: Vec<(String, String, String)> = app
        .db
        .prepare(
            "SELECT type, name, sql FROM sqlite_schema
             WHERE type IN ('trigger', 'view') AND name LIKE 'truekeep%' ORDER BY rowid",
        )
        .expect("prepared")
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("queried")
        .collect::<Result<_, _>>()
        .expect("read");
    let drops: String = made.iter().map(|(kind, name, _)| format!("DROP {kind} {name};")).collect();
    let creates: String = made.drain(..).map(|(_, _, sql)| format!("{sql};")).collect();
    app.run(&format!("BEGIN; {drops} UPDATE t SET v = 0; {creates} COMMIT"));
    assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED));
    app.run("VACUUM");
    assert_eq!(state(&source).await, CaptureState::Broken(Code::CAPTURE_CHANGED));
}

/// A change of the schema while a fill is under way begins it anew.
#[tokio::test]
async fn a_gap_during_a_fill_begins_it_anew() {
    let app = App::new(SCHEMA);
    app.run(
        "INSERT INTO t (u, v) WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         SELECT i, i FROM n",
    );
    let source = app.open(spec()).await.expect("opened");
    source.install().await.expect("installed");
    assert_eq!(source.fill().await.expect("filled").filled, 500);
    let name = "truekeep_update_t";
    app.run(&format!("BEGIN; DROP TRIGGER {name}; UPDATE t SET v = 0 WHERE id = 1; COMMIT"));
    let error = source.fill().await.expect_err("a trigger is missing");
    assert_eq!(error.code, Code::CAPTURE_CHANGED);
    assert_eq!(state(&source).await, CaptureState::Filling);
    let before = source.newest().await;
    source.install().await.expect("installed");
    while !source.fill().await.expect("filled").done {}
    assert!(source.changed(before).await.contains(&"1".to_owned()));
    assert!(trusted(&source).await);
}

/// A first fill leaves alone what triggers wrote since; its numbers follow the table's order.
#[tokio::test]
async fn a_first_fill_follows_the_tables_order() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v)");
    app.run("INSERT INTO t VALUES (20, 1), (3, 1), (100, 1)");
    let source = app.open(RelationSpec::of("t")).await.expect("opened");
    source.install().await.expect("installed");
    app.run("UPDATE t SET v = 2 WHERE id = 20");
    let touched = source.changes_after(0).await["20"].version;
    source.capture().await;
    let page = source.page(0, 10).await;
    let keys: Vec<&str> = page.changes.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["20", "3", "100"]);
    assert_eq!(page.changes[0].version, touched);
}

/// X43: after `begin_again` every number is above the one that was named, and every row gets one.
#[tokio::test]
async fn a_feed_begins_again_above_a_number() {
    let app = App::new(SCHEMA);
    let source = app.source(spec()).await;
    source.begin_again(Version::new(1_000)).await.expect("begun");
    assert_eq!(state(&source).await, CaptureState::Filling);
    app.run("INSERT INTO t VALUES (3, 'c', 3, 3)");
    while !source.fill().await.expect("filled").done {}
    let changes = source.changes_after(1_000).await;
    assert_eq!(changes.keys().collect::<Vec<_>>(), ["1", "2", "3"]);
    source.begin_again(Version::new(5)).await.expect("begun");
    assert!(source.newest().await > 1_000, "the counter never goes down");
}

/// Two pipelines share a feed: the related tables of one do not disturb the other.
#[tokio::test]
async fn pipelines_share_a_feed() {
    let app = App::new(SCHEMA);
    let plain = app.source(RelationSpec::of("t")).await;
    let watching = app.open(spec()).await.expect("opened");
    assert_eq!(state(&watching).await, CaptureState::Broken(Code::CAPTURE_CHANGED));
    watching.capture().await;
    assert!(trusted(&watching).await && trusted(&plain).await);
    plain.capture().await;
    assert!(trusted(&watching).await, "installing for one takes nothing from the other");
    let before = plain.newest().await;
    app.run("INSERT INTO c VALUES (1, 2); UPDATE p SET name = 'x'; INSERT INTO p VALUES (1, 'y')");
    assert_eq!(plain.changed(before).await, ["1", "2"], "marks are expanded by whoever reads");
    let other_key = RelationSpec { key: vec!["u".into()], ..RelationSpec::of("t") };
    let error = app.open(other_key).await.expect("opened").install().await.expect_err("refused");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::KEY_REFUSED));
}
