//! Every module begins by saying what it is.

use super::{Finding, World};

const FOLDERS: &[&str] = &["crates/", "migrations/", "tests/", "xtask/", "examples/"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let message = "begin the file with `//!`: one sentence on what it is";
    let ours =
        world.tree.rust().filter(|file| FOLDERS.iter().any(|own| file.path.starts_with(own)));
    ours.filter(|file| !file.text.starts_with("//!"))
        .map(|file| Finding::fault(&file.path, 1, "header", message))
        .collect()
}

#[cfg(test)]
mod tests;
