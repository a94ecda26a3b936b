//! From a checked configuration to ports: each command opens what it needs, and nothing else.
//!
//! What only reads never makes a file: a ledger or a mirror that is not there reads as an empty one.

#[cfg(feature = "tantivy")]
mod index;
#[cfg(feature = "postgres")]
mod postgres;
mod sink;
mod source;

use std::sync::Arc;
use std::time::Duration;

use truekeep_adapter_memory::MemoryLedger;
use truekeep_adapter_sqlite::{MigrationReport, SqliteLedger};
use truekeep_core::failure::PortError;

#[cfg(feature = "postgres")]
pub use postgres::introspect_server;
#[cfg(feature = "postgres")]
pub(crate) use postgres::open_for_long;
pub use sink::{SinkCheck, check_sink, open_sink, sink_as_it_is, sink_if_there};
pub use source::{Advice, FoundTable, SourcePorts, introspect_source, open_source};

use crate::clock::wall;
use crate::config::{Config, LedgerConfig, PipelineConfig};
use crate::entropy::ledger_id;
use crate::status::LedgerPorts;

/// How long a statement waits for another program's lock: longer than any sound transaction, and
/// short enough that a person still watches.
pub const BUSY_MAX: Duration = Duration::from_secs(5);

/// What a ledger is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read; nothing is made.
    Read,
    /// To work; the ledger is made if it is not there.
    Work,
}

/// Opens the ledger.
///
/// # Errors
/// Those of the ledger's adapter.
pub async fn open_ledger(config: &Config, purpose: Purpose) -> Result<LedgerPorts, PortError> {
    let in_memory = || LedgerPorts::of(MemoryLedger::new(ledger_id(), Arc::new(wall)));
    let found = match &config.ledger {
        LedgerConfig::Memory => return Ok(in_memory()),
        LedgerConfig::Sqlite(location) if purpose == Purpose::Work || location.path().exists() => {
            Some(LedgerPorts::of(SqliteLedger::open(location.path(), BUSY_MAX).await?))
        }
        LedgerConfig::Sqlite(_) => None,
        #[cfg(feature = "postgres")]
        LedgerConfig::Postgres(address) => postgres::ledger(address, purpose).await?,
        #[cfg(not(feature = "postgres"))]
        LedgerConfig::Postgres(address) => {
            return Err(without_postgres("open the ledger", address));
        }
    };
    Ok(found.unwrap_or_else(|| LedgerPorts { stands_in: true, ..in_memory() }))
}

/// An address that this program cannot open.
#[cfg(not(feature = "postgres"))]
fn without_postgres(operation: &'static str, address: &crate::config::Address) -> PortError {
    use truekeep_core::{code::Code, failure::FailureClass};
    PortError::new(operation, FailureClass::Halted, Code::CONFIG_INVALID)
        .detail(format!("{address}: this program was built without Postgres"))
}

/// Brings the ledger's schema up to this program's. `None` for a ledger in memory, which has none.
///
/// # Errors
/// Those of the ledger's adapter.
pub async fn migrate_ledger(config: &Config) -> Result<Option<MigrationReport>, PortError> {
    match &config.ledger {
        LedgerConfig::Memory => Ok(None),
        LedgerConfig::Sqlite(location) => {
            SqliteLedger::migrate(location.path(), BUSY_MAX).await.map(Some)
        }
        #[cfg(feature = "postgres")]
        LedgerConfig::Postgres(address) => postgres::migrate(address).await.map(Some),
        #[cfg(not(feature = "postgres"))]
        LedgerConfig::Postgres(address) => Err(without_postgres("migrate the ledger", address)),
    }
}

/// A pipeline with both of its sides open.
#[derive(Debug)]
pub struct Wired {
    /// The source's side.
    pub source: SourcePorts,
    /// The derived store.
    pub sink: Arc<dyn truekeep_core::ports::Sink>,
}

/// Opens both sides of a pipeline.
///
/// # Errors
/// Those of the adapters.
pub async fn open_pipeline(config: &Config, pipeline: &PipelineConfig) -> Result<Wired, PortError> {
    let source = open_source(config, pipeline).await?;
    let sink = open_sink(config, pipeline, &source).await?;
    Ok(Wired { source, sink })
}
