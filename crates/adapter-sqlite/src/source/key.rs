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
//! Several columns are a JSON array of these. What is not UTF-8 is `u:` and the whole in hex.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql};
use truekeep_core::Key;

use super::names::{from_hex, quote, to_hex};
use super::table::{Affinity, TableColumn};

mod real;

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

/// How the value of one column is written: alone, or in a JSON array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    Plain,
    Json,
}

impl Writing {
    fn string(self, sql: String) -> String {
        if self == Self::Json { format!("'\"' || {sql} || '\"'") } else { sql }
    }

    fn null(self) -> &'static str {
        if self == Self::Json { "'null'" } else { "'n:'" }
    }

    fn component(self, column: &KeyColumn, value: &str) -> String {
        let hex = format!("lower(hex({value}))");
        let exact = match column.form {
            Form::Integer => format!("CAST({value} AS TEXT)"),
            Form::Bytes => self.string(hex.clone()),
            Form::Text { fold, blobs: false } => self.string(self.text(fold, "", value)),
            Form::Text { fold, blobs: true } => {
                return format!(
                    "CASE typeof({value}) WHEN 'text' THEN {} WHEN 'blob' THEN {} ELSE {} END",
                    self.string(self.text(fold, "", value)),
                    self.string(format!("'b:' || {hex}")),
                    self.null(),
                );
            }
            Form::Any { fold } => {
                return format!(
                    "CASE typeof({value}) WHEN 'integer' THEN CAST({value} AS TEXT) \
                     WHEN 'text' THEN {} WHEN 'blob' THEN {} WHEN 'real' THEN {} ELSE {} END",
                    self.string(self.text(fold, "t:", value)),
                    self.string(format!("'b:' || {hex}")),
                    real::sql(value, &|sql| self.string(sql)),
                    self.null(),
                );
            }
        };
        if column.nullable {
            format!("CASE WHEN {value} IS NULL THEN {} ELSE {exact} END", self.null())
        } else {
            exact
        }
    }

    /// A text that is not NULL. A NUL ends what GLOB sees, so it is looked for first.
    fn text(self, fold: Fold, prefix: &str, value: &str) -> String {
        let folded = match fold {
            Fold::None => value.to_owned(),
            Fold::Case => format!("lower({value})"),
            Fold::Trailing => format!("rtrim({value})"),
        };
        let mut hidden = format!("instr({value}, char(0)) > 0");
        if prefix.is_empty() {
            hidden.push_str(&format!(" OR {folded} GLOB '[bnux]:*'"));
        }
        let mut shown = folded.clone();
        if self == Self::Json {
            hidden
                .push_str(&format!(" OR {value} GLOB '*[' || char(1) || '-' || char(31) || ']*'"));
            shown = format!("replace(replace({folded}, '\\', '\\\\'), '\"', '\\\"')");
        }
        if !prefix.is_empty() {
            shown = format!("'{prefix}' || {shown}");
        }
        format!("CASE WHEN {hidden} THEN 'x:' || lower(hex({folded})) ELSE {shown} END")
    }

    fn parse(self, column: &KeyColumn, text: &[u8]) -> Option<Part> {
        let prefixed = |prefix: &str| text.strip_prefix(prefix.as_bytes());
        if self == Self::Plain && text == b"n:" {
            return Some(Part::Null);
        }
        match column.form {
            Form::Integer => integer(text),
            Form::Bytes => from_hex(text).map(Part::Blob),
            Form::Text { blobs, .. } => Some(if let Some(hex) = prefixed("x:") {
                Part::Text(from_hex(hex)?)
            } else if let Some(hex) = prefixed("b:").filter(|_| blobs) {
                Part::Blob(from_hex(hex)?)
            } else {
                Part::Text(text.to_vec())
            }),
            Form::Any { .. } => {
                if let Some(text) = prefixed("t:") {
                    Some(Part::Text(text.to_vec()))
                } else if let Some(hex) = prefixed("x:") {
                    from_hex(hex).map(Part::Text)
                } else if let Some(hex) = prefixed("b:") {
                    from_hex(hex).map(Part::Blob)
                } else if text == b"r:?" {
                    Some(Part::Unspeakable)
                } else {
                    integer(text).or_else(|| real::parse(text).map(Part::Real))
                }
            }
        }
    }

    fn render(self, column: &KeyColumn, part: &Part) -> Vec<u8> {
        let (bytes, quoted) = match (part, column.form) {
            (Part::Null, _) if self == Self::Json => (b"null".to_vec(), false),
            (Part::Null, _) => (b"n:".to_vec(), true),
            (Part::Integer(integer), _) => (integer.to_string().into_bytes(), false),
            (Part::Real(real), _) => match real::text(*real) {
                Ok(integer) => (integer.to_string().into_bytes(), false),
                Err(text) => (text.into_bytes(), true),
            },
            (Part::Unspeakable, _) => (b"r:?".to_vec(), true),
            (Part::Blob(bytes), Form::Bytes) => (to_hex(bytes).into_bytes(), true),
            (Part::Blob(bytes), _) => (format!("b:{}", to_hex(bytes)).into_bytes(), true),
            (Part::Text(text), Form::Any { fold }) => (self.render_text(fold, b"t:", text), true),
            (Part::Text(text), Form::Text { fold, .. }) => {
                (self.render_text(fold, b"", text), true)
            }
            (Part::Text(text), Form::Integer | Form::Bytes) => (text.clone(), true),
        };
        if quoted && self == Self::Json { [b"\"", &bytes[..], b"\""].concat() } else { bytes }
    }

    fn render_text(self, fold: Fold, prefix: &[u8], text: &[u8]) -> Vec<u8> {
        let folded = match fold {
            Fold::None => text.to_vec(),
            Fold::Case => text.to_ascii_lowercase(),
            Fold::Trailing => {
                let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
                text[..end].to_vec()
            }
        };
        let reserved = matches!(folded.as_slice(), [b'b' | b'n' | b'u' | b'x', b':', ..]);
        let json = self == Self::Json;
        if folded.contains(&0)
            || (prefix.is_empty() && reserved)
            || (json && folded.iter().any(|byte| *byte < 32))
        {
            return format!("x:{}", to_hex(&folded)).into_bytes();
        }
        let mut shown = prefix.to_vec();
        for byte in folded {
            if json && matches!(byte, b'"' | b'\\') {
                shown.push(b'\\');
            }
            shown.push(byte);
        }
        shown
    }
}

fn integer(text: &[u8]) -> Option<Part> {
    str::from_utf8(text).ok()?.parse().ok().map(Part::Integer)
}

/// The values of a JSON array as SQL writes it: numbers, null, and strings in which only quotes
/// and backslashes are escaped.
fn parse_array(columns: &[KeyColumn], text: &[u8]) -> Option<Vec<Part>> {
    let mut rest = text.strip_prefix(b"[")?;
    let mut parts = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix(b",")?;
        }
        let part;
        (part, rest) = parse_element(column, rest)?;
        parts.push(part);
    }
    (rest == b"]").then_some(parts)
}

fn parse_element<'a>(column: &KeyColumn, text: &'a [u8]) -> Option<(Part, &'a [u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| matches!(byte, b',' | b']'))?;
        let (bare, rest) = text.split_at(end);
        return Some((if bare == b"null" { Part::Null } else { integer(bare)? }, rest));
    };
    let mut string = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((Writing::Json.parse(column, &string)?, after)),
            [b'\\', byte, after @ ..] => {
                string.push(*byte);
                rest = after;
            }
            [byte, after @ ..] => {
                string.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests;
