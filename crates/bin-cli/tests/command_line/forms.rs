//! Every command answers in two forms: words for people, and data for programs.

use std::collections::BTreeSet;

use crate::search::INDEX;
use crate::world::{CONFIG, Said, World};

/// Each command at least once, in an order in which each has something to say.
const STORY: &[&str] = &[
    "init sqlite:app.db --config made.toml",
    "check",
    "doctor",
    "migrate",
    "apply",
    "capture install",
    "capture verify",
    "run --once -p cities",
    "run --once -p places",
    "status",
    "explain cities",
    "explain SINK_AHEAD",
    "coverage",
    "wait --timeout 1ms",
    "diff",
    "search places sao",
    "parked list",
    "parked reasons",
    "parked show 3 -p cities",
    "parked retry 3 -p cities",
    "run --once -p cities",
    "parked discard 3 -p cities",
    "reconcile -p cities",
    "rebuild -p cities",
    "pause cities",
    "reconcile -p cities",
    "cancel cities",
    "resume cities",
    "history -p cities",
    "remove cities",
    "capture remove -p cities -p places",
];

/// One city is longer than a document may be; all of them go into an index as well.
fn world() -> World {
    let world = World::cities();
    world.write("truekeep.toml", &format!("{CONFIG}{INDEX}"));
    world.reconfigure("sink = \"mirror\"\n", "sink = \"mirror\"\ndocument_max = \"100 B\"\n");
    world.sql("app.db", "UPDATE cities SET name = printf('%.200c', 'x') WHERE id = 3");
    world
}

fn run(world: &World, command: &str, form: &[&str]) -> Said {
    let words: Vec<_> = command.split(' ').collect();
    world.run(&[&words[..], form].concat())
}

#[test]
fn every_command_tells_people() {
    let world = world();
    let tell =
        |command: &&str| format!("$ truekeep {command}\n{}\n", run(&world, command, &[]).text());
    insta::assert_snapshot!(STORY.iter().map(tell).collect::<String>());
}

/// What ends well is data on standard output, and what does not is data somewhere.
#[test]
fn every_command_tells_programs() {
    let world = world();
    let mut story = String::new();
    for command in STORY {
        let mut said = run(&world, command, &["--format", "json"]);
        if command.starts_with("run") {
            // How often a worker looks and finds nothing depends on the machine; its last line
            // does not.
            let last = said.stdout.lines().last().expect("it ends with its answer");
            said.stdout = format!("{last}\n");
        }
        assert!(!(said.stdout.is_empty() && said.stderr.is_empty()), "{command} says nothing");
        assert!(said.code != 0 || said.stderr.is_empty(), "{command}: {}", said.text());
        for part in [&said.stdout, &said.stderr] {
            // Numbers that differ from run to run have been replaced by words.
            let data = part.replace("[N]", "0");
            let whole = data.is_empty() || serde_json::from_str::<serde_json::Value>(&data).is_ok();
            assert!(whole, "{command} is no data: {part}");
        }
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
}

/// The commands under this one, as its help lists them.
fn leaves(world: &World, path: &[String], found: &mut BTreeSet<String>) {
    let words = path.iter().map(String::as_str).chain(["--help"]);
    let help = world.run(&words.collect::<Vec<_>>()).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    if names.is_empty() {
        found.insert(path.join(" "));
    }
    for name in names.into_iter().filter(|name| *name != "help") {
        leaves(world, &[path, &[name.to_owned()]].concat(), found);
    }
}

#[test]
fn no_command_is_left_out() {
    let mut found = BTreeSet::new();
    leaves(&World::empty(), &[], &mut found);
    // A script has one form, and a test of its own.
    assert!(found.remove("completions"));
    assert!(found.len() > 20, "{found:?}");
    let is_told = |leaf: &&String| {
        STORY.iter().any(|command| *command == **leaf || command.starts_with(&format!("{leaf} ")))
    };
    let missing: Vec<_> = found.iter().filter(|leaf| !is_told(leaf)).collect();
    assert!(missing.is_empty(), "no snapshot shows {missing:?}");
}
