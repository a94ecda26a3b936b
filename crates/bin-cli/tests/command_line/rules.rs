//! Rules come into force by the first start or by `apply`.

use crate::world::World;

/// A followed world whose mirror holds whole documents, so that rules can change under it.
fn world() -> World {
    let world = World::cities();
    world.reconfigure(
        "kind = \"sqlite\"\n",
        "kind = \"sqlite\"\nlayout = { json = \"document\" }\n",
    );
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    world
}

#[test]
fn changed_rules_are_shown_announced_and_delivered() {
    let world = world();
    world.reconfigure("key = \"id\"\n", "key = \"id\"\ndocument = [\"id\", \"name\"]\n");
    let mut story = String::new();
    for command in
        ["run --once", "check", "apply --dry-run", "apply", "coverage", "run --once", "diff"]
    {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
    let document: String = world
        .open("mirror.db")
        .query_row("SELECT document FROM cities WHERE _key = '1'", [], |row| row.get(0))
        .expect("delivered");
    assert_eq!(document, r#"{"id":1,"name":"Zürich"}"#);
}

#[test]
fn the_same_rules_are_announced_again_so_that_everything_is_delivered_again() {
    let world = world();
    world.sql("mirror.db", "UPDATE cities SET document = '{}'");
    insta::assert_snapshot!(world.run(&["apply", "--again"]).text());
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let damaged: u32 = world
        .open("mirror.db")
        .query_row("SELECT count(*) FROM cities WHERE document = '{}'", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(damaged, 0);
}

/// New rules by one command: in force, delivered, compared. What only the mirror has goes.
#[test]
fn a_rebuild_puts_the_configured_rules_in_force_and_waits_for_its_end() {
    let world = world();
    world.reconfigure("key = \"id\"\n", "key = \"id\"\ndocument = [\"id\", \"name\"]\n");
    world.sql(
        "app.db",
        "DELETE FROM cities WHERE id = 2; UPDATE cities SET people = 1 WHERE id = 3",
    );
    let stray =
        "INSERT INTO cities SELECT '77', _rules, _version, '{}' FROM cities WHERE _key = '1'";
    world.sql("mirror.db", stray);
    let mut story = String::new();
    for command in ["rebuild", "coverage", "diff --deep", "rebuild --format json", "history"] {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
    let older = "SELECT count(*) FROM cities WHERE _rules <> 3";
    let older: u32 =
        world.open("mirror.db").query_row(older, [], |row| row.get(0)).expect("counted");
    assert_eq!(older, 0);
}

#[test]
fn an_announcement_is_data_in_json() {
    let world = world();
    world.reconfigure("key = \"id\"\n", "key = \"id\"\ndocument = [\"id\", \"name\"]\n");
    insta::assert_snapshot!(world.run(&["apply", "--dry-run", "--format", "json"]).text());
}
