//! Several pipelines at once: each is done, whichever fails.

use crate::world::{CONFIG, World};

/// A pipeline whose source is not there, before one that is sound.
fn world() -> World {
    let world = World::cities();
    let gone = "[source.gone]\nurl = \"sqlite:gone.db\"\n\n[pipeline.absent]\nsource = \"gone\"\n\
        table = \"t\"\nkey = \"id\"\nsink = \"absent\"\n\n[sink.absent]\nkind = \"sqlite\"\n\
        url = \"sqlite:mirror.db\"\ntable = \"absent\"\n\n";
    world.write("truekeep.toml", &format!("{gone}{CONFIG}"));
    world
}

const STORY: &[&str] = &[
    "capture install",
    "capture verify",
    "apply",
    "run --once",
    "diff",
    "reconcile",
    "reconcile --dry-run",
    "pause --all",
    "resume --all",
    "capture remove -p absent -p cities",
];

#[test]
fn a_pipeline_that_fails_stops_no_other_and_decides_the_exit() {
    let world = world();
    let mut story = String::new();
    for command in STORY {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
}

#[test]
fn what_failed_is_data_beside_the_answers() {
    let world = world();
    let said = world.run(&["capture", "install", "--format", "json"]);
    insta::assert_snapshot!(said.text());
}
