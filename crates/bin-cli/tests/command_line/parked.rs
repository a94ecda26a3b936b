//! Records that are set aside are seen, explained and tried again.

use crate::world::World;

/// A world in which one city's name is longer than a document may be.
fn world() -> World {
    let world = World::cities();
    world.reconfigure("key = \"id\"\n", "key = \"id\"\ndocument_max = \"100 B\"\n");
    world.sql("app.db", "UPDATE cities SET name = printf('%.200c', 'x') WHERE id = 3");
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    world
}

#[test]
fn a_record_that_is_too_large_is_parked_and_the_others_go_on() {
    let world = world();
    let mut story = String::new();
    for command in
        ["run --once", "coverage", "parked list", "parked show 3", "diff", "explain cities"]
    {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
    let json = world.run(&["parked", "list", "--format", "json"]);
    insta::assert_snapshot!("parked_as_json", json.text());
}

#[test]
fn a_mended_record_is_delivered_on_an_operators_wish() {
    let world = world();
    assert_eq!(world.run(&["run", "--once"]).code, 4);
    world.reconfigure("100 B", "1 kB");
    insta::assert_snapshot!(world.run(&["parked", "retry", "3"]).text());
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    insta::assert_snapshot!("nothing_parked", world.run(&["parked", "list"]).text());
    assert_eq!(world.run(&["diff"]).code, 0);
}

#[test]
fn all_parked_records_are_retried_at_once() {
    let world = world();
    world.sql("app.db", "UPDATE cities SET name = printf('%.200c', 'x')");
    assert_eq!(world.run(&["run", "--once"]).code, 4);
    let said = world.run(&["parked", "retry", "--all"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "5 will be tried again by the worker\n"));
}

#[test]
fn a_record_that_is_not_parked_is_a_usage_error() {
    let world = world();
    insta::assert_snapshot!(world.run(&["parked", "show", "1"]).text());
    assert_eq!(world.run(&["parked", "retry", "99"]).code, 2, "nor does the source know it");
}

/// Rule 107: it is off the list, and nothing is certified that the sink lacks, until newer data
/// was delivered.
#[test]
fn a_record_that_is_given_up_is_off_the_list_and_not_certified() {
    let world = world();
    let mut story = String::new();
    for command in [
        "run --once",
        "parked discard 1",
        "parked discard 3 --reason unwanted",
        "parked discard 3",
        "parked list",
        "parked list --discarded",
        "parked show 3",
        "parked retry --all",
        "run --once",
        "reconcile",
        "diff",
        "history",
    ] {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    world.sql("app.db", "UPDATE cities SET name = 'Athens' WHERE id = 3");
    let said = world.run(&["run", "--once"]);
    story += &format!("$ truekeep run --once\n{}\n", said.text());
    insta::assert_snapshot!(story);
    let json = world.run(&["parked", "list", "--discarded", "--format", "json"]);
    assert!(json.stdout.contains("\"items\": []"), "{}", json.text());
}

/// Rule 101: what was given up is tried after all when somebody asks for it by its key.
#[test]
fn a_record_that_was_given_up_can_still_be_tried() {
    let world = world();
    assert_eq!(world.run(&["run", "--once"]).code, 4);
    let said = world.run(&["parked", "discard", "3", "--format", "json"]);
    assert_eq!(said.code, 0, "{}", said.text());
    world.reconfigure("100 B", "1 kB");
    assert_eq!(world.run(&["parked", "retry", "3"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    assert_eq!(world.run(&["diff"]).code, 0);
}

/// Rule 101: a record that is not set aside is looked up in the source and delivered, or deleted.
#[test]
fn any_record_that_the_source_knows_is_delivered_once_more_on_a_wish() {
    let world = World::followed();
    world.sql("mirror.db", "UPDATE cities SET name = 'Zuerich' WHERE _key = '1'");
    world.sql("app.db", "DELETE FROM cities WHERE id = 2");
    let said = world.run(&["parked", "retry", "1"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1 will be tried again by the worker\n"));
    let again = world.run(&["parked", "retry", "1"]);
    assert!(again.stdout.contains("1 were being tried already"), "{}", again.text());
    assert_eq!(world.run(&["parked", "retry", "2"]).code, 0);
    assert_eq!(world.run(&["coverage"]).code, 0, "what was vouched for is as new as before");
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let name: String = world
        .open("mirror.db")
        .query_row("SELECT group_concat(name) FROM cities WHERE _key IN ('1', '2')", [], |row| {
            row.get(0)
        })
        .expect("read");
    assert_eq!(name, "Zürich");
}
