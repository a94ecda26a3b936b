//! `cargo xtask storm`: power cuts, full disks, kills, restores and clocks, over the real programs.

use std::process::Command;

use crate::ci::run_cargo;
use crate::error::TaskError;
use crate::tree;

/// Builds the programs and the storm, and runs it with these words.
///
/// # Errors
/// When they do not build, when it cannot be done here, or when a scenario failed.
pub fn run(words: &[String]) -> Result<(), TaskError> {
    let root = tree::root();
    let packages = "--package truekeep-cli --package truekeep-worker --package truekeep-tests";
    run_cargo(&root, &format!("build --locked --bins {packages}"), None)?;
    let name = || format!("storm {}", words.join(" "));
    let status = Command::new(tree::target(&root).join("debug/storm"))
        .args(words)
        .status()
        .map_err(|source| TaskError::Start { command: name(), source })?;
    if status.success() { Ok(()) } else { Err(TaskError::Exit { command: name(), status }) }
}
