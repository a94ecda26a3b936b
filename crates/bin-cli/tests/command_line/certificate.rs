//! `coverage` and `wait` say when a mirror may be relied on.

use crate::world::World;

#[test]
fn an_idle_certificate_is_as_fresh_as_its_source() {
    let world = World::followed();
    let fresh = world.run(&["coverage", "--max-age", "1 ms"]);
    insta::assert_snapshot!(fresh.text());
    world.sql("app.db", "UPDATE cities SET people = 0");
    let stale = world.run(&["coverage", "--max-age", "1 ms"]);
    assert_eq!(stale.code, 4, "{}", stale.text());
    assert!(stale.stdout.contains("older than asked"), "{}", stale.text());
    assert_eq!(world.run(&["coverage"]).code, 0, "without an age the moment is enough");
}

#[test]
fn a_source_that_cannot_be_asked_makes_nothing_fresh() {
    let world = World::followed();
    std::fs::remove_file(world.path("app.db")).expect("it was there");
    assert_eq!(world.run(&["coverage"]).code, 0, "the ledger is enough");
    let said = world.run(&["coverage", "--max-age", "1 ms"]);
    assert_eq!(said.code, 4, "{}", said.text());
    assert!(said.stdout.contains("the source cannot be asked"), "{}", said.text());
}

#[test]
fn a_token_is_covered_once_the_moment_includes_it() {
    let world = World::followed();
    world.sql("app.db", "UPDATE cities SET people = people + 1");
    let early = world.run(&["coverage", "--token", "10"]);
    assert_eq!(early.code, 4, "{}", early.text());
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let after = world.run(&["coverage", "--token", "10"]);
    assert_eq!(after.code, 0, "{}", after.text());
    assert_eq!(world.run(&["wait", "--token", "10"]).code, 0);
}

#[test]
fn a_wait_that_ends_too_late_says_what_is_missing() {
    let world = World::followed();
    insta::assert_snapshot!(world.run(&["wait", "--token", "1000", "--timeout", "1 ms"]).text());
    insta::assert_snapshot!(
        "wait_before_anything",
        World::cities().run(&["wait", "--timeout", "1 ms"]).text()
    );
}

#[test]
fn a_wait_without_a_token_includes_what_is_in_the_source_now() {
    let world = World::followed();
    world.sql("app.db", "UPDATE cities SET people = 0");
    assert_eq!(world.run(&["wait", "--timeout", "1 ms"]).code, 4);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    assert_eq!(world.run(&["wait", "--timeout", "1 ms"]).code, 0);
}

#[test]
fn readers_need_no_sink_and_no_source() {
    let world = World::followed();
    for file in ["app.db", "mirror.db"] {
        std::fs::remove_file(world.path(file)).expect("it was there");
        std::fs::create_dir(world.path(file)).expect("made");
    }
    for command in ["status", "coverage", "explain cities", "parked list"] {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{command}: {}", said.text());
    }
}

#[test]
fn a_reader_makes_no_ledger() {
    let world = World::cities();
    for command in ["status", "coverage", "check", "parked list", "apply --dry-run"] {
        world.run(&command.split(' ').collect::<Vec<_>>());
        assert!(!world.path("truekeep.db").exists(), "{command}");
        assert!(!world.path("mirror.db").exists(), "{command}");
    }
}
