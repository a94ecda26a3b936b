//! Tests of the banned words.

use super::check;
use crate::tidy::tests::{places, world_of};

fn found_in(path: &str, text: &str) -> Vec<String> {
    places(&check(&world_of(&[(path, text)])))
}

#[test]
fn ignored_test_is_found_anywhere() {
    let text = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n";
    assert_eq!(found_in("tests/src/a.rs", text), ["tests/src/a.rs:2"]);
    let text = "#[cfg_attr(unix, ignore)]\n#[test]\nfn a() {}\n";
    assert_eq!(found_in("tests/src/a.rs", text), ["tests/src/a.rs:1"]);
    let text = "prop! {\n    #[ignore]\n    fn a() {}\n}\n";
    assert_eq!(found_in("tests/src/a.rs", text), ["tests/src/a.rs:2"]);
}

#[test]
fn word_ignore_elsewhere_is_fine() {
    let text = "//! #[ignore]\n#[cfg_attr(unix, expect(dead_code))]\nfn ignore() { ignore(); }\n";
    assert!(found_in("tests/src/a.rs", text).is_empty());
}

#[test]
fn hash_collections_are_found_in_replayed_crates_only() {
    let text = "use std::collections::HashMap;\nuse std::collections::HashSet as Set;\n";
    let path = "crates/engine/src/a.rs";
    assert_eq!(found_in(path, text), ["crates/engine/src/a.rs:1", "crates/engine/src/a.rs:2"]);
    assert!(found_in("crates/sink-memory/src/a.rs", text).is_empty());
    assert!(found_in(path, "// HashMap\nuse std::collections::BTreeMap;\n").is_empty());
}

#[test]
fn sleep_is_found_however_it_is_named() {
    let path = "crates/core/src/a.rs";
    for text in [
        "fn a() { std::thread::sleep(d); }",
        "fn a() { sleep(d); }",
        "use std::thread::sleep as s;",
    ] {
        assert_eq!(found_in(path, text), ["crates/core/src/a.rs:1"], "{text}");
    }
}

#[test]
fn sleep_of_a_port_is_fine() {
    let text = "trait Clock { fn sleep(&self); }\nfn a(c: &dyn Clock) { c.sleep(); }\n";
    assert!(found_in("crates/core/src/a.rs", text).is_empty());
}

#[test]
fn file_that_is_no_rust_is_found() {
    assert_eq!(found_in("crates/core/src/a.rs", "fn a( {\n"), ["crates/core/src/a.rs:1"]);
}
