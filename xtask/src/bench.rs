//! `cargo xtask bench`: measures speed and memory in a release build.

use crate::ci::run_cargo;
use crate::error::TaskError;
use crate::tree;

/// Builds the measurements in release and runs them; what they print is Markdown.
///
/// # Errors
/// When they do not build, or do not run to their end. A missed bar is printed, not an error.
pub fn run(words: &[String]) -> Result<(), TaskError> {
    let arguments = ["run --release --locked --package truekeep-tests --bin bench --"]
        .into_iter()
        .chain(words.iter().map(String::as_str));
    run_cargo(&tree::root(), &arguments.collect::<Vec<_>>().join(" "), None)
}
