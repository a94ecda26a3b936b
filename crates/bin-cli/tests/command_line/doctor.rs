//! `doctor` says what a deployment stands on; `completions` what a shell needs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::world::World;

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
