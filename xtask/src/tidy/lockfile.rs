//! One SQLite in the whole build: two crates that link it would each bring their own, or not build at all.

use super::{Finding, World};

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let Some(file) = world.tree.file("Cargo.lock") else {
        return vec![Finding::fault("Cargo.lock", 1, "lockfile", "the lockfile is missing")];
    };
    let lines = file.text.lines().enumerate();
    let places: Vec<usize> = lines
        .filter(|(_, line)| *line == "name = \"libsqlite3-sys\"")
        .map(|(index, _)| index + 1)
        .collect();
    if places.len() == 1 {
        return Vec::new();
    }
    let line = places.last().copied().unwrap_or(1);
    let message = format!("one libsqlite3-sys is wanted, here are {}", places.len());
    vec![Finding::fault(&file.path, line, "lockfile", message)]
}

#[cfg(test)]
mod tests;
