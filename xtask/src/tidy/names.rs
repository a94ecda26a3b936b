//! No file, folder or module is named after nothing: such a name attracts what has no home.

use std::collections::BTreeSet;

use super::syntax;
use super::{Finding, World};
use crate::tree::File;

const RULE: &str = "name";

const FORBIDDEN: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let paths: BTreeSet<&str> =
        world.tree.files.iter().flat_map(|file| paths_to(&file.path)).collect();
    let mut found: Vec<Finding> = paths
        .into_iter()
        .filter(|path| is_forbidden(stem(path)))
        .map(|path| Finding::fault(path, 1, RULE, message(stem(path))))
        .collect();
    found.extend(world.tree.rust().flat_map(inline_modules));
    found
}

/// The path and every folder above it.
fn paths_to(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end]).chain([path])
}

/// The last part, without what follows its first full stop.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// A name is its last word: `test_helpers` is no better than `helpers`.
fn is_forbidden(name: &str) -> bool {
    name.rsplit(['_', '-']).next().is_some_and(|word| FORBIDDEN.contains(&word))
}

fn message(name: &str) -> String {
    format!("`{name}` says nothing: name it after what it holds")
}

/// Modules written inside another file; one with its own file is found by its path.
fn inline_modules(file: &File) -> Vec<Finding> {
    // Text that is not Rust is found by another check.
    let tokens = syntax::tokens(&file.text).unwrap_or_default();
    let named = tokens.windows(3).filter(|three| three[0].text == "mod" && three[2].text == "{");
    named
        .filter(|three| is_forbidden(&three[1].text))
        .map(|three| Finding::fault(&file.path, three[1].line, RULE, message(&three[1].text)))
        .collect()
}

#[cfg(test)]
mod tests;
