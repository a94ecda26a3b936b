//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Keeps sinks true to their sources, as a service: works on every pipeline of a configuration.
///
/// SIGTERM or SIGINT: the turns under way are finished, the leases are handed back, exit code 0. A
/// second signal ends the process at once, with 143 or 130; its leases then end by themselves.
///
/// Exit codes: 0 stopped as asked, 1 something unexpected, 2 the command line or the configuration
/// cannot be used, 7 the ledger needs an operator.
#[derive(Debug, Parser)]
#[command(name = "truekeep-worker", version, verbatim_doc_comment)]
pub struct Arguments {
    /// The configuration
    #[arg(long, value_name = "PATH", default_value = truekeep::config::FILE_NAME)]
    pub config: PathBuf,

    /// How the log looks
    #[arg(long, value_name = "FORM", default_value = "human")]
    pub log: LogForm,

    /// What is logged: a level, or levels by target as in `info,truekeep_engine=debug`; else what
    /// RUST_LOG says, else `info`
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A line for people.
    Human,
    /// An object per line.
    Json,
}
