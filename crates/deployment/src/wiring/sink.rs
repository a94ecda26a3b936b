//! Sinks: a mirror in a table of SQLite or of a Postgres server, or a full-text index.

use std::path::Path;
use std::sync::Arc;

use truekeep_core::failure::PortError;
use truekeep_core::ports::Sink;
use truekeep_sink_memory::MemorySink;
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

#[cfg(feature = "tantivy")]
use super::index;
#[cfg(feature = "postgres")]
use super::postgres;
use super::{BUSY_MAX, SourcePorts};
use crate::config::{Config, LayoutConfig, MirrorConfig, PipelineConfig, TargetConfig};

/// What a check of a sink found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkCheck {
    /// It is not there: the first delivery makes it.
    ToBeMade,
    /// It is there and fits the rules.
    Fits,
}

/// Opens a sink, which is made if it is not there.
///
/// # Errors
/// The sink's.
pub async fn open_sink(
    config: &Config,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
) -> Result<Arc<dyn Sink>, PortError> {
    match &config.sink_of(pipeline).target {
        TargetConfig::Mirror(mirror) => Ok(Arc::new(open_mirror(mirror, source).await?)),
        #[cfg(feature = "postgres")]
        TargetConfig::Table(table) => {
            Ok(Arc::new(postgres::open_table(config, pipeline, table, source).await?))
        }
        #[cfg(feature = "tantivy")]
        TargetConfig::Index(index) => Ok(Arc::new(index::open(index, source)?)),
    }
}

async fn open_mirror(mirror: &MirrorConfig, source: &SourcePorts) -> Result<SqliteSink, PortError> {
    SqliteSink::open(mirror.location.path(), spec(mirror, source), BUSY_MAX).await
}

/// Opens a sink to look at it: one that is not there, or that nobody has written, is empty.
///
/// # Errors
/// The sink's.
pub async fn sink_as_it_is(
    config: &Config,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
) -> Result<Arc<dyn Sink>, PortError> {
    let location = config.sink_of(pipeline).target.location();
    if location.is_none_or(|location| location.path().exists()) {
        let sink = open_sink(config, pipeline, source).await?;
        if sink.mark().await?.is_some() {
            return Ok(sink);
        }
    }
    Ok(Arc::new(MemorySink::new()))
}

/// Opens a sink to leave it: none is made for that. Whoever has a mirror open has made its file.
///
/// # Errors
/// The sink's.
pub async fn sink_if_there(
    config: &Config,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
) -> Result<Arc<dyn Sink>, PortError> {
    match &config.sink_of(pipeline).target {
        TargetConfig::Mirror(mirror) if is_to_be_made(mirror) => Ok(Arc::new(MemorySink::new())),
        _ => open_sink(config, pipeline, source).await,
    }
}

/// Whether there is no file yet, and a folder for it. A folder that is missing may be a disk that is
/// not there now.
fn is_to_be_made(mirror: &MirrorConfig) -> bool {
    let path = mirror.location.path();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    !path.exists() && folder.is_none_or(Path::is_dir)
}

fn spec(mirror: &MirrorConfig, source: &SourcePorts) -> MirrorSpec {
    let layout = match &mirror.layout {
        LayoutConfig::Json(column) => Layout::Json { column: column.clone() },
        LayoutConfig::Columns => {
            let column = |(name, declared): &(String, String)| MirrorColumn {
                name: name.clone(),
                declared: declared.clone(),
            };
            Layout::Columns(source.columns.iter().map(column).collect())
        }
    };
    MirrorSpec { table: mirror.table.clone(), layout }
}

/// Looks whether a sink fits the rules; makes nothing.
///
/// # Errors
/// The sink's.
pub async fn check_sink(
    config: &Config,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
) -> Result<SinkCheck, PortError> {
    let there = match &config.sink_of(pipeline).target {
        TargetConfig::Mirror(mirror) => {
            if is_to_be_made(mirror) {
                return Ok(SinkCheck::ToBeMade);
            }
            open_mirror(mirror, source).await?.inspect().await?
        }
        #[cfg(feature = "postgres")]
        TargetConfig::Table(table) => {
            postgres::open_table(config, pipeline, table, source).await?.inspect().await?
        }
        #[cfg(feature = "tantivy")]
        TargetConfig::Index(index) => index::open(index, source)?.inspect().await?,
    };
    Ok(if there { SinkCheck::Fits } else { SinkCheck::ToBeMade })
}
