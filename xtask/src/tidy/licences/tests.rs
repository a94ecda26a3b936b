//! Tests of the licences.

use super::*;
use crate::metadata::Metadata;
use crate::tidy::tests::places;
use crate::tree::Tree;

fn objects_to(licence: Option<&str>, is_ours: bool) -> bool {
    let package = Package { license: licence.map(str::to_owned), ..Package::default() };
    objection(&package, is_ours).is_some()
}

#[test]
fn licence_of_the_list_is_fine() {
    for licence in [
        "MIT",
        "MIT OR Apache-2.0",
        "MIT/Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "GPL-3.0-only OR MIT",
        "blessing",
        "0BSD OR MIT OR Apache-2.0",
    ] {
        assert!(!objects_to(Some(licence), false), "{licence}");
    }
}

#[test]
fn licence_off_the_list_is_found() {
    for licence in [
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "Apache-2.0 WITH Classpath-exception-2.0",
        "LicenseRef-Own",
        "whatever you like",
    ] {
        assert!(objects_to(Some(licence), false), "{licence}");
    }
    assert!(objects_to(None, false));
}

#[test]
fn our_own_licence_is_exact() {
    assert!(!objects_to(Some(OURS), true));
    assert!(objects_to(Some("MIT"), true));
    assert!(objects_to(None, true));
}

#[test]
fn finding_points_into_the_lockfile() {
    let package =
        Package { name: "b".into(), license: Some("GPL-3.0-only".into()), ..Package::default() };
    let world = World {
        tree: Tree::of(&[("Cargo.lock", "name = \"a\"\nname = \"b\"\n")]),
        metadata: Metadata { packages: vec![package], ..Metadata::default() },
    };
    assert_eq!(places(&check(&world)), ["Cargo.lock:2"]);
}
