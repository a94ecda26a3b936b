//! What makes capture doubtful, what does not, and how it is mended.

use truekeep_adapter_postgres::{PostgresSource, RelationSpec, Watch};
use truekeep_core::Place;
use truekeep_core::ports::{Capture, CaptureState};

use crate::fixture::{App, Asked};

const SCHEMA: &str = "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100);
    CREATE TABLE c (id int PRIMARY KEY, t int, n int);
    CREATE TABLE spare (id int NOT NULL, v text, CONSTRAINT own PRIMARY KEY (id));
    INSERT INTO t SELECT g, 'x' FROM generate_series(1, 10) g; INSERT INTO c VALUES (1, 1, 1)";

fn spec() -> RelationSpec {
    let watch = vec![Watch::Child { table: "c".into(), key: vec!["t".into()] }];
    RelationSpec { watch, ..RelationSpec::of("t") }
}

async fn trusted(source: &PostgresSource) -> bool {
    matches!(source.page(&Place::START, 1).await.view.capture, CaptureState::Trusted(_))
}

/// X7, X44: whatever lets a change pass unseen is told by the next page, also if it was put back in
/// the same transaction, and also on a partition or a watched table.
#[tokio::test]
async fn a_gap_is_told_even_if_everything_stands_again() {
    for gap in [
        "BEGIN; ALTER TABLE t DISABLE TRIGGER ALL; ALTER TABLE t ENABLE TRIGGER ALL; COMMIT",
        "BEGIN; ALTER TABLE low DISABLE TRIGGER USER; UPDATE low SET v = 'unseen'; ALTER TABLE low ENABLE TRIGGER USER; COMMIT",
        "BEGIN; ALTER TABLE c DISABLE TRIGGER USER; UPDATE c SET n = 2; ALTER TABLE c ENABLE TRIGGER USER; COMMIT",
        "DROP TABLE c; CREATE TABLE c (id int PRIMARY KEY, t int, n int)",
        "ALTER TABLE t ALTER v TYPE varchar USING upper(v)",
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (200)",
        "ALTER TABLE t ATTACH PARTITION spare FOR VALUES FROM (100) TO (200)",
        "ALTER TABLE t DETACH PARTITION low",
        "DO $$ DECLARE f regprocedure; BEGIN SELECT oid INTO f FROM pg_proc WHERE proname LIKE 'insert\\_t\\_%';
           EXECUTE format('ALTER FUNCTION %s OWNER TO CURRENT_USER; ALTER FUNCTION %s COST 7', f, f); END $$",
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old INCLUDING ALL) PARTITION BY RANGE (id)",
    ] {
        let Some(mut app) = App::new(SCHEMA).await else { return };
        let source = app.source(spec()).await;
        assert!(trusted(&source).await);
        app.run(gap).await;
        assert!(!trusted(&source).await, "{gap}");
        let report = source.verify().await.expect("a report");
        assert!(matches!(report.state, CaptureState::Broken(_)) && !report.differences.is_empty(), "{gap}");
        source.captured().await;
        assert!(trusted(&source).await, "{gap}");
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{gap}");
        assert_eq!(source.verify().await.expect("a report").differences, Vec::<String>::new());
    }
}

/// X49: what has nothing to do with capture keeps trust; so does installing again.
#[tokio::test]
async fn what_lets_no_change_pass_keeps_trust() {
    let Some(mut app) = App::new(SCHEMA).await else { return };
    let source = app.source(spec()).await;
    for harmless in [
        "CREATE TABLE other (t int, CONSTRAINT f FOREIGN KEY (t) REFERENCES t (id))",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER own AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION f()",
        "ANALYZE t; CREATE INDEX ON low (v); GRANT SELECT ON t TO PUBLIC",
        "CREATE TABLE unrelated (a int); DROP TABLE unrelated",
        "COMMENT ON TABLE t IS 'x'",
    ] {
        app.run(harmless).await;
        assert!(trusted(&source).await, "{harmless}");
    }
    run_vacuum(&mut app).await;
    assert!(trusted(&source).await);
    let before = app.text("SELECT max(version) FROM (SELECT last_value AS version FROM pg_sequences WHERE schemaname = 'truekeep') s").await;
    source.install().await.expect("installed");
    assert!(trusted(&source).await);
    assert_eq!(app.text("SELECT max(version) FROM (SELECT last_value AS version FROM pg_sequences WHERE schemaname = 'truekeep') s").await, before);
}

async fn run_vacuum(app: &mut App) {
    for table in ["low", "c", "pg_attribute", "pg_trigger", "pg_proc"] {
        app.run(&format!("VACUUM FULL {table}")).await;
    }
    app.run("VACUUM FREEZE low").await;
}

/// X7: what changed past the triggers is found by its row's version, although both sides are there.
#[tokio::test]
async fn the_audit_finds_a_changed_row_whose_feed_row_is_live() {
    let Some(mut app) = App::new(SCHEMA).await else { return };
    let source = app.source(spec()).await;
    app.run(
        "ALTER TABLE low DISABLE TRIGGER USER; UPDATE low SET v = 'unseen' WHERE id IN (3, 7);
        ALTER TABLE low ENABLE TRIGGER USER",
    )
    .await;
    assert_eq!(source.audited().await, (vec!["3".into(), "7".into()], Vec::new()));
    // What moves rows without changing them is no change.
    let Some(mut app) = App::new(SCHEMA).await else { return };
    let source = app.source(spec()).await;
    app.run("BEGIN; UPDATE t SET v = 'a' WHERE id = 1; SAVEPOINT s; UPDATE t SET v = 'b' WHERE id = 2; ROLLBACK TO s;
        SAVEPOINT s; UPDATE t SET v = 'c' WHERE id = 2; RELEASE s; UPDATE t SET v = 'd' WHERE id = 1; COMMIT;
        BEGIN; SELECT * FROM t FOR UPDATE; COMMIT; CLUSTER low USING low_pkey").await;
    run_vacuum(&mut app).await;
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}

/// X16: a table that a subscription writes is captured row by row.
#[tokio::test]
async fn what_a_subscription_writes_is_captured() {
    // A slot waits for every transaction of its server.
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut from = App::on(
        &server,
        "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION p FOR TABLE t",
    )
    .await;
    let mut app = App::on(&server, "CREATE TABLE t (id int PRIMARY KEY, v text)").await;
    from.run("SELECT pg_create_logical_replication_slot('s_' || current_database(), 'pgoutput')")
        .await;
    let place = server.folder().expect("private").display().to_string();
    app.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION 'host={place} dbname={0} user=postgres' PUBLICATION p
         WITH (create_slot = false, slot_name = 's_{0}', copy_data = false)",
        from.test.name
    ))
    .await;
    let source = app.source(RelationSpec::of("t")).await;
    assert_eq!(
        app.text(
            "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'truekeep%' AND tgtype & 1 = 1"
        )
        .await,
        "3"
    );
    from.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'); UPDATE t SET id = 3 WHERE id = 2; DELETE FROM t WHERE id = 1").await;
    app.until("SELECT count(*) = 1 AND max(id) = 3 FROM t").await;
    let feed = source.everything(&Place::START).await;
    let told: Vec<(&str, bool)> =
        feed.iter().map(|(key, change)| (key.as_str(), change.deleted)).collect();
    assert_eq!(told, [("1", true), ("2", true), ("3", false)]);
    from.run("TRUNCATE t").await;
    app.until("SELECT count(*) = 0 FROM t").await;
    assert!(source.everything(&Place::START).await["3"].deleted);
    app.run("ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s").await;
    // The signature says that rows come another way now.
    assert!(!trusted(&source).await);
}

/// X49: a new partition is captured once capture was installed again, and the feed stays the same.
#[tokio::test]
async fn a_new_partition_is_captured_after_an_install() {
    let Some(mut app) = App::new(SCHEMA).await else { return };
    let source = app.source(spec()).await;
    let before = source.page(&Place::START, 1).await.view.incarnation;
    app.run("CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (200); INSERT INTO t VALUES (150, 'through'); INSERT INTO high VALUES (151, 'direct')").await;
    source.captured().await;
    app.run("INSERT INTO high VALUES (152, 'seen')").await;
    let feed = source.everything(&Place::START).await;
    assert!(["150", "151", "152"].iter().all(|key| !feed[*key].deleted));
    assert_eq!(source.page(&Place::START, 1).await.view.incarnation, before);
}
