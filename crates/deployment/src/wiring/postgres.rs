//! Ledgers, sources and mirrors on a Postgres server.

use std::sync::Arc;
use std::time::Duration;

use truekeep_adapter_postgres::{MigrationReport, PostgresLedger, PostgresSource, introspect};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Feed, Records};
use truekeep_sink_postgres::{ColumnType, Layout, MirrorColumn, MirrorSpec, PostgresSink};

use super::source::{advice, spec};
use super::{BUSY_MAX, FoundTable, Purpose, SourcePorts};
use crate::config::{Address, Config, LayoutConfig, PipelineConfig, SourceConfig, TableConfig};
use crate::rules::Rules;
use crate::status::LedgerPorts;

/// Opens a ledger; none if it is not there and nothing is to be made.
///
/// # Errors
/// The ledger's.
pub(super) async fn ledger(
    address: &Address,
    purpose: Purpose,
) -> Result<Option<LedgerPorts>, PortError> {
    let found = match purpose {
        Purpose::Work => Some(PostgresLedger::open(address.url(), BUSY_MAX).await?),
        Purpose::Read => PostgresLedger::find(address.url(), BUSY_MAX).await?,
    };
    Ok(found.map(LedgerPorts::of))
}

/// Brings a ledger's schema up to this program's.
///
/// # Errors
/// The ledger's.
pub(super) async fn migrate(address: &Address) -> Result<MigrationReport, PortError> {
    PostgresLedger::migrate(address.url(), BUSY_MAX).await
}

/// Opens a table.
///
/// # Errors
/// The source's.
pub(super) async fn open(
    config: &Config,
    pipeline: &PipelineConfig,
    address: &Address,
) -> Result<SourcePorts, PortError> {
    let source = PostgresSource::open(address.url(), spec(pipeline), BUSY_MAX).await?;
    let columns = source.shape().into_iter().map(|column| (column.name, column.declared_type));
    let rules = Rules::of(pipeline, config.sink_of(pipeline), &source.fingerprint_parts());
    let columns = columns.collect();
    let advice = source.unindexed().await?.into_iter().map(advice).collect();
    let source = Arc::new(source);
    Ok(SourcePorts {
        feed: Arc::clone(&source) as Arc<dyn Feed>,
        records: Arc::clone(&source) as Arc<dyn Records>,
        capture: source,
        columns,
        rules,
        advice,
    })
}

/// Who keeps transactions open for long on the server of a table, in words.
///
/// # Errors
/// The source's.
pub(crate) async fn open_for_long(
    pipeline: &PipelineConfig,
    address: &Address,
    longer_than: Duration,
) -> Result<Vec<String>, PortError> {
    let source = PostgresSource::open(address.url(), spec(pipeline), BUSY_MAX).await?;
    let found = source.open_transactions(longer_than).await?.into_iter();
    let told = |one: truekeep_adapter_postgres::OpenTransaction| {
        format!("{} is open for {} s", one.who, one.age.as_secs())
    };
    Ok(found.map(told).collect())
}

/// Looks at the tables of a server's database.
///
/// # Errors
/// Why it cannot be read.
pub async fn introspect_server(url: &str) -> Result<Vec<FoundTable>, PortError> {
    let shapes = introspect(url, BUSY_MAX).await?.into_iter();
    let found = |shape: truekeep_adapter_postgres::TableShape| FoundTable {
        name: shape.name,
        key: shape.primary_key,
        refusal: shape.refusal,
    };
    Ok(shapes.map(found).collect())
}

/// How long a statement on a mirror may take: a page of the largest documents does not, and a worker
/// that hangs is noticed.
const STATEMENT_MAX: Duration = Duration::from_secs(60);

/// Opens a mirror; makes nothing.
///
/// # Errors
/// The sink's.
pub(super) async fn open_table(
    config: &Config,
    pipeline: &PipelineConfig,
    table: &TableConfig,
    source: &SourcePorts,
) -> Result<PostgresSink, PortError> {
    let kind = match config.source_of(pipeline) {
        SourceConfig::Sqlite(_) => ColumnType::of_sqlite,
        SourceConfig::Postgres(_) => ColumnType::of_postgres,
    };
    let layout = match &table.layout {
        LayoutConfig::Json(column) => Layout::Json { column: column.clone() },
        LayoutConfig::Columns => {
            let column = |(name, declared): &(String, String)| MirrorColumn {
                name: name.clone(),
                kind: kind(declared),
            };
            Layout::Columns(source.columns.iter().map(column).collect())
        }
    };
    let spec = MirrorSpec { schema: table.schema.clone(), table: table.table.clone(), layout };
    PostgresSink::open(table.address.url(), spec, BUSY_MAX, STATEMENT_MAX).await
}
