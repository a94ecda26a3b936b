//! `doctor` says what a deployment stands on; `completions` what a shell needs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::search::INDEX;
use crate::world::{CONFIG, Said, World};

#[test]
fn a_sound_deployment_is_told_part_by_part() {
    let world = World::followed();
    insta::assert_snapshot!(world.run(&["doctor"]).text());
    let json = world.run(&["doctor", "--format", "json"]);
    insta::assert_snapshot!("doctor_as_json", json.text());
}

#[test]
fn nothing_is_made_by_looking() {
    let world = World::cities();
    let said = world.run(&["doctor"]);
    assert_eq!(said.code, 4, "{}", said.text());
    for name in ["truekeep.db", "mirror.db"] {
        assert!(!world.path(name).exists(), "{name}");
    }
}

#[test]
fn who_holds_the_lock_and_what_may_not_be_written_is_named() {
    let world = World::followed();
    let holder = world.open("app.db");
    holder.execute_batch("BEGIN IMMEDIATE").expect("held");
    world.share();
    let readable = Permissions::from_mode(0o444);
    std::fs::set_permissions(world.path("mirror.db"), readable).expect("set");
    insta::assert_snapshot!(world.run_with_few_rights(&["doctor"]).text());
}

#[test]
fn every_shell_has_its_completions() {
    let world = World::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = world.run(&["completions", shell]);
        assert_eq!(said.code, 0, "{shell}");
        assert!(said.stdout.contains("reconcile"), "{shell}");
    }
    assert_eq!(world.run(&["completions", "tcsh"]).code, 2);
}

#[test]
fn an_index_is_looked_at_as_every_sink() {
    let world = World::cities();
    world.write("truekeep.toml", &format!("{CONFIG}{INDEX}"));
    let index = |said: Said| -> String {
        let of_index = |line: &&str| line.contains("sink search");
        said.text().lines().filter(of_index).map(|line| format!("{line}\n")).collect()
    };
    let before = index(world.run(&["doctor"]));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let after = index(world.run(&["doctor"]));
    // It is of whoever runs the tests.
    let rights = index(world.run_with_few_rights(&["doctor"]));
    insta::assert_snapshot!(format!("before:\n{before}after:\n{after}few rights:\n{rights}"));
}
