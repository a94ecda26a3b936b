//! The text of one column's value: as SQL makes it, as we make it, and the way back.

use super::{Fold, Form, KeyColumn, Part, real};
use crate::source::names::{from_hex, to_hex};

/// How the value of one column is written: alone, or in a JSON array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
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

    /// The text as SQL.
    pub fn component(self, column: &KeyColumn, value: &str) -> String {
        let hex = format!("hex({value})");
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
        format!("CASE WHEN {hidden} THEN 'x:' || hex({folded}) ELSE {shown} END")
    }

    /// The value of a text.
    pub fn parse(self, column: &KeyColumn, text: &[u8]) -> Option<Part> {
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

    /// The text of a value.
    pub fn render(self, column: &KeyColumn, part: &Part) -> Vec<u8> {
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
        let json = self == Self::Json;
        if folded.contains(&0)
            || (prefix.is_empty() && is_reserved(&folded))
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

/// Whether a text that would be plain is not: it looks like a prefix, or holds NUL.
pub(in crate::source) fn is_reserved(text: &[u8]) -> bool {
    matches!(text, [b'b' | b'n' | b'u' | b'x', b':', ..]) || text.contains(&0)
}

fn integer(text: &[u8]) -> Option<Part> {
    str::from_utf8(text).ok()?.parse().ok().map(Part::Integer)
}

/// The values of a JSON array as SQL writes it: numbers, null, and strings in which only quotes
/// and backslashes are escaped.
pub(super) fn parse_array(columns: &[KeyColumn], text: &[u8]) -> Option<Vec<Part>> {
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
