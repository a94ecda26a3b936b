//! Tests of the words. They too are written in two halves.

use super::check;
use crate::tidy::tests::{places, world_of};

fn is_found(text: &str) -> bool {
    let found = places(&check(&world_of(&[("docs/a.md", &format!("first\n{text}\n"))])));
    assert!(found.is_empty() || found == ["docs/a.md:2"], "{found:?}");
    !found.is_empty()
}

#[test]
fn places_outside_the_tree_are_found() {
    assert!(is_found(concat!("see /wo", "rk/main")));
    assert!(is_found(concat!("see /tm", "p/ta/debug")));
    assert!(is_found(concat!("see ../sha", "red/a.md")));
    assert!(is_found(concat!("see .libr", "ary/env")));
    assert!(is_found(concat!("https://index.crates", ".io/config.json")));
    assert!(is_found(concat!("made by a Sub", "agent")));
    assert!(is_found(concat!("CLAU", "DE.md")));
}

#[test]
fn words_that_only_look_alike_are_fine() {
    assert!(!is_found(concat!("registry+https://github.com/rust-lang/crates", ".io-index")));
    assert!(!is_found("network/a workspace, /tmp/table, ../shared_state, exclude"));
}

#[test]
fn this_check_does_not_find_itself() {
    let files = [("words.rs", include_str!("../words.rs")), ("tests.rs", include_str!("tests.rs"))];
    assert!(check(&world_of(&files)).is_empty());
}
