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
    let preview = world.run(&["reconcile", "--dry-run"]);
    assert_eq!(preview.code, 6, "{}", preview.text());
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

#[test]
fn a_dry_run_says_what_would_be_repaired_and_writes_nothing() {
    let world = World::followed();
    world.sql(
        "mirror.db",
        "DELETE FROM cities WHERE id = 1;
         INSERT INTO cities SELECT 1000 + n.value, _rules, _version, 1000 + n.value, 'Atlantis', 0
           FROM cities, json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]') AS n
           WHERE cities.id = 4;",
    );
    insta::assert_snapshot!("dry_run", world.run(&["reconcile", "--dry-run"]).text());
    let again = world.run(&["reconcile", "--dry-run", "--format", "json"]);
    assert_eq!(again.code, 6);
    let answer: serde_json::Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(answer["pipelines"][0]["guard_refuses"], true);
    assert_eq!(answer["pipelines"][0]["orphan"], 21);
    assert_eq!(world.run(&["history"]).stdout.matches("RECONCILED").count(), 0);
    assert_eq!(world.run(&["reconcile", "--dry-run", "--confirm"]).code, 2);
}

/// X25: a rule over what has no triggers takes rows away without a number. Such a record is an orphan
/// whose feed row is live: it gets a number, and is deleted at that.
#[test]
fn a_row_that_a_rule_no_longer_wants_is_removed_and_comes_back() {
    let world = World::cities();
    world.sql("app.db", "CREATE TABLE knob (least INTEGER); INSERT INTO knob VALUES (0)");
    world.reconfigure(
        "key = \"id\"\n",
        "key = \"id\"\nlive_when = \"people > (SELECT least FROM knob)\"\n",
    );
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let held = || -> i64 {
        let count = "SELECT count(*) FROM cities";
        world.open("mirror.db").query_row(count, [], |row| row.get(0)).expect("read")
    };
    assert_eq!(held(), 5);
    for (least, left) in [(500_000, 4), (0, 5)] {
        world.sql("app.db", &format!("UPDATE knob SET least = {least}"));
        assert_eq!(world.run(&["diff"]).code, 3);
        let said = world.run(&["reconcile"]);
        assert_eq!((said.code, held()), (0, left), "{}", said.text());
        assert_eq!(world.run(&["diff"]).code, 0);
        assert_eq!(world.run(&["parked", "list"]).stdout.matches("NON_CONVERGENT").count(), 0);
    }
    // Rule 31: a rule that nothing meets empties the sink, under the guard.
    world.sql("app.db", "UPDATE knob SET least = 99000000");
    assert_eq!((world.run(&["reconcile"]).code, held()), (6, 5));
    assert_eq!((world.run(&["reconcile", "--confirm"]).code, held()), (0, 0));
}

/// X62: what no key of the source can be is removed, never buried in the feed; or left alone.
#[test]
fn entries_under_impossible_keys_are_foreign() {
    let world = World::followed();
    let plant = || {
        world.sql(
            "mirror.db",
            "INSERT INTO cities SELECT k.value, _rules, _version, NULL, 'nowhere', 0
               FROM cities, json_each('[\"007\", \"abc\", \"99999999999999999999\"]') AS k
               WHERE cities.id = 4;",
        );
    };
    plant();
    world.reconfigure("key = \"id\"\n", "key = \"id\"\nowns = \"marked\"\n");
    insta::assert_snapshot!("of_others", world.run(&["reconcile"]).text());
    assert_eq!(world.run(&["diff"]).code, 0);
    world.reconfigure("owns = \"marked\"\n", "");
    insta::assert_snapshot!("foreign", world.run(&["diff"]).text());
    let said = world.run(&["reconcile"]);
    assert_eq!((said.code, world.run(&["diff"]).code), (0, 0), "{}", said.text());
    let buried: i64 = world
        .open("app.db")
        .query_row("SELECT count(*) FROM truekeep_feed_cities WHERE deleted <> 0", [], |row| {
            row.get(0)
        })
        .expect("read");
    assert_eq!(buried, 0);
}
