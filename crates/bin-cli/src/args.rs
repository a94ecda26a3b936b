//! The arguments: every command with its options.

mod parked;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use truekeep_core::Moment;

pub use parked::{Parked, ParkedDiscard, ParkedKey, ParkedList, ParkedReasons, ParkedRetry};

/// Keeps derived data true to the database it was derived from.
#[derive(Debug, Parser)]
#[command(name = "truekeep", version, after_help = EXITS)]
pub struct Arguments {
    /// The configuration.
    #[arg(long, global = true, value_name = "PATH", default_value = truekeep::config::FILE_NAME)]
    pub config: PathBuf,
    /// How answers are printed.
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXITS: &str = "Exit codes: 0 done, 1 unexpected, 2 usage or config, 3 drift found, \
    4 not complete, 5 lease held, 6 guard refused, 7 halted";

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes a configuration for a database.
    Init(Init),
    /// Opens everything and checks the rules against source and sink; with a key, shows its document.
    Check(Check),
    /// Puts the configured rules in force, and shows what that delivers.
    Apply(Apply),
    /// Brings the ledger's schema up to this program's.
    Migrate,
    /// Installs, verifies or removes what records changes in the source.
    #[command(subcommand)]
    Capture(Capture),
    /// Follows the sources and keeps the sinks true.
    Run(Run),
    /// Shows each pipeline's certificate and who works on it.
    Status(Status),
    /// Explains a code, or what a pipeline does and waits for.
    Explain(Explain),
    /// Compares sinks with their sources; writes nothing.
    Diff(Diff),
    /// Holds sinks against their sources, and repairs what differs.
    Reconcile(Reconcile),
    /// Delivers everything again, beside what changes meanwhile, and compares.
    Rebuild(Rebuild),
    /// Searches a pipeline's index.
    Search(Search),
    /// Lists, shows, retries or gives up records that were set aside.
    #[command(subcommand)]
    Parked(Parked),
    /// Ends work on pipelines until they are resumed; certificates and progress stay.
    Pause(Steer),
    /// Lets paused pipelines go on from where they were.
    Resume(Steer),
    /// Ends the reconcile or rebuild of a pipeline that is under way.
    Cancel(Cancel),
    /// Removes a pipeline for good; its sink keeps its records unless they are to go.
    Remove(Remove),
    /// Says whether sinks are complete: exit code 0 if they are, 4 if not.
    Coverage(Coverage),
    /// Waits until sinks are complete.
    Wait(Wait),
    /// Tells what happened to pipelines, newest first.
    History(History),
    /// Looks at files, rights, room, locks, clocks and leases, and then at all that `check` does.
    Doctor,
    /// Prints what a shell needs to complete this command line.
    Completions(Completions),
}

/// Which pipelines.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// Only this pipeline; may be repeated.
    #[arg(short, long = "pipeline", value_name = "NAME")]
    pub pipelines: Vec<String>,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The database to follow, as in `sqlite:app.db`.
    #[arg(required_unless_present = "example", conflicts_with = "example")]
    pub url: Option<String>,
    /// Prints the commented example, which shows every key, and writes nothing.
    #[arg(long)]
    pub example: bool,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `check`.
#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub selection: Selection,
    /// Makes the document of this key and shows it.
    #[arg(long, value_name = "KEY", requires = "pipelines")]
    pub key: Option<String>,
}

/// `apply`.
#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    pub selection: Selection,
    /// Announces unchanged rules under a new number too, so that everything is delivered again.
    #[arg(long)]
    pub again: bool,
    /// Only shows what would be announced.
    #[arg(long)]
    pub dry_run: bool,
}

/// `capture`.
#[derive(Debug, Subcommand)]
pub enum Capture {
    /// Puts triggers and tables into the source, and records the rows that are there.
    Install(Selection),
    /// Says whether every change is recorded.
    Verify(Selection),
    /// Takes triggers and tables out of the source.
    Remove(Selection),
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub selection: Selection,
    /// Ends when nothing is due.
    #[arg(long)]
    pub once: bool,
}

/// `status`.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub selection: Selection,
    /// Goes on, and prints whenever something has changed.
    #[arg(long)]
    pub watch: bool,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A code or a pipeline; all codes if it is left out.
    pub what: Option<String>,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    #[command(flatten)]
    pub selection: Selection,
    /// How many differences are named for people; JSON names up to 1,000.
    #[arg(long, value_name = "N", default_value_t = crate::commands::diff::NAMED)]
    pub limit: usize,
    /// Compares documents too, not only versions.
    #[arg(long)]
    pub deep: bool,
}

/// `reconcile`.
#[derive(Debug, Args)]
pub struct Reconcile {
    #[command(flatten)]
    pub selection: Selection,
    /// Says yes to more deletions and rewritten documents than the guard allows.
    #[arg(long)]
    pub confirm: bool,
    /// Only says what would be repaired, and whether the guard would ask; writes nothing.
    #[arg(long, conflicts_with = "confirm")]
    pub dry_run: bool,
    /// Compares documents too, not only versions.
    #[arg(long)]
    pub deep: bool,
}

/// `rebuild`.
#[derive(Debug, Args)]
pub struct Rebuild {
    #[command(flatten)]
    pub selection: Selection,
    /// Says yes to deletions that the guard refuses.
    #[arg(long)]
    pub confirm: bool,
}

/// `pause` and `resume`.
#[derive(Debug, Args)]
pub struct Steer {
    /// Which pipelines.
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub pipelines: Vec<String>,
    /// All pipelines of the configuration.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub reason: Reason,
}

/// `cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    /// Which pipeline.
    #[arg(value_name = "NAME")]
    pub pipeline: String,
    /// What of it.
    #[arg(long, value_enum, default_value_t = Effort::Reconcile)]
    pub run: Effort,
    #[command(flatten)]
    pub reason: Reason,
}

/// `remove`.
#[derive(Debug, Args)]
pub struct Remove {
    /// Which pipeline.
    #[arg(value_name = "NAME")]
    pub pipeline: String,
    /// Empties the sink as well.
    #[arg(long, conflicts_with = "abandon")]
    pub purge: bool,
    /// Leaves alone what is gone for good: source and sink, and then the pipeline may be missing in
    /// the configuration; `--abandon=sink` only the sink.
    #[arg(long, value_enum, value_name = "SIDE", num_args = 0..=1, require_equals = true,
        default_missing_value = "both")]
    pub abandon: Option<Abandon>,
    /// Says yes beforehand; without, nothing goes but for whoever types the name when asked.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub reason: Reason,
}

/// What a removal leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Abandon {
    /// Source and sink.
    Both,
    /// The sink.
    Sink,
}

/// What is under way in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Effort {
    /// Delivers every change; it has no end.
    Follow,
    /// Holds both sides against each other.
    Reconcile,
}

/// Why an operator decides.
#[derive(Debug, Args)]
pub struct Reason {
    /// Why, for the history.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `history`.
#[derive(Debug, Args)]
pub struct History {
    #[command(flatten)]
    pub selection: Selection,
    /// How many events of each pipeline.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `search`.
#[derive(Debug, Args)]
pub struct Search {
    /// Whose index.
    pub pipeline: String,
    /// Words, all of which are looked for; `\"a phrase\"`, `field:word`, `OR`, `-word`,
    /// `field:[1 TO 9]` and `*` for everything are understood.
    pub query: String,
    /// Looks for words that name no field in this one; may be repeated. Left out: in every text and
    /// keyword field.
    #[arg(long = "field", value_name = "FIELD")]
    pub fields: Vec<String>,
    /// The most records that are shown.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
}

/// `coverage`.
#[derive(Debug, Args)]
pub struct Coverage {
    #[command(flatten)]
    pub selection: Selection,
    /// Complete is not enough if it is older than this, as in "10 s".
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_age: Option<Duration>,
    /// Complete is not enough unless it includes this moment of the source.
    #[arg(long, value_name = "MOMENT")]
    pub token: Option<Moment>,
}

/// `wait`.
#[derive(Debug, Args)]
pub struct Wait {
    #[command(flatten)]
    pub selection: Selection,
    /// Gives up after this long, as in "5 min".
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Waits until this moment of the source is included; left out: all that is in it now.
    #[arg(long, value_name = "MOMENT")]
    pub token: Option<Moment>,
}

fn duration(text: &str) -> Result<Duration, String> {
    truekeep::config::duration(text)
}
