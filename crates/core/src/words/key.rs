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

    /// A text below the key, and near it: what rises from there comes to the key soon. `None` stands
    /// for the beginning.
    pub fn just_before(&self) -> Option<Self> {
        let mut characters = self.0.chars();
        let last = characters.next_back()?;
        let stem = characters.as_str();
        // A database may have no text with a NUL.
        match ('\u{1}'..last).next_back() {
            Some(before) => Some(Self::new(format!("{stem}{before}{}", char::MAX))),
            None => Some(Self::new(stem)).filter(|stem| !stem.0.is_empty()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn just_before_a_key_is_below_it_and_above_what_is_smaller() {
        let keys = ["", "\u{1}", "0", "1", "19", "2", "a", "a\u{1}", "ab", "b", "\u{e000}"];
        for (smaller, key) in keys.iter().zip(&keys[1..]) {
            let before = Key::new(*key).just_before();
            assert!(before < Some(Key::new(*key)), "{key:?}: {before:?}");
            let near = before.as_ref().is_none_or(|before| before.as_str() >= smaller)
                || key.starts_with(smaller);
            assert!(near, "{key:?}: {before:?}");
        }
        assert_eq!(Key::new("").just_before(), None);
        assert_eq!(Key::new("12").just_before(), Some(Key::new("11\u{10ffff}")));
    }
}
