//! Sources on a Postgres server.

use std::sync::Arc;

use truekeep_adapter_postgres::{PostgresSource, Projection, RelationSpec, Watch, introspect};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Feed, Records};

use super::{BUSY_MAX, FoundTable, SourcePorts};
use crate::config::{Address, Config, DocumentConfig, PipelineConfig, WatchConfig};
use crate::rules::Rules;

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
    let source = Arc::new(source);
    Ok(SourcePorts {
        feed: Arc::clone(&source) as Arc<dyn Feed>,
        records: Arc::clone(&source) as Arc<dyn Records>,
        capture: source,
        columns,
        rules,
        advice: Vec::new(),
    })
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

fn spec(pipeline: &PipelineConfig) -> RelationSpec {
    RelationSpec {
        table: pipeline.table.clone(),
        key: pipeline.key.clone(),
        document: match &pipeline.document {
            DocumentConfig::AllColumns => Projection::Columns(Vec::new()),
            DocumentConfig::Columns(columns) => Projection::Columns(columns.clone()),
            DocumentConfig::Sql { query, json } => {
                Projection::Sql { query: query.clone(), json: json.clone() }
            }
        },
        live_when: pipeline.live_when.clone(),
        watch: pipeline.watch.iter().map(watch).collect(),
        normal_form: pipeline.normal_form,
        document_max: pipeline.document_max,
    }
}

fn watch(watch: &WatchConfig) -> Watch {
    match watch.clone() {
        WatchConfig::Child { table, key } => Watch::Child { table, key },
        WatchConfig::Parent { table, via, references } => {
            Watch::Parent { table, via, key: references }
        }
    }
}
