//! Names of what capture puts into the database, and quoting.
//!
//! A feed belongs to a table's name, not to the table: what takes the name of another is another
//! table, and the signature says so.

use sha2::{Digest, Sha256};

/// The schema that everything of ours is in.
pub(super) const SCHEMA: &str = "truekeep";

/// A name as SQL text, whatever it holds.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL text, whatever it holds and however strings are read.
pub(super) fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "''");
    if text.contains('\\') { format!("E'{escaped}'") } else { format!("'{escaped}'") }
}

/// The first digits of the SHA-256 of some texts, each told apart from its neighbours.
pub(super) fn digest<'a>(texts: impl IntoIterator<Item = &'a str>, digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    let mut hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(digits);
    hex
}

/// A table's schema and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    pub schema: String,
    pub name: String,
}

impl TableName {
    /// As SQL text.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

/// How much of a table's name people read in ours; a name of Postgres's has 63 bytes.
const SHOWN: usize = 20;

/// The names of one relation's feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FeedNames {
    stem: String,
}

impl FeedNames {
    /// The names for a table.
    pub fn of(table: &TableName) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let shown: String = table.name.chars().map(plain).take(SHOWN).collect();
        let rest = digest([table.schema.as_str(), table.name.as_str()], 12);
        Self { stem: format!("{shown}_{rest}") }
    }

    /// What tells this feed from others in the tables that all feeds share.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    fn ours(&self, kind: &str) -> String {
        format!("{SCHEMA}.{}", quote(&format!("{kind}_{}", self.stem)))
    }

    /// The feed, as SQL text.
    pub fn feed(&self) -> String {
        self.ours("feed")
    }

    /// The name of an index on the feed, as SQL text.
    pub fn index(&self, kind: &str) -> String {
        quote(&format!("{kind}_{}", self.stem))
    }

    /// The sequence of its numbers, as SQL text.
    pub fn version(&self) -> String {
        self.ours("version")
    }

    /// The function that tells readers of it, as SQL text.
    pub fn look(&self) -> String {
        self.ours("look")
    }

    /// The marks of related tables, as SQL text.
    pub fn mark(&self) -> String {
        self.ours("mark")
    }

    /// What is notified of while somebody sleeps, unquoted.
    pub fn channel(&self) -> String {
        format!("{SCHEMA}_{}", self.stem)
    }

    /// The number of the lock that a sleeper holds, as SQL text.
    pub fn sleep(&self) -> String {
        let number = u64::from_str_radix(&digest([SCHEMA, self.stem.as_str()], 15), 16);
        number.unwrap_or_default().to_string()
    }

    /// A trigger, unquoted.
    pub fn trigger(&self, kind: &str) -> String {
        format!("truekeep_{kind}_{}", self.stem)
    }

    /// A pattern for LIKE that all triggers of this feed meet.
    pub fn triggers_like(&self) -> String {
        format!("truekeep\\_%\\_{}", self.stem.replace('_', "\\_"))
    }

    /// A pattern for LIKE that all functions of this feed meet.
    pub fn functions_like(&self) -> String {
        format!("%\\_{}", self.stem.replace('_', "\\_"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_exceeds_postgress_length() {
        let table = TableName { schema: "s".repeat(63), name: "ä\"".repeat(21) };
        let names = FeedNames::of(&table);
        assert!(names.trigger("12345678_truncate").len() <= 63);
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("a'b\\"), "E'a''b\\\\'");
    }
}
