//! Keys: canonical text made by SQL in the application's own SQLite, and read back into typed values.
//!
//! The text is a function of the key's equality class and of nothing else, and two classes never
//! share a text. Where a column's declaration fixes what a value is, the text is plain; what it
//! does not fix carries a prefix:
//!
//! | value | text |
//! |---|---|
//! | integer, and a double that equals one | `-12` |
//! | text in a TEXT column | itself |
//! | text in another column | `t:` and itself |
//! | text with NUL, or that begins like a prefix | `x:` and its bytes in hex |
//! | blob in a STRICT BLOB column | its bytes in hex |
//! | blob elsewhere | `b:` and its bytes in hex |
//! | double with a fraction | `r:` integer part `:` 62 bits of the fraction `:` 52 more |
//! | double from 2^63 to 2^124, infinity | `R:` the same in units of 2^62, `r:inf`, `r:-inf` |
//! | NULL, other doubles | `n:`, `r:?`: such a row cannot be followed, and says so |
//!
//! Several columns are a JSON array of these. What is not UTF-8 is `u:` and the whole in hex. Hex is
//! upper case, as `hex` writes it: `lower` is what applications put functions of their own in the
//! place of. Only NOCASE needs it.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql};
use truekeep_core::Key;

use super::names::{from_hex, quote, to_hex};
use super::table::{Affinity, Table, TableColumn};

mod real;
mod writing;

pub(super) use writing::is_reserved;
use writing::{Writing, parse_array};

/// Which texts of a column count as one, by its collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Those with the same bytes.
    None,
    /// NOCASE: those that differ in ASCII case.
    Case,
    /// RTRIM: those that differ in trailing spaces.
    Trailing,
}

/// What a column's values may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Integers only.
    Integer,
    /// Text only, or text and blobs.
    Text { fold: Fold, blobs: bool },
    /// Blobs only.
    Bytes,
    /// Anything.
    Any { fold: Fold },
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// The name as SQL text.
    pub sql: String,
    pub form: Form,
    pub nullable: bool,
}

impl KeyColumn {
    /// A column as part of a key; `None` if its collation has no form.
    pub fn of(column: &TableColumn, strict: bool, alias: bool) -> Option<Self> {
        let fold = match column.collation.as_str() {
            "BINARY" => Fold::None,
            "NOCASE" => Fold::Case,
            "RTRIM" => Fold::Trailing,
            _ => return None,
        };
        let form = match column.affinity {
            _ if alias => Form::Integer,
            Affinity::Integer if strict => Form::Integer,
            Affinity::Blob if strict && column.declared.eq_ignore_ascii_case("BLOB") => Form::Bytes,
            Affinity::Text => Form::Text { fold, blobs: !strict },
            _ => Form::Any { fold },
        };
        Some(Self { sql: quote(&column.name), form, nullable: !alias && !column.not_null })
    }

    /// The table's column that this is.
    pub fn of_table<'a>(&self, table: &'a Table) -> Option<&'a TableColumn> {
        table.columns.iter().find(|column| quote(&column.name) == self.sql)
    }

    /// Whether texts that differ count as one.
    pub fn folds(&self) -> bool {
        matches!(self.form, Form::Text { fold, .. } | Form::Any { fold } if fold != Fold::None)
    }
}

/// A value of a key, as it is bound to a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    /// A double that has no text.
    Unspeakable,
}

impl From<ValueRef<'_>> for Part {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(integer) => Self::Integer(integer),
            ValueRef::Real(real) => Self::Real(real),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for Part {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null | Self::Unspeakable => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The bytes of a text or a blob, whether they are UTF-8 or not.
pub(super) fn bytes<'a>(row: &'a Row<'_>, place: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(place)?.as_bytes()?)
}

/// Text that may not be UTF-8, bound as text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored<'a>(pub &'a [u8]);

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// What identifies a row: the key of a relation, or the place of a row in a walk over a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyShape {
    pub columns: Vec<KeyColumn>,
}

impl KeyShape {
    /// The row's number, under the name that reaches it.
    pub fn row_number(name: &str) -> Self {
        let sql = name.to_owned();
        Self { columns: vec![KeyColumn { sql, form: Form::Integer, nullable: false }] }
    }

    /// The canonical text as SQL, of the columns behind `prefix` (`NEW.`, a table and a dot).
    pub fn text(&self, prefix: &str) -> String {
        let value = |column: &KeyColumn| format!("{prefix}{}", column.sql);
        match self.columns.as_slice() {
            [column] => Writing::Plain.component(column, &value(column)),
            columns => {
                let parts: Vec<String> = columns
                    .iter()
                    .map(|column| Writing::Json.component(column, &value(column)))
                    .collect();
                format!("'[' || {} || ']'", parts.join(" || ',' || "))
            }
        }
    }

    /// That two rows have one key, as SQL.
    pub fn same(&self, left: &str, right: &str) -> String {
        let same = |column: &KeyColumn| {
            let operator = if column.nullable { "IS" } else { "=" };
            format!("{left}{} {operator} {right}{}", column.sql, column.sql)
        };
        self.columns.iter().map(same).collect::<Vec<_>>().join(" AND ")
    }

    /// That two rows do not have one key, as SQL.
    pub fn differ(&self, left: &str, right: &str) -> String {
        let differ =
            |column: &KeyColumn| format!("{left}{} IS NOT {right}{}", column.sql, column.sql);
        self.columns.iter().map(differ).collect::<Vec<_>>().join(" OR ")
    }

    /// That a row has the key that is bound from the parameter `first` on.
    pub fn bound(&self, prefix: &str, first: usize) -> String {
        let bound = |(place, column): (usize, &KeyColumn)| {
            let operator = if column.nullable { "IS" } else { "=" };
            format!("{prefix}{} {operator} ?{}", column.sql, first + place)
        };
        self.columns.iter().enumerate().map(bound).collect::<Vec<_>>().join(" AND ")
    }

    /// The columns behind `prefix`, as a list.
    pub fn list(&self, prefix: &str) -> String {
        let name = |column: &KeyColumn| format!("{prefix}{}", column.sql);
        self.columns.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The values of a canonical text; `None` if it is not one.
    pub fn parse(&self, key: &Key) -> Option<Vec<Part>> {
        self.parse_stored(&stored(key))
    }

    /// The values of a text as it stands in the feed.
    pub fn parse_stored(&self, stored: &[u8]) -> Option<Vec<Part>> {
        let parts = match self.columns.as_slice() {
            [column] => vec![Writing::Plain.parse(column, stored)?],
            columns => parse_array(columns, stored)?,
        };
        (self.render(&parts) == stored).then_some(parts)
    }

    /// The text of values, as SQL makes it.
    pub fn render(&self, parts: &[Part]) -> Vec<u8> {
        match (self.columns.as_slice(), parts) {
            ([column], [part]) => Writing::Plain.render(column, part),
            (columns, parts) => {
                let all: Vec<Vec<u8>> = columns
                    .iter()
                    .zip(parts)
                    .map(|(column, part)| Writing::Json.render(column, part))
                    .collect();
                [b"[", all.join(&b","[..]).as_slice(), b"]"].concat()
            }
        }
    }

    /// Whether every row's key is spoken for by its text: integers only, and never NULL.
    pub fn is_plain(&self) -> bool {
        self.columns.iter().all(|column| column.form == Form::Integer && !column.nullable)
    }

    /// The forms as text, for the fingerprint.
    pub fn describe(&self) -> String {
        let one = |column: &KeyColumn| format!("{} {:?}", column.sql, column.form);
        self.columns.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a record with this key can be followed.
pub(super) fn speakable(key: &Key, parts: &[Part]) -> bool {
    let fine = |part: &Part| !matches!(part, Part::Null | Part::Unspeakable);
    parts.iter().all(fine) && matches!(stored(key), Cow::Borrowed(_))
}

/// The key of a text in the feed.
pub(super) fn key(stored: &[u8]) -> Key {
    match str::from_utf8(stored) {
        Ok(text) => Key::new(text),
        Err(_) => Key::new(format!("u:{}", to_hex(stored))),
    }
}

/// The text of a key in the feed.
pub(super) fn stored(key: &Key) -> Cow<'_, [u8]> {
    let bytes = key.as_str().as_bytes();
    let hidden = bytes.strip_prefix(b"u:").and_then(from_hex);
    match hidden.filter(|hidden| str::from_utf8(hidden).is_err()) {
        Some(hidden) => Cow::Owned(hidden),
        None => Cow::Borrowed(bytes),
    }
}

#[cfg(test)]
mod tests;
