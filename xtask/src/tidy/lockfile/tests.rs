//! Tests of the lockfile's check.

use super::check;
use crate::tidy::tests::{places, world_of};

const ONE: &str = "[[package]]\nname = \"libsqlite3-sys\"\nversion = \"1\"\n";

#[test]
fn one_sqlite_is_right() {
    assert!(check(&world_of(&[("Cargo.lock", ONE)])).is_empty());
}

#[test]
fn two_or_none_are_found() {
    let two = [ONE, ONE].concat();
    assert_eq!(places(&check(&world_of(&[("Cargo.lock", &two)]))), ["Cargo.lock:5"]);
    assert_eq!(places(&check(&world_of(&[("Cargo.lock", "")]))), ["Cargo.lock:1"]);
    assert_eq!(places(&check(&world_of(&[]))), ["Cargo.lock:1"]);
}
