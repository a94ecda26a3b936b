//! Tests of the layers.

use super::*;
use crate::metadata::Metadata;
use crate::tidy::tests::places;
use crate::tree::Tree;

/// Packages and the one dependency of the first; `kind` as cargo writes it.
fn found(package: &str, dependency: &str, kind: Option<&str>, is_optional: bool) -> Vec<String> {
    let dependency_of_it = Dependency {
        name: dependency.into(),
        kind: kind.map(str::to_owned),
        optional: is_optional,
    };
    let user = Package {
        name: package.into(),
        id: "user".into(),
        manifest_path: "crates/user/Cargo.toml".into(),
        dependencies: vec![dependency_of_it],
        ..Package::default()
    };
    let used = Package { name: dependency.into(), id: "used".into(), ..Package::default() };
    let mut ids = vec!["user".to_owned()];
    // What is not named like ours was written by others.
    if dependency.starts_with("truekeep") {
        ids.push("used".to_owned());
    }
    let manifest = format!("[dependencies]\n{dependency}.workspace = true\n");
    let world = World {
        tree: Tree::of(&[("crates/user/Cargo.toml", &manifest)]),
        metadata: Metadata { packages: vec![user, used], workspace_members: ids },
    };
    places(&check(&world))
}

fn is_allowed(package: &str, dependency: &str) -> bool {
    let found = found(package, dependency, None, false);
    assert!(found.is_empty() || found == ["crates/user/Cargo.toml:2"], "{found:?}");
    found.is_empty()
}

#[test]
fn dependencies_point_inward() {
    for (package, dependency) in [
        ("truekeep-engine", "truekeep-core"),
        ("truekeep-conformance", "truekeep-core"),
        ("truekeep-adapter-sqlite", "truekeep-core"),
        ("truekeep-adapter-sqlite", "truekeep-migrations"),
        ("truekeep-sink-sqlite", "truekeep-migrations"),
        ("truekeep-sqlite", "truekeep-core"),
        ("truekeep-adapter-sqlite", "truekeep-sqlite"),
        ("truekeep-sink-sqlite", "truekeep-sqlite"),
        ("truekeep", "truekeep-engine"),
        ("truekeep", "truekeep-sink-memory"),
        ("truekeep-cli", "truekeep"),
        ("truekeep-worker", "truekeep-engine"),
        ("truekeep-example-embedded", "truekeep-core"),
        ("truekeep-tests", "truekeep-adapter-memory"),
    ] {
        assert!(is_allowed(package, dependency), "{package} -> {dependency}");
    }
}

#[test]
fn dependency_that_points_outward_is_found() {
    for (package, dependency) in [
        ("truekeep-core", "truekeep-migrations"),
        ("truekeep-migrations", "truekeep-core"),
        ("truekeep-engine", "truekeep-adapter-memory"),
        ("truekeep-conformance", "truekeep-engine"),
        ("truekeep-adapter-sqlite", "truekeep-engine"),
        ("truekeep-sink-sqlite", "truekeep-adapter-sqlite"),
        ("truekeep-adapter-memory", "truekeep-sqlite"),
        ("truekeep-sqlite", "truekeep-migrations"),
        ("truekeep", "truekeep-cli"),
        ("truekeep-cli", "truekeep-adapter-sqlite"),
        ("truekeep-worker", "truekeep-sink-memory"),
        ("truekeep-example-embedded", "truekeep-sink-memory"),
    ] {
        assert!(!is_allowed(package, dependency), "{package} -> {dependency}");
    }
}

#[test]
fn core_uses_no_more_than_its_list() {
    assert!(is_allowed("truekeep-core", "serde"));
    assert!(is_allowed("truekeep-core", "thiserror"));
    assert!(!is_allowed("truekeep-core", "tokio"));
    assert!(!is_allowed("truekeep-core", "mockall"));
    assert!(found("truekeep-core", "mockall", None, true).is_empty());
    assert!(!found("truekeep-core", "cc", Some("build"), false).is_empty());
    assert!(is_allowed("truekeep-engine", "tokio"));
}

#[test]
fn tests_may_use_adapters_sinks_and_conformance() {
    let dev = Some("dev");
    assert!(found("truekeep-core", "proptest", dev, false).is_empty());
    assert!(found("truekeep-engine", "truekeep-adapter-memory", dev, false).is_empty());
    assert!(found("truekeep-sink-sqlite", "truekeep-conformance", dev, false).is_empty());
    assert!(!found("truekeep-core", "truekeep-engine", dev, false).is_empty());
}

#[test]
fn package_without_a_layer_is_found() {
    assert_eq!(found("newcomer", "serde", None, false), ["crates/user/Cargo.toml:1"]);
}
