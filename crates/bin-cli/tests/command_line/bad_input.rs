//! Bad input: one line that says what is wrong, one that says what to do, the documented exit code, nothing lost.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

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

/// Makes a file read-only, for all.
fn protect(world: &World, file: &str) {
    std::fs::set_permissions(world.path(file), Permissions::from_mode(0o444)).expect("set");
}

#[test]
fn a_ledger_that_may_not_be_written_is_named() {
    let world = World::cities();
    assert_eq!(world.run(&["migrate"]).code, 0);
    protect(&world, "truekeep.db");
    insta::assert_snapshot!(world.run_with_few_rights(&["apply"]).text());
}

#[test]
fn a_source_that_may_not_be_written_is_named() {
    let world = World::cities();
    protect(&world, "app.db");
    insta::assert_snapshot!(world.run_with_few_rights(&["capture", "install"]).text());
}

#[test]
fn a_sink_that_may_not_be_written_is_named() {
    let world = World::followed();
    world.sql("app.db", "UPDATE cities SET people = 0");
    world.share();
    protect(&world, "mirror.db");
    insta::assert_snapshot!(world.run_with_few_rights(&["run", "--once"]).text());
}

#[test]
fn a_source_with_a_damaged_page_is_named() {
    let world = World::followed();
    world.sql("app.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'truekeep_feed_cities'";
    let page: usize = world.open("app.db").query_row(root, [], |row| row.get(0)).expect("a page");
    let mut bytes = std::fs::read(world.path("app.db")).expect("read");
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    std::fs::write(world.path("app.db"), bytes).expect("written");
    insta::assert_snapshot!(world.run(&["check"]).text());
}

#[test]
fn a_table_that_is_there_already_is_not_taken_over() {
    let world = World::cities();
    world.sql("mirror.db", "CREATE TABLE cities (a); INSERT INTO cities VALUES (1);");
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    insta::assert_snapshot!(world.run(&["check"]).text());
    insta::assert_snapshot!("run_on_anothers_table", world.run(&["run", "--once"]).text());
    let rows: u32 = world
        .open("mirror.db")
        .query_row("SELECT count(*) FROM cities WHERE a = 1", [], |row| row.get(0))
        .expect("it is as it was");
    assert_eq!(rows, 1);
}

#[test]
fn a_query_of_the_rules_that_cannot_be_is_named() {
    let world = World::cities();
    world.reconfigure(
        "key = \"id\"\n",
        "key = \"id\"\ndocument = { sql = \"SELECT absent FROM cities WHERE id = :id\" }\n",
    );
    insta::assert_snapshot!(world.run(&["check", "-p", "cities", "--key", "1"]).text());
}

/// What `apply` refuses because of files, `check` says before.
#[test]
fn check_says_what_may_not_be_written() {
    let world = World::followed();
    world.share();
    for file in ["truekeep.db", "app.db", "mirror.db"] {
        protect(&world, file);
    }
    insta::assert_snapshot!(world.run_with_few_rights(&["check"]).text());
    assert_eq!(world.run_with_few_rights(&["apply", "--again"]).code, 7);
}

#[test]
fn check_says_where_no_file_can_be_made() {
    let world = World::cities();
    std::fs::create_dir(world.path("made")).expect("made");
    let text = CONFIG.replace("sqlite:mirror.db", "sqlite:made/mirror.db");
    world.write("truekeep.toml", &format!("[ledger]\nurl = \"sqlite:made/ledger.db\"\n{text}"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["check"]).code, 0);
    world.share();
    std::fs::set_permissions(world.path("made"), Permissions::from_mode(0o555)).expect("set");
    insta::assert_snapshot!("no_file_can_be_made", world.run_with_few_rights(&["check"]).text());
    assert_eq!(world.run_with_few_rights(&["apply"]).code, 7);
    std::fs::remove_dir(world.path("made")).expect("removed");
    insta::assert_snapshot!("no_folder_for_a_file", world.run(&["check"]).text());
    assert_eq!(world.run(&["apply"]).code, 7);
}
