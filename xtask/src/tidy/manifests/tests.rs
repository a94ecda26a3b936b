//! Tests of the manifests.

use super::check;
use crate::tidy::tests::{places, world_of};

fn found_in(path: &str, text: &str) -> Vec<String> {
    places(&check(&world_of(&[(path, text)])))
}

#[test]
fn dependency_without_a_reason_is_found() {
    let text = "\
# serde
[workspace.dependencies]
ours = { path = \"crates/ours\" }
# Stored forms.
serde = \"1\"
tokio = { version = \"1\" }

toml = \"1\"
";
    assert_eq!(found_in("Cargo.toml", text), ["Cargo.toml:6", "Cargo.toml:8"]);
}

#[test]
fn member_that_inherits_is_right() {
    let text = "\
[lints]
workspace = true
[dependencies]
serde.workspace = true
tokio = { workspace = true, features = [\"rt\"] }
";
    assert!(found_in("crates/core/Cargo.toml", text).is_empty());
}

#[test]
fn dependency_that_is_not_inherited_is_found() {
    let text = "\
[lints]
workspace = true
[dependencies]
serde.workspace = true
[dev-dependencies]
serde = \"1\"
[target.'cfg(unix)'.dependencies]
libc = \"0.2\"
";
    let expected = ["crates/core/Cargo.toml:6", "crates/core/Cargo.toml:8"];
    assert_eq!(found_in("crates/core/Cargo.toml", text), expected);
}

#[test]
fn member_with_its_own_lints_is_found() {
    assert_eq!(found_in("crates/core/Cargo.toml", ""), ["crates/core/Cargo.toml:1"]);
    let own = "[lints.rust]\nunsafe_code = \"forbid\"\n";
    assert_eq!(found_in("crates/core/Cargo.toml", own), ["crates/core/Cargo.toml:1"]);
}
