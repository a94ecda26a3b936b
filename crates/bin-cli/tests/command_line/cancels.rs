//! A reconcile under way is cancelled; what never ends is not.

use crate::world::World;

/// A reconcile that was wished for and waits for a worker, as the pipeline is paused.
fn waiting() -> World {
    let world = World::followed();
    assert_eq!(world.run(&["pause", "cities"]).code, 0);
    assert_eq!(world.run(&["reconcile"]).code, 4);
    world
}

/// Rules 99 and 107: it ends once, and another may begin.
#[test]
fn a_reconcile_is_cancelled_once_and_another_may_begin() {
    let world = waiting();
    let mut story = String::new();
    for command in [
        "status",
        "cancel cities --reason too-early",
        "cancel cities",
        "coverage",
        "resume cities",
        "reconcile",
        "cancel cities",
        "cancel cities --run follow",
        "history",
    ] {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
}

#[test]
fn a_cancel_is_data_in_json() {
    let said = waiting().run(&["cancel", "cities", "--format", "json"]);
    insta::assert_snapshot!(said.text());
}

#[test]
fn what_never_ran_has_nothing_to_cancel() {
    let world = World::cities();
    assert_eq!(world.run(&["cancel", "cities"]).code, 2);
    assert_eq!(world.run(&["cancel", "towns"]).code, 2);
    assert_eq!(World::followed().run(&["cancel", "cities"]).code, 2);
}
