//! Names of what capture puts beside a table, and quoting.
//!
//! The stem is injective over tables (SQLite folds the ASCII case of names, so it does too), so no
//! two relations share a feed.

use sha2::{Digest, Sha256};

/// A name as SQL text, whatever it holds.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL text.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The first digits of the SHA-256 of some texts, each told apart from its neighbours.
pub(super) fn digest<'a>(texts: impl IntoIterator<Item = &'a str>, digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    let mut hex = to_hex(&hash.finalize());
    hex.make_ascii_lowercase();
    hex.truncate(digits);
    hex
}

/// Upper-case hex digits, as SQL's `hex` writes them.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of upper-case hex digits.
pub(super) fn from_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| Some(nibble(pair[0])? << 4 | nibble(pair[1])?);
    if hex.len().is_multiple_of(2) { hex.chunks(2).map(pair).collect() } else { None }
}

/// Longest stem that is spelt out: SQLite has no limit, but people read these names.
const STEM_BYTES_MAX: usize = 63;

/// The names of one relation's feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FeedNames {
    stem: String,
}

impl FeedNames {
    /// The names for a table.
    pub fn of(table: &str) -> Self {
        let mut stem = String::new();
        for byte in table.bytes() {
            match byte.to_ascii_lowercase() {
                plain @ (b'a'..=b'z' | b'0'..=b'9' | b'_') => stem.push(char::from(plain)),
                other => stem.push_str(&format!("${other:02x}")),
            }
        }
        if stem.len() > STEM_BYTES_MAX {
            let rest = digest([stem.as_str()], 32);
            stem.truncate(STEM_BYTES_MAX - rest.len() - 2);
            stem = format!("{stem}$-{rest}");
        }
        Self { stem }
    }

    /// What tells this feed from others in the tables that all feeds share.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// The feed, unquoted.
    pub fn feed(&self) -> String {
        format!("truekeep_feed_{}", self.stem)
    }

    /// The numbers in the order they were given, with their keys, unquoted.
    pub fn order(&self) -> String {
        format!("truekeep_order_{}", self.stem)
    }

    /// The table of one row that numbers are drawn from, unquoted.
    pub fn counter(&self) -> String {
        format!("truekeep_counter_{}", self.stem)
    }

    /// The marks of related tables, unquoted.
    pub fn mark(&self) -> String {
        format!("truekeep_mark_{}", self.stem)
    }

    /// A trigger, unquoted.
    pub fn trigger(&self, kind: &str) -> String {
        format!("truekeep_{kind}_{}", self.stem)
    }

    /// What is made after the triggers, so that a trigger made again stands behind it; unquoted.
    pub fn seal(&self) -> String {
        self.trigger("seal")
    }

    /// The kind of a trigger of this feed; `None` if it is none.
    pub fn kind<'a>(&self, trigger: &'a str) -> Option<&'a str> {
        let kind =
            trigger.strip_prefix("truekeep_")?.strip_suffix(&self.stem)?.strip_suffix('_')?;
        let (head, tail) = kind.split_once('_').unwrap_or((kind, ""));
        let numbered = |prefix: &str| {
            head.strip_prefix(prefix)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let event = |text: &str| matches!(text, "insert" | "update" | "rekey" | "delete");
        let known = match head {
            "seal" => tail.is_empty(),
            "child" | "parent" => tail.split_once('_').is_some_and(|(id, what)| {
                id.len() == 8 && (event(what) || what.starts_with("replace"))
            }),
            _ => (event(head) && tail.is_empty()) || (numbered("replace") && event(tail)),
        };
        known.then_some(kind)
    }
}

#[cfg(test)]
mod tests;
