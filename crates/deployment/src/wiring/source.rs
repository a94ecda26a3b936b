//! Sources: a table of a SQLite database, or of a Postgres server's.

use std::path::Path;
use std::sync::Arc;

use truekeep_adapter_sqlite::{
    Cause, Projection, RelationSpec, SqliteSource, Unindexed, Watch, introspect,
};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Feed, Records};

use super::BUSY_MAX;
use crate::config::{Config, DocumentConfig, PipelineConfig, SourceConfig, WatchConfig};
use crate::rules::Rules;

/// The source's side of a pipeline.
#[derive(Debug, Clone)]
pub struct SourcePorts {
    /// The changes.
    pub feed: Arc<dyn Feed>,
    /// The records.
    pub records: Arc<dyn Records>,
    /// What records changes.
    pub capture: Arc<dyn Capture>,
    /// The values of a document with their declared types.
    pub columns: Vec<(String, String)>,
    /// The rules of the pipeline over this source as it is now.
    pub rules: Rules,
    /// What makes this source slow, with what helps.
    pub advice: Vec<Advice>,
}

/// Something that is right but slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What it is.
    pub text: String,
    /// The statements that help; none if nothing does.
    pub statements: Vec<String>,
}

/// Opens a source.
///
/// # Errors
/// The source's.
pub async fn open_source(
    config: &Config,
    pipeline: &PipelineConfig,
) -> Result<SourcePorts, PortError> {
    let location = match config.source_of(pipeline) {
        SourceConfig::Sqlite(location) => location,
        #[cfg(feature = "postgres")]
        SourceConfig::Postgres(address) => {
            return super::postgres::open(config, pipeline, address).await;
        }
        #[cfg(not(feature = "postgres"))]
        SourceConfig::Postgres(address) => {
            return Err(super::without_postgres("open a source", address));
        }
    };
    let source = SqliteSource::open(location.path(), spec(pipeline), BUSY_MAX).await?;
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

pub(super) fn advice(found: Unindexed) -> Advice {
    let Unindexed { table, cause, indexes } = found;
    let text = match cause {
        Cause::Change(related) => {
            format!("each change of `{related}` makes it look at every row of `{table}`")
        }
        Cause::Document => format!("each document makes it look at every row of `{table}`"),
    };
    Advice { text, statements: indexes }
}

/// What a pipeline says about its relation, wherever that is.
pub(super) fn spec(pipeline: &PipelineConfig) -> RelationSpec {
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

/// A table of a database, as a proposal sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// Its name.
    pub name: String,
    /// The columns that identify a row.
    pub key: Vec<String>,
    /// Why it cannot be followed, if it cannot.
    pub refusal: Option<String>,
}

/// Looks at the tables of a database.
///
/// # Errors
/// Why it cannot be read.
pub async fn introspect_source(path: &Path) -> Result<Vec<FoundTable>, PortError> {
    let shapes = introspect(path, BUSY_MAX).await?.into_iter();
    let found = |shape: truekeep_adapter_sqlite::TableShape| FoundTable {
        name: shape.name,
        key: shape.primary_key,
        refusal: shape.refusal,
    };
    Ok(shapes.map(found).collect())
}
