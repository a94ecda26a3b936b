//! A record's identity as canonical text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of a record: canonical UTF-8 text, compared by bytes, never by a collation.
///
/// A key is a function of the equality class of the source's own key: the adapter that reads a
/// source makes it. Any Unicode text is a key, the empty one too; NFC and NFD forms differ.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(Box<str>);

impl Key {
    /// Takes text that is already canonical.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
