//! Search indexes: a tantivy folder.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sink_tantivy::TantivySink;

use super::SourcePorts;
use crate::config::{IndexConfig, nearest};

/// Names the index as a sink.
///
/// # Errors
/// Also if the document has no value for a field.
pub(super) fn open(index: &IndexConfig, source: &SourcePorts) -> Result<TantivySink, PortError> {
    let values = || source.columns.iter().map(|(name, _)| name.as_str());
    let fields = index.spec.fields.iter().map(|field| field.name.as_str());
    let missing = fields.clone().find(|field| !values().any(|value| value == *field));
    // A document that is one JSON object has its values inside it.
    let is_object =
        values().count() == 1 && !fields.clone().any(|field| values().any(|v| v == field));
    if let Some(field) = missing.filter(|_| !is_object) {
        let error = PortError::new("use an index", FailureClass::Halted, Code::CONFIG_INVALID);
        let hint = nearest(field, values());
        return Err(error.detail(format!("the document has no value for field `{field}`, {hint}")));
    }
    TantivySink::new(index.location.path(), &index.spec)
}
