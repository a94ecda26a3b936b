//! `reconcile` repairs what `diff` finds, asks before it deletes much, and `history` tells of it.

use crate::world::World;

#[test]
fn what_differs_is_repaired_and_told() {
    let world = World::followed();
    world.sql(
        "mirror.db",
        "DELETE FROM cities WHERE id = 1;
         UPDATE cities SET _version = 1 WHERE id = 2;
         INSERT INTO cities SELECT '77', _rules, _version, 77, 'Atlantis', 0
           FROM cities WHERE id = 4;",
    );
    insta::assert_snapshot!(world.run(&["reconcile"]).text());
    assert_eq!(world.run(&["diff"]).code, 0);
    assert_eq!(world.run(&["coverage"]).code, 0);
    insta::assert_snapshot!(
        "nothing_differs",
        world.run(&["reconcile", "--format", "json"]).text()
    );
    let history = world.run(&["history"]);
    assert_eq!(history.stdout.matches("RECONCILED").count(), 2, "{}", history.text());
}

#[test]
fn altered_documents_are_mended_by_a_deep_reconcile() {
    let world = World::followed();
    world.sql("mirror.db", "UPDATE cities SET people = 0 WHERE id = 2");
    let shallow = world.run(&["reconcile"]);
    assert_eq!((shallow.code, world.run(&["diff", "--deep"]).code), (0, 3), "{}", shallow.text());
    insta::assert_snapshot!("deep", world.run(&["reconcile", "--deep"]).text());
    insta::assert_snapshot!("deep_and_equal", world.run(&["reconcile", "--deep"]).text());
    assert_eq!(world.run(&["diff", "--deep"]).code, 0);
    assert_eq!(world.run(&["coverage"]).code, 0);
}

/// What writes past triggers leaves no trace but in the documents.
#[test]
fn an_update_past_triggers_is_delivered_by_a_deep_reconcile() {
    let world = World::followed();
    let app = world.open("app.db");
    let off = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
    app.set_db_config(off, false).expect("set");
    app.execute("UPDATE cities SET name = 'Edo' WHERE id = 2", []).expect("written");
    assert_eq!(world.run(&["diff"]).code, 0, "no version moved");
    assert_eq!(world.run(&["reconcile", "--deep"]).code, 0);
    let name: String = world
        .open("mirror.db")
        .query_row("SELECT name FROM cities WHERE id = 2", [], |row| row.get(0))
        .expect("read");
    assert_eq!(name, "Edo");
}

#[test]
fn more_deletions_than_the_guard_allows_need_a_yes() {
    let world = World::followed();
    world.sql(
        "mirror.db",
        "INSERT INTO cities SELECT 1000 + n.value, _rules, _version, 1000 + n.value, 'Atlantis', 0
           FROM cities, json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]') AS n
           WHERE cities.id = 4;",
    );
    insta::assert_snapshot!("the_guard_refuses", world.run(&["reconcile"]).text());
    let held = world.run(&["diff"]);
    assert!(held.stdout.contains("21 orphan"), "nothing is deleted: {}", held.text());
    assert_eq!(world.run(&["coverage"]).code, 4, "what is known to be wrong is not vouched for");
    assert_eq!(world.run(&["reconcile", "--confirm"]).code, 0);
    assert_eq!(world.run(&["diff"]).code, 0);
    assert_eq!(world.run(&["coverage"]).code, 0);
}

#[test]
fn a_pipeline_that_never_ran_is_told_so() {
    insta::assert_snapshot!("never_ran", World::cities().run(&["reconcile"]).text());
}
