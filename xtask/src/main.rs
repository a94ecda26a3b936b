//! The project's own tasks: `cargo xtask <task>`.
//!
//! A task is one module with `pub fn run(..) -> Result<(), TaskError>`, one variant of [`Task`] and one arm in [`main`].
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task's output is its result")]

mod ci;
mod error;
mod metadata;
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
    /// Run every check, stop at the first that fails: the only gate
    Ci,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.task {
        Task::Tidy => tidy::run(),
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
