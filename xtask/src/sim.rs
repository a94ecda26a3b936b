//! `cargo xtask sim`: runs the simulation. What it prints is the one line that replays a broken world, and its story.

use crate::ci::run_cargo;
use crate::error::TaskError;
use crate::tree;

/// Builds the simulation and runs it with these words: `--seeds N`, `--minutes M`, `--seed S`, `--story N`.
///
/// # Errors
/// When it does not build, or a world breaks a promise.
pub fn run(words: &[String]) -> Result<(), TaskError> {
    let arguments = ["run --quiet --locked --package truekeep-simulation --bin sim --"]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    run_cargo(&tree::root(), &arguments.collect::<Vec<_>>().join(" "), None)
}

/// A short simulation, the same worlds each time, for as long as the gate has.
///
/// # Errors
/// As [`run`].
pub fn run_short() -> Result<(), TaskError> {
    run(&["--seed", "0x10000", "--seeds", "400", "--minutes", "1"].map(str::to_owned))
}
