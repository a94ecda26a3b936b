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
    assert_eq!(world.run(&["parked", "retry", "1"]).code, 2);
}
