//! Trouble: what a port answers when it could not do its work, and what class that is.

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::code::Code;

/// Every failure has one class; what is not known to be another is `Unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// It surely did not happen; the same call may succeed later.
    Retry,
    /// It may have happened.
    Unknown,
    /// Somebody newer owns this.
    Fenced,
    /// The other side needs an operator before anything can succeed.
    Halted,
    /// The same call can never succeed.
    Terminal,
}

/// A port's failure: what was tried, its class, a stable code and the cause.
///
/// The text never repeats the cause and never holds a secret; [`Error::source`] is the cause.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct PortError {
    /// What was tried, as a verb phrase: "read the feed".
    pub operation: &'static str,
    /// What kind of failure it is.
    pub class: FailureClass,
    /// A stable code of the registry.
    pub code: Code,
    /// What is particular: a table's name, a found number. May be empty.
    pub detail: String,
    /// How long the other side asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl PortError {
    /// A failure without a cause of its own.
    pub fn new(operation: &'static str, class: FailureClass, code: Code) -> Self {
        Self { operation, class, code, detail: String::new(), retry_after: None, source: None }
    }

    /// Adds what is particular.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The text with all causes, joined by ": ", but for those that only repeat what was said.
    pub fn chain(&self) -> String {
        let mut said = self.to_string();
        let mut text = said.clone();
        let mut cause = self.source();
        while let Some(inner) = cause {
            let words = inner.to_string();
            if !said.contains(&words) && !words.contains(&said) {
                text.push_str(": ");
                text.push_str(&words);
                said = words;
            }
            cause = inner.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Cause(&'static str, #[source] Option<Box<Cause>>);

    #[test]
    fn a_chain_names_each_cause_once() {
        let inner = Cause("code 8: read-only", Some(Box::new(Cause("disk", None))));
        let error = PortError::new("write", FailureClass::Halted, Code::UNEXPECTED)
            .detail("a.db")
            .caused_by(Cause("read-only", Some(Box::new(inner))));
        assert_eq!(error.chain(), "failed to write: a.db: read-only: disk");
    }
}
