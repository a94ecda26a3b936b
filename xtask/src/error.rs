//! What can go wrong in a task.

use std::path::PathBuf;
use std::process::ExitStatus;

/// A task's failure; one variant per thing that was attempted.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A program could not be started.
    #[error("failed to start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program ended with a failure.
    #[error("failed to run `{command}`: {status}")]
    Exit {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A file of the tree could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of the tree could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The output of `cargo metadata` is not what we expect.
    #[error("failed to understand the output of `cargo metadata`")]
    Metadata {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The tree is not tidy; the findings are printed already.
    #[error("failed the tidy check: {findings} findings")]
    Untidy {
        /// How many findings there are.
        findings: usize,
    },
    /// Something that is not here and that we do not install.
    #[error("{0}")]
    Missing(&'static str),
    /// A mutant does not say what it must.
    #[error("failed to read the mutant {}: it lacks {lacks}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        lacks: &'static str,
    },
    /// A mutant does not build.
    #[error("failed to build a mutant: `cargo {command}`")]
    NoMutant {
        /// The command line.
        command: String,
    },
    /// Guards were taken out and nothing noticed.
    #[error("failed to catch mutants: {survived} survived")]
    Survived {
        /// How many checks did not notice.
        survived: usize,
    },
    /// A step of the gate failed.
    #[error("failed at step {step}")]
    Step {
        /// The step's name.
        step: &'static str,
        /// Why.
        #[source]
        source: Box<TaskError>,
    },
}
