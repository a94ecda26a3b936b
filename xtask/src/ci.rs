//! `cargo xtask ci`: the only gate.
//!
//! [`STEPS`] is the whole of it. They run in order, the first failure ends the run, and the times are printed either way.

mod table;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::TaskError;
use crate::tree;

/// One step of the gate.
struct Step {
    name: &'static str,
    deed: Deed,
}

/// What a step does.
enum Deed {
    /// Runs cargo with these arguments, separated by spaces, in the root.
    Cargo(&'static str),
    /// The same, with one more environment variable.
    CargoWith { variable: (&'static str, &'static str), arguments: &'static str },
    /// Runs a task of this program.
    Task(fn() -> Result<(), TaskError>),
}

/// The gate. The quickest to fail come first.
const STEPS: &[Step] = &[
    Step { name: "fmt", deed: Deed::Cargo("fmt --all --check") },
    Step { name: "tidy", deed: Deed::Task(crate::tidy::run) },
    Step {
        name: "clippy",
        deed: Deed::Cargo(
            "clippy --workspace --all-targets --all-features --locked -- -D warnings",
        ),
    },
    Step { name: "servers", deed: Deed::Task(crate::servers::run) },
    // Builds the examples too, as they are members of the workspace. Where a server is missing a
    // test fails, as it does in CI.
    Step {
        name: "tests",
        deed: Deed::CargoWith {
            variable: ("CI", "true"),
            arguments: "test --workspace --all-features --locked",
        },
    },
    Step {
        name: "docs",
        deed: Deed::CargoWith {
            variable: ("RUSTDOCFLAGS", "-D warnings"),
            arguments: "doc --workspace --no-deps --locked",
        },
    },
    Step { name: "simulation", deed: Deed::Task(crate::sim::run_short) },
    Step { name: "mutants", deed: Deed::Task(crate::mutants::run_three) },
    Step { name: "demo", deed: Deed::Task(crate::demo::run) },
];

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs the gate.
///
/// # Errors
/// When a step fails; the later ones are not run.
pub fn run() -> Result<(), TaskError> {
    let (outcomes, result) = run_steps(STEPS, |step| {
        println!("ci: {}", step.name);
        step.deed.run(&tree::root())
    });
    let rows: Vec<_> = STEPS.iter().map(|step| step.name).zip(outcomes).collect();
    println!("\n{}", table::render(&rows));
    result?;
    println!("ci: all steps passed");
    Ok(())
}

/// Runs the steps in order up to the first failure; there is one outcome per step.
fn run_steps(
    steps: &[Step],
    mut run: impl FnMut(&Step) -> Result<(), TaskError>,
) -> (Vec<Outcome>, Result<(), TaskError>) {
    let mut outcomes = vec![Outcome::NotRun; steps.len()];
    for (step, outcome) in steps.iter().zip(&mut outcomes) {
        let begin = Instant::now();
        if let Err(source) = run(step) {
            *outcome = Outcome::Failed(begin.elapsed());
            let error = TaskError::Step { step: step.name, source: Box::new(source) };
            return (outcomes, Err(error));
        }
        *outcome = Outcome::Passed(begin.elapsed());
    }
    (outcomes, Ok(()))
}

impl Deed {
    fn run(&self, root: &Path) -> Result<(), TaskError> {
        match self {
            Self::Cargo(arguments) => run_cargo(root, arguments, None),
            Self::CargoWith { variable, arguments } => run_cargo(root, arguments, Some(*variable)),
            Self::Task(task) => task(),
        }
    }
}

/// Runs cargo with these arguments, separated by spaces.
///
/// # Errors
/// When it cannot be started, or fails.
pub fn run_cargo(
    root: &Path,
    arguments: &str,
    variable: Option<(&str, &str)>,
) -> Result<(), TaskError> {
    let mut command = Command::new(cargo());
    command.args(arguments.split(' ')).envs(variable).current_dir(root);
    let name = || format!("cargo {arguments}");
    let status = command.status().map_err(|source| TaskError::Start { command: name(), source })?;
    if status.success() { Ok(()) } else { Err(TaskError::Exit { command: name(), status }) }
}

/// The cargo that runs us, else the one in the path.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests;
