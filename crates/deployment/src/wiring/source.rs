//! Sources: a table of a SQLite database.

use std::sync::Arc;

use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Feed, Records};

use crate::config::{Config, PipelineConfig};
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
}

/// Opens a source.
///
/// # Errors
/// The source's.
pub async fn open_source(
    _config: &Config,
    _pipeline: &PipelineConfig,
) -> Result<SourcePorts, PortError> {
    Err(PortError::new(
        "x",
        truekeep_core::failure::FailureClass::Halted,
        truekeep_core::code::Code::UNEXPECTED,
    ))
}
