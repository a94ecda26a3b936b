//! Tests of the headers of modules.

use super::check;
use crate::tidy::tests::{places, world_of};

#[test]
fn module_without_a_header_is_found() {
    let world = world_of(&[
        ("crates/core/src/a.rs", "//! What it is.\n"),
        ("crates/core/src/b.rs", "// What it is.\n//! Too late.\n"),
        ("examples/one/src/main.rs", "fn main() {}\n"),
        ("examples/one/data.sql", "SELECT 1;\n"),
    ]);
    assert_eq!(places(&check(&world)), ["crates/core/src/b.rs:1", "examples/one/src/main.rs:1"]);
}
