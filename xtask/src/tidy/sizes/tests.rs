//! Tests of the sizes.

use super::check;
use crate::tidy::tests::{places, world_of};

/// A function of `lines` lines from `fn` to its closing bracket.
fn function(lines: usize) -> String {
    format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2))
}

fn found_in(path: &str, text: &str) -> Vec<String> {
    places(&check(&world_of(&[(path, text)])))
}

#[test]
fn file_above_800_lines_fails_and_above_400_is_noted() {
    let world = |lines: usize| world_of(&[("crates/core/src/a.rs", "\n".repeat(lines).as_str())]);
    assert!(check(&world(400)).is_empty());
    let noted = check(&world(401));
    assert_eq!(noted.len(), 1);
    assert!(places(&noted).is_empty());
    assert!(places(&check(&world(800))).is_empty());
    assert_eq!(places(&check(&world(801))), ["crates/core/src/a.rs:801"]);
}

#[test]
fn function_above_70_lines_fails() {
    let path = "crates/core/src/a.rs";
    assert!(found_in(path, &function(70)).is_empty());
    assert_eq!(found_in(path, &format!("\n{}", function(71))), ["crates/core/src/a.rs:2"]);
}

#[test]
fn methods_and_inner_functions_are_measured() {
    let path = "crates/core/src/a.rs";
    let long = function(71);
    for outer in ["struct A;\nimpl A {\n", "\ntrait A {\n", "\nmod b {\n", "\nfn b() {\n"] {
        let found = found_in(path, &format!("{outer}{long}}}\n"));
        assert!(found.contains(&"crates/core/src/a.rs:3".to_owned()), "{outer}");
    }
}

#[test]
fn functions_of_tests_are_exempt() {
    let path = "crates/core/src/a.rs";
    let long = function(71);
    assert!(found_in(path, &format!("#[test]\n{long}")).is_empty());
    assert!(found_in(path, &format!("#[tokio::test]\nasync {long}")).is_empty());
    assert!(found_in(path, &format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")).is_empty());
    assert!(found_in("crates/core/src/a/tests.rs", &long).is_empty());
    assert!(found_in("tests/src/a.rs", &long).is_empty());
    assert!(!found_in(path, &format!("#[cfg(not(test))]\n{long}")).is_empty());
}
