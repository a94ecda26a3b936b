//! Tests of the names.

use super::check;
use crate::tidy::tests::{places, world_of};

#[test]
fn files_and_folders_named_after_nothing_are_found_once() {
    let world = world_of(&[
        ("crates/core/src/utils.rs", ""),
        ("crates/core/src/lock_manager.rs", ""),
        ("tests/common/a.rs", ""),
        ("tests/common/b.rs", ""),
    ]);
    let expected =
        ["crates/core/src/lock_manager.rs:1", "crates/core/src/utils.rs:1", "tests/common:1"];
    assert_eq!(places(&check(&world)), expected);
}

#[test]
fn inline_module_named_after_nothing_is_found() {
    let world = world_of(&[("crates/core/src/a.rs", "mod fine {}\nmod helpers {\n}\n")]);
    assert_eq!(places(&check(&world)), ["crates/core/src/a.rs:2"]);
}

#[test]
fn names_that_only_contain_such_a_word_are_fine() {
    let world = world_of(&[
        ("crates/core/src/common_prefix.rs", "// mod utils {}\nlet a = \"mod utils {}\";"),
        ("crates/core/src/utility.rs", ""),
    ]);
    assert!(check(&world).is_empty());
}
