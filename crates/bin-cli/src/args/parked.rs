//! The arguments of `parked`.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use truekeep_core::code::Code;

use super::{Reason, Selection};

/// `parked`.
#[derive(Debug, Subcommand)]
pub enum Parked {
    /// Lists them.
    List(ParkedList),
    /// Counts them by why they were set aside, the commonest reason first.
    Reasons(ParkedReasons),
    /// Shows one with its reason and what to do.
    Show(ParkedKey),
    /// Tries one again, all of them, or all of one reason; a record that is not set aside is delivered once more.
    Retry(ParkedRetry),
    /// Gives one up: it needs nobody any more, and stays missing in what is certified.
    Discard(ParkedDiscard),
}

/// `parked list`.
#[derive(Debug, Args)]
pub struct ParkedList {
    #[command(flatten)]
    pub selection: Selection,
    /// How many are listed.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Lists those after this key.
    #[arg(long, value_name = "KEY", requires = "pipelines")]
    pub after: Option<String>,
    /// Lists those that were given up.
    #[arg(long)]
    pub discarded: bool,
}

/// `parked reasons`.
#[derive(Debug, Args)]
pub struct ParkedReasons {
    #[command(flatten)]
    pub selection: Selection,
    /// How many reasons are shown.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `parked show`.
#[derive(Debug, Args)]
pub struct ParkedKey {
    #[command(flatten)]
    pub selection: Selection,
    /// Which record.
    pub key: String,
}

/// `parked discard`.
#[derive(Debug, Args)]
pub struct ParkedDiscard {
    #[command(flatten)]
    pub selection: Selection,
    /// Which record.
    pub key: String,
    #[command(flatten)]
    pub reason: Reason,
}

/// `parked retry`.
#[derive(Debug, Args)]
pub struct ParkedRetry {
    #[command(flatten)]
    pub selection: Selection,
    /// Which record.
    #[arg(required_unless_present_any = ["all", "code", "reason"], conflicts_with_all = ["all", "code", "reason"])]
    pub key: Option<String>,
    /// All of them.
    #[arg(long, conflicts_with_all = ["code", "reason"])]
    pub all: bool,
    /// All that were set aside with this code.
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub code: Option<Code>,
    /// All whose reason has this text in it.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
}

fn code(text: &str) -> Result<Code, Infallible> {
    Ok(Code::from_outside(text))
}
