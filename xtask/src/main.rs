//! The project's own tasks: `cargo xtask <task>`.
//!
//! A task is one module with `pub fn run(..) -> Result<(), TaskError>`, one variant of [`Task`] and one arm in [`main`].
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task's output is its result")]

mod bench;
mod ci;
mod demo;
mod error;
mod metadata;
mod mutants;
mod rules;
mod servers;
mod sim;
mod storm;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::TaskError;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks.")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check what the house style leaves to a tool: layers, licences, sizes, names, words
    Tidy,
    /// Write into docs/rules.md which tests prove each rule
    Rules,
    /// Do the main job on real data: follow, change, damage, look
    Demo,
    /// Measure speed and memory in a release build
    Bench {
        /// What to measure, and `--rows N`; all of it by default
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Simulate the engine in worlds that are drawn from seeds
    Sim {
        /// `--seeds N`, `--minutes M`, `--seed S` to replay one, `--story N` events of it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Take guards out, and demand that a test notices
    Mutants {
        /// So many at random
        #[arg(long)]
        draw: Option<usize>,
        /// Only this one; may be repeated
        #[arg(long)]
        only: Vec<String>,
        /// Ask the simulation alone which it notices
        #[arg(long)]
        sim: bool,
    },
    /// Cut the power, fill disks, kill, restore: real programs over real files. Needs root
    Storm {
        /// `--minutes M`, `--only NAME`, `--sink NAME`, `--seed S`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run every check, stop at the first that fails: the only gate
    Ci,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.task {
        Task::Tidy => tidy::run(),
        Task::Rules => rules::run(),
        Task::Demo => demo::run(),
        Task::Bench { words } => bench::run(&words),
        Task::Sim { words } => sim::run(&words),
        Task::Mutants { draw, only, sim } => mutants::run(&mutants::Wanted { draw, only, sim }),
        Task::Storm { words } => storm::run(&words),
        Task::Ci => ci::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints an error with its causes, the outermost first.
fn report(error: &TaskError) {
    eprintln!("error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        eprintln!("  caused by: {inner}");
        cause = inner.source();
    }
}
