//! Bad input: one line that says what is wrong, one that says what to do, the documented exit code, nothing lost.

use crate::world::{CONFIG, World};

/// A world whose `part` is not there.
fn without(file: &str) -> World {
    let world = World::cities();
    std::fs::remove_file(world.path(file)).expect("it was there");
    world
}

#[test]
fn a_missing_configuration_is_named() {
    insta::assert_snapshot!(World::empty().run(&["status"]).text());
}

#[test]
fn every_unknown_key_is_shown_with_its_place() {
    let world = World::cities();
    world.write("truekeep.toml", &CONFIG.replace("table", "tabel"));
    insta::assert_snapshot!(world.run(&["status"]).text());
}

#[test]
fn every_unknown_key_is_data_in_json() {
    let world = World::cities();
    world.write("truekeep.toml", &CONFIG.replace("table", "tabel"));
    insta::assert_snapshot!(world.run(&["status", "--format", "json"]).text());
}

#[test]
fn an_unknown_pipeline_names_the_nearest() {
    insta::assert_snapshot!(World::cities().run(&["status", "-p", "citys"]).text());
}

#[test]
fn a_wrong_duration_is_a_usage_error() {
    insta::assert_snapshot!(World::cities().run(&["wait", "--timeout", "2 years"]).text());
}

#[test]
fn a_missing_source_is_named() {
    let world = without("app.db");
    insta::assert_snapshot!(world.run(&["capture", "verify"]).text());
    assert!(!world.path("app.db").exists(), "it is not made");
}

#[test]
fn a_folder_as_a_source_is_named() {
    let world = without("app.db");
    std::fs::create_dir(world.path("app.db")).expect("made");
    insta::assert_snapshot!(world.run(&["capture", "verify"]).text());
}

#[test]
fn a_source_that_is_no_database_is_named_and_kept() {
    let world = without("app.db");
    let text = "this is a text, and no database at all. ".repeat(100);
    world.write("app.db", &text);
    insta::assert_snapshot!(world.run(&["capture", "verify"]).text());
    assert_eq!(std::fs::read_to_string(world.path("app.db")).expect("read"), text);
}

#[test]
fn a_missing_table_is_named() {
    let world = World::cities();
    world.reconfigure("table = \"cities\"\nkey", "table = \"towns\"\nkey");
    insta::assert_snapshot!(world.run(&["capture", "install"]).text());
}

#[test]
fn a_source_that_is_locked_is_named() {
    let world = World::cities();
    let other = world.open("app.db");
    other.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    insta::assert_snapshot!(world.run(&["capture", "install"]).text());
}

#[test]
fn a_ledger_in_a_missing_folder_is_named() {
    let world = World::cities();
    world.write("truekeep.toml", &format!("[ledger]\nurl = \"sqlite:no/ledger.db\"\n{CONFIG}"));
    insta::assert_snapshot!(world.run(&["migrate"]).text());
}

#[test]
fn a_ledger_that_is_another_database_is_named_and_kept() {
    let world = World::cities();
    world.sql("truekeep.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1);");
    let before = std::fs::read(world.path("truekeep.db")).expect("read");
    insta::assert_snapshot!(world.run(&["status"]).text());
    assert_eq!(std::fs::read(world.path("truekeep.db")).expect("read"), before);
}

#[test]
fn a_ledger_that_is_no_database_is_named() {
    let world = World::cities();
    world.write("truekeep.db", &"no database".repeat(1_000));
    insta::assert_snapshot!(world.run(&["status"]).text());
}

#[test]
fn a_ledger_of_a_newer_program_is_named() {
    let world = World::cities();
    assert_eq!(world.run(&["migrate"]).code, 0);
    world.sql("truekeep.db", "PRAGMA user_version = 9999");
    insta::assert_snapshot!(world.run(&["status"]).text());
    insta::assert_snapshot!("migrate_newer", world.run(&["migrate"]).text());
}

#[test]
fn a_ledger_that_is_locked_is_named() {
    let world = World::cities();
    assert_eq!(world.run(&["migrate"]).code, 0);
    let other = world.open("truekeep.db");
    other.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    insta::assert_snapshot!(world.run(&["apply"]).text());
}

#[test]
fn a_ledger_that_may_not_be_written_is_named() {
    let world = World::cities();
    assert_eq!(world.run(&["migrate"]).code, 0);
    let mut rights = std::fs::metadata(world.path("truekeep.db")).expect("there").permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(world.path("truekeep.db"), rights).expect("set");
    // Whoever may do anything is not stopped by rights.
    if std::fs::OpenOptions::new().write(true).open(world.path("truekeep.db")).is_err() {
        insta::assert_snapshot!(world.run(&["apply"]).text());
    }
}
