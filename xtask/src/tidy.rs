//! `cargo xtask tidy`: what the house style leaves to a tool.
//!
//! A check is a pure function from the [`World`] to findings, listed once in [`CHECKS`]; its tests feed it small trees, good and bad.

mod bans;
mod headers;
mod layers;
mod licences;
mod lockfile;
mod manifests;
mod names;
mod rules;
mod sizes;
mod sql;
mod syntax;
mod words;

use std::fmt;

use crate::error::TaskError;
use crate::metadata::Metadata;
use crate::tree::{self, Tree};

/// Every check, in the order of their output.
const CHECKS: &[fn(&World) -> Vec<Finding>] = &[
    layers::check,
    licences::check,
    manifests::check,
    lockfile::check,
    headers::check,
    sizes::check,
    names::check,
    bans::check,
    sql::check,
    words::check,
    rules::check,
];

/// What the checks look at.
#[derive(Debug, Default)]
struct World {
    tree: Tree,
    metadata: Metadata,
}

/// One thing that a check has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
    weight: Weight,
}

/// Does a finding fail the task?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It does.
    Fault,
    /// It is printed, no more.
    Note,
}

impl Finding {
    fn fault(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        let weight = Weight::Fault;
        Self { path: path.to_owned(), line, rule, message: message.into(), weight }
    }

    fn note(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { weight: Weight::Note, ..Self::fault(path, line, rule, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = match self.weight {
            Weight::Fault => "",
            Weight::Note => "note: ",
        };
        write!(f, "{note}{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// Runs every check over the repository and prints what they find.
///
/// # Errors
/// When the tree or the metadata cannot be read, or a check finds a fault.
pub fn run() -> Result<(), TaskError> {
    let root = tree::root();
    let world = World { tree: Tree::read(&root)?, metadata: Metadata::read(&root)? };
    let found: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&world)).collect();
    for finding in &found {
        println!("{finding}");
    }
    let findings = found.iter().filter(|finding| finding.weight == Weight::Fault).count();
    if findings > 0 {
        return Err(TaskError::Untidy { findings });
    }
    println!("tidy: {} files, nothing to say against them", world.tree.files.len());
    Ok(())
}

#[cfg(test)]
mod tests;
