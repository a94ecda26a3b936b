//! `diff` finds what differs and writes nothing.

use crate::world::World;

/// A followed world whose mirror was tampered with.
fn tampered() -> World {
    let world = World::followed();
    world.sql(
        "mirror.db",
        "DELETE FROM cities WHERE id = 1;
         UPDATE cities SET _version = 1 WHERE id = 2;
         UPDATE cities SET _version = 900 WHERE id = 3;
         INSERT INTO cities SELECT '77', _rules, _version, 77, 'Atlantis', 0
           FROM cities WHERE id = 4;",
    );
    world
}

#[test]
fn each_kind_of_drift_is_named() {
    let world = tampered();
    let before = std::fs::read(world.path("mirror.db")).expect("read");
    insta::assert_snapshot!(world.run(&["diff"]).text());
    insta::assert_snapshot!("drift_as_json", world.run(&["diff", "--format", "json"]).text());
    insta::assert_snapshot!("drift_counted", world.run(&["diff", "--limit", "1"]).text());
    assert_eq!(std::fs::read(world.path("mirror.db")).expect("read"), before, "nothing is written");
}

/// What others write over a document, and leave at its version, only `--deep` sees.
#[test]
fn an_altered_document_is_found_only_by_a_deep_diff() {
    let world = World::followed();
    world.sql("mirror.db", "UPDATE cities SET people = NULL WHERE id IN (2, 4)");
    assert_eq!(world.run(&["diff"]).code, 0);
    insta::assert_snapshot!(world.run(&["diff", "--deep"]).text());
    let json = world.run(&["diff", "--deep", "--format", "json"]);
    insta::assert_snapshot!("deep_as_json", json.text());
}

#[test]
fn a_change_that_waits_for_a_worker_is_in_flight() {
    let world = World::followed();
    world.sql(
        "app.db",
        "UPDATE cities SET people = 0 WHERE id = 1; DELETE FROM cities WHERE id = 2;
         INSERT INTO cities VALUES (6, 'Lagos', 15388000);",
    );
    insta::assert_snapshot!(world.run(&["diff"]).text());
}

#[test]
fn a_mirror_that_is_gone_lacks_everything() {
    let world = World::followed();
    std::fs::remove_file(world.path("mirror.db")).expect("it was there");
    let said = world.run(&["diff"]);
    assert_eq!(said.code, 3, "{}", said.text());
    assert!(said.stdout.contains("5 missing"), "{}", said.text());
    assert!(!world.path("mirror.db").exists(), "it is not made");
}

#[test]
fn a_change_that_capture_missed_is_found() {
    let world = World::followed();
    // A trigger that is put back as it was leaves no trace but the change that it missed.
    let trigger: String = world
        .open("app.db")
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%insert%'",
            [],
            |row| row.get(0),
        )
        .expect("capture is installed");
    world.sql(
        "app.db",
        &format!(
            "DROP TRIGGER truekeep_insert_cities;
             INSERT INTO cities VALUES (8, 'Lima', 10000000);
             {trigger};"
        ),
    );
    // X35: neither a diff nor a dry run has the audit write.
    let counter = || -> i64 {
        let newest = "SELECT newest FROM truekeep_counter_cities";
        world.open("app.db").query_row(newest, [], |row| row.get(0)).expect("read")
    };
    let before = counter();
    for command in [&["diff"][..], &["diff", "--deep"], &["reconcile", "--dry-run"]] {
        let said = world.run(command);
        assert_eq!(said.code, 3, "{}", said.text());
        assert!(said.stdout.contains("1 not recorded by capture"), "{}", said.text());
    }
    assert_eq!(counter(), before, "nothing is numbered");
}

/// Marks of related tables are expanded by workers alone.
#[test]
fn a_diff_leaves_marks_as_they_are() {
    let world = World::cities();
    world.sql("app.db", "CREATE TABLE mayors (city INTEGER, name TEXT)");
    world.reconfigure(
        "key = \"id\"\n",
        "key = \"id\"\nwatch = [{ table = \"mayors\", key = \"city\" }]\n",
    );
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    world.sql("app.db", "INSERT INTO mayors VALUES (2, 'Koike')");
    let marks = || -> i64 {
        let count = "SELECT count(*) FROM truekeep_mark_cities";
        world.open("app.db").query_row(count, [], |row| row.get(0)).expect("read")
    };
    assert_eq!(marks(), 1);
    for command in [&["diff"][..], &["diff", "--deep"]] {
        assert_eq!(world.run(command).code, 0);
        assert_eq!(marks(), 1);
    }
}

#[test]
fn a_ledger_that_is_gone_makes_everything_drift_or_in_flight() {
    let world = tampered();
    for file in ["truekeep.db", "truekeep.db-wal", "truekeep.db-shm"] {
        let _ = std::fs::remove_file(world.path(file));
    }
    insta::assert_snapshot!(world.run(&["diff"]).text());
}
