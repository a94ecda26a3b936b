//! Sinks: a mirror in a SQLite table.

use std::path::Path;
use std::sync::Arc;

use truekeep_core::failure::PortError;
use truekeep_core::ports::Sink;
use truekeep_sink_memory::MemorySink;
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

use super::{BUSY_MAX, SourcePorts};
use crate::config::{Config, LayoutConfig, PipelineConfig, SinkConfig};

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
    let sink = config.sink_of(pipeline);
    let opened = SqliteSink::open(sink.location.path(), spec(sink, source), BUSY_MAX).await?;
    Ok(Arc::new(opened))
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
    if config.sink_of(pipeline).location.path().exists() {
        let sink = open_sink(config, pipeline, source).await?;
        if sink.mark().await?.is_some() {
            return Ok(sink);
        }
    }
    Ok(Arc::new(MemorySink::new()))
}

fn spec(sink: &SinkConfig, source: &SourcePorts) -> MirrorSpec {
    let layout = match &sink.layout {
        LayoutConfig::Json(column) => Layout::Json { column: column.clone() },
        LayoutConfig::Columns => {
            let column = |(name, declared): &(String, String)| MirrorColumn {
                name: name.clone(),
                declared: declared.clone(),
            };
            Layout::Columns(source.columns.iter().map(column).collect())
        }
    };
    MirrorSpec { table: sink.table.clone(), layout }
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
    let sink = config.sink_of(pipeline);
    let path = sink.location.path();
    if !path.exists() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_none_or(Path::is_dir) {
            return Ok(SinkCheck::ToBeMade);
        }
    }
    let opened = SqliteSink::open(path, spec(sink, source), BUSY_MAX).await?;
    let there = opened.inspect().await?;
    Ok(if there { SinkCheck::Fits } else { SinkCheck::ToBeMade })
}
