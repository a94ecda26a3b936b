//! What a user names: pipelines, and the scopes they are cut into.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A pipeline's name: 1 to 63 of `a-z`, `0-9`, `_` and `-`, a letter first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PipelineName(Box<str>);

/// Text that is no pipeline name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pipeline name: 1 to 63 of a-z, 0-9, _ and -, a letter first")]
pub struct InvalidName(String);

impl PipelineName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidName`] for anything else than 1 to 63 of `a-z`, `0-9`, `_`, `-` with a letter first.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let fits = (1..=63).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if fits { Ok(Self(text.into())) } else { Err(InvalidName(text.into())) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PipelineName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<PipelineName> for String {
    fn from(name: PipelineName) -> String {
        name.0.into()
    }
}

impl fmt::Display for PipelineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One partition of a pipeline: the unit of exclusivity and of certification.
///
/// A scope holds the keys whose slot (the first byte of SHA-256 of the key) lies in its range;
/// a pipeline has one scope, of all slots, unless it is partitioned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScopeId {
    pipeline: PipelineName,
    first: u8,
    last: u8,
}

impl ScopeId {
    /// The one scope of a pipeline that is not partitioned.
    pub fn whole(pipeline: PipelineName) -> Self {
        Self { pipeline, first: 0, last: u8::MAX }
    }

    /// The pipeline it is a part of.
    pub fn pipeline(&self) -> &PipelineName {
        &self.pipeline
    }

    /// The first and the last slot.
    pub fn slots(&self) -> (u8, u8) {
        (self.first, self.last)
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pipeline)?;
        if (self.first, self.last) == (0, u8::MAX) {
            return Ok(());
        }
        write!(f, "[{}..{}]", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_name_is_plain() {
        for bad in ["", "A", "1a", "a b", "ä", "a.b", &"a".repeat(64)] {
            assert!(PipelineName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(PipelineName::parse("cities-2_b").is_ok());
    }
}
