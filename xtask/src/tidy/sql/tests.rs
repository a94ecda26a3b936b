//! Tests of the use of SQL files.

use super::check;
use crate::tidy::tests::{places, world_of};

const CRATE: &str = "crates/adapter-sqlite/Cargo.toml";
const CLAIM: &str = "crates/adapter-sqlite/sql/item/claim.sql";

fn found_with(source: &str) -> Vec<String> {
    let source = ("crates/adapter-sqlite/src/items/claim.rs", source);
    places(&check(&world_of(&[(CRATE, ""), (CLAIM, "SELECT 1;\n"), source])))
}

#[test]
fn included_file_is_used() {
    assert!(found_with("const A: &str = include_str!(\"../../sql/item/claim.sql\");").is_empty());
    let joined = "include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/sql/item/claim.sql\"))";
    assert!(found_with(&format!("const A: &str = {joined};")).is_empty());
}

#[test]
fn unused_file_is_found() {
    let expected = [format!("{CLAIM}:1")];
    assert_eq!(found_with(""), expected);
    assert_eq!(found_with("// include_str!(\"../../sql/item/claim.sql\")"), expected);
    assert_eq!(found_with("const A: &str = include_str!(\"../../sql/run/claim.sql\");"), expected);
    assert_eq!(found_with("const A: &str = include_str!(concat!(\"im.sql\", \"\"));"), expected);
}

#[test]
fn tail_in_another_crate_is_no_use() {
    let source = "const A: &str = include_str!(concat!(\"../sql/item/\", \"claim.sql\"));";
    let world = world_of(&[
        (CRATE, ""),
        (CLAIM, ""),
        ("crates/other/Cargo.toml", ""),
        ("crates/other/src/lib.rs", source),
    ]);
    assert_eq!(places(&check(&world)), [format!("{CLAIM}:1")]);
}

#[test]
fn migrations_are_checked_and_other_sql_is_not() {
    let world = world_of(&[
        ("migrations/Cargo.toml", ""),
        ("migrations/sqlite/0001_ledger.sql", ""),
        ("migrations/sqlite/0002_items.sql", ""),
        ("migrations/src/lib.rs", "const A: &str = include_str!(\"../sqlite/0001_ledger.sql\");"),
        ("examples/cities/seed.sql", ""),
    ]);
    assert_eq!(places(&check(&world)), ["migrations/sqlite/0002_items.sql:1"]);
}
