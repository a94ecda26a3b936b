//! The configuration: truekeep.toml, read and checked as a whole before anything is opened.
//!
//! Every problem is reported at once, each with its place and a remedy. A value that comes from the
//! environment or from a secret's file stands in no `Debug` and no error text.

mod conflicts;
#[cfg(feature = "tantivy")]
mod index;
mod location;
mod problem;
mod quantity;
mod reader;
mod schema;
mod sections;
mod sink;
mod substitute;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annotate_snippets::Level;
use truekeep_core::PipelineName;
use truekeep_core::compare::Owns;
use truekeep_core::follow::SourceWentBack;

pub use location::{Address, Location};
pub use problem::{InvalidConfig, PlacedProblem, Problem};
pub use quantity::{duration, size};
pub use reader::nearest;
#[cfg(feature = "tantivy")]
pub use sink::IndexConfig;
#[cfg(feature = "postgres")]
pub use sink::TableConfig;
pub use sink::{LayoutConfig, MirrorConfig, SinkConfig, TargetConfig};
pub use substitute::{Environment, Hidden};

/// The commented example: the reference of every key.
pub const EXAMPLE: &str = include_str!("config/example.toml");

/// The name of the file where no other is given.
pub const FILE_NAME: &str = "truekeep.toml";

/// Bytes of a configuration: a longer one is another file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A configuration that was checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the worker keeps its own state.
    pub ledger: LedgerConfig,
    /// The databases of record, by name.
    pub sources: BTreeMap<String, SourceConfig>,
    /// The derived stores, by name.
    pub sinks: BTreeMap<String, SinkConfig>,
    /// What is kept true, in the order of names.
    pub pipelines: Vec<PipelineConfig>,
    /// How the worker runs.
    pub worker: WorkerConfig,
    path: PathBuf,
    text: String,
    warnings: Vec<Problem>,
    hidden: Hidden,
}

/// Where the worker keeps its own state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerConfig {
    /// In memory: everything is delivered again at each start.
    Memory,
    /// In a SQLite file.
    Sqlite(Location),
    /// In a database of a Postgres server, in a schema of its own.
    Postgres(Address),
}

/// A database of record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceConfig {
    /// A SQLite file.
    Sqlite(Location),
    /// A database of a Postgres server.
    Postgres(Address),
}

impl SourceConfig {
    /// Its file, if it is one.
    pub fn file(&self) -> Option<&Location> {
        match self {
            Self::Sqlite(location) => Some(location),
            Self::Postgres(_) => None,
        }
    }

    /// A table of it, by which two spellings of one table are equal.
    pub fn relation(&self, table: &str) -> (PathBuf, String) {
        match self {
            // SQLite's names are equal in any case of ASCII letters.
            Self::Sqlite(location) => (location.canonical(), table.to_ascii_lowercase()),
            Self::Postgres(address) => {
                let table = table.strip_prefix("public.").unwrap_or(table);
                (address.canonical().into(), table.to_owned())
            }
        }
    }
}

impl fmt::Display for SourceConfig {
    /// As it was written, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(location) => location.fmt(f),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

/// One pipeline: feed, projection and sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineConfig {
    /// Its name.
    pub name: PipelineName,
    /// The name of its source.
    pub source: String,
    /// The table it follows.
    pub table: String,
    /// The columns that identify a record; empty for the table's primary key.
    pub key: Vec<String>,
    /// Whether key columns may have the collations NOCASE and RTRIM: keys are then folded.
    pub normal_form: bool,
    /// How a record becomes a document.
    pub document: DocumentConfig,
    /// The SQL condition that a row must meet.
    pub live_when: Option<String>,
    /// Related tables whose changes change documents.
    pub watch: Vec<WatchConfig>,
    /// The name of its sink.
    pub sink: String,
    /// The most records of a page.
    pub page_rows: u32,
    /// Bytes of a document; a larger one is parked.
    pub document_max: usize,
    /// How often both sides are held against each other without a reason.
    pub reconcile_every: Option<Duration>,
    /// Which entries of the sink it answers for.
    pub owns: Owns,
    /// What to do about a source that went back.
    pub source_went_back: SourceWentBack,
    pub(crate) span: Range<usize>,
}

/// How a record becomes a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentConfig {
    /// All columns of the table.
    AllColumns,
    /// These columns.
    Columns(Vec<String>),
    /// What a query makes; these of its columns hold JSON.
    Sql {
        /// A select of one row, its key bound by name (`:id`) or by place (`?1`).
        query: String,
        /// Columns whose text is JSON.
        json: Vec<String>,
    },
}

/// A related table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchConfig {
    /// Many rows of it belong to one record.
    Child {
        /// The table.
        table: String,
        /// Its columns that hold the record's key.
        key: Vec<String>,
    },
    /// One row of it belongs to many records.
    Parent {
        /// The table.
        table: String,
        /// The record's columns that point to it.
        via: Vec<String>,
        /// The columns they point to; empty for its primary key.
        references: Vec<String>,
    },
}

/// How the worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// How long a lease runs unless it is renewed.
    pub lease: Duration,
    /// Where the service answers over HTTP.
    pub listen: std::net::SocketAddr,
    /// The folder for what does not fit in memory; the system's if there is none.
    pub spill: Option<PathBuf>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`InvalidConfig`] with every problem that was found.
    pub fn load(path: &Path) -> Result<Self, InvalidConfig> {
        let unreadable =
            |reason: &str, remedy: &str| InvalidConfig::unreadable(path, reason, remedy);
        let missing = "`truekeep init sqlite:FILE` writes a configuration; `--config PATH` names another file";
        let length = match path.metadata() {
            Ok(found) if found.is_dir() => {
                return Err(unreadable("it is a folder", "name the file inside it"));
            }
            Ok(found) => found.len(),
            Err(error) => return Err(unreadable(&error.to_string(), missing)),
        };
        if length > FILE_BYTES_MAX {
            return Err(unreadable("it is longer than 1 MB", "name a configuration"));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| unreadable(&error.to_string(), "name a readable UTF-8 file"))?;
        Self::parse(path, &text, &|name| std::env::var(name).ok())
    }

    /// Reads a text as if it stood in the file `path`; variables come from `environment`.
    ///
    /// # Errors
    /// [`InvalidConfig`] with every problem that was found.
    pub fn parse(
        path: &Path,
        text: &str,
        environment: Environment<'_>,
    ) -> Result<Self, InvalidConfig> {
        sections::read(path, text, environment)
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The pipeline of a name.
    pub fn pipeline(&self, name: &str) -> Option<&PipelineConfig> {
        self.pipelines.iter().find(|pipeline| pipeline.name.as_str() == name)
    }

    /// The source of a pipeline.
    ///
    /// # Panics
    /// If the pipeline is another configuration's.
    pub fn source_of(&self, pipeline: &PipelineConfig) -> &SourceConfig {
        self.sources.get(&pipeline.source).expect("a checked pipeline has a source")
    }

    /// Whether two pipelines follow one table of one file, and so share its feed.
    pub fn share_feed(&self, one: &PipelineConfig, other: &PipelineConfig) -> bool {
        let table = |of: &PipelineConfig| self.source_of(of).relation(&of.table);
        table(one) == table(other)
    }

    /// The sink of a pipeline.
    ///
    /// # Panics
    /// If the pipeline is another configuration's.
    pub fn sink_of(&self, pipeline: &PipelineConfig) -> &SinkConfig {
        self.sinks.get(&pipeline.sink).expect("a checked pipeline has a sink")
    }

    /// What can be used but is likely not meant, as a compiler shows it.
    pub fn render_warnings(&self, colour: bool) -> String {
        let warnings = self.warnings.iter();
        problem::render(warnings, &self.path, &self.text, colour, Level::WARNING)
    }

    /// What can be used but is likely not meant.
    pub fn warnings(&self) -> Vec<PlacedProblem> {
        self.warnings.iter().map(|warning| problem::placed(&self.text, warning)).collect()
    }

    /// The text without the values that came from the environment or from secrets' files.
    pub fn redact(&self, text: &str) -> String {
        self.hidden.redact(text)
    }
}

#[cfg(test)]
mod tests;
