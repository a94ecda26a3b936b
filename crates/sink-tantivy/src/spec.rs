//! What an index is made of: its fields, and how documents become their values.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::analysis::Analysis;

/// Bytes of memory that a writer fills before it lays a segment on disk: a batch and its terms fit,
/// and a worker stays small.
pub const WRITER_BYTES: usize = 50 << 20;

/// The least that tantivy's writer takes.
pub const WRITER_BYTES_MIN: usize = 15_000_000;

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its fields; names differ.
    pub fields: Vec<FieldSpec>,
    /// Bytes of memory for what is not on disk yet, at least [`WRITER_BYTES_MIN`].
    pub writer_bytes: usize,
}

/// A field of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    /// The name of the document's value, and of the field.
    pub name: String,
    /// How its values are understood.
    pub kind: FieldKind,
    /// Whether it can be searched.
    pub indexed: bool,
    /// Whether its values are kept to be shown.
    pub stored: bool,
    /// Whether its values are also kept by column: sorts and ranges over them are quick.
    pub fast: bool,
    /// Whether a document without a value is refused.
    pub required: bool,
}

/// How the values of a field are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text, cut into words.
    Text(Analysis),
    /// Text as it is, of up to `TERM_BYTES_MAX` bytes.
    Keyword,
    /// A place in a hierarchy, as in `/animal/cat`. Always kept by column.
    Facet,
    /// A moment, to the microsecond.
    Date(DateUnit),
    /// A signed 64-bit integer.
    Signed,
    /// An unsigned 64-bit integer.
    Unsigned,
    /// A double.
    Real,
    /// True or false.
    Boolean,
    /// JSON of any form, its text cut into words.
    Json(Analysis),
}

/// What a number stands for as a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateUnit {
    /// Nothing: moments are text.
    Text,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
}

/// Bytes of a term: longer ones do not fit tantivy's dictionaries.
pub(crate) const TERM_BYTES_MAX: usize = tantivy::tokenizer::MAX_TOKEN_LEN;

impl IndexSpec {
    /// Whether an index of these fields can be made at all.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID`, naming the field.
    pub fn check(&self) -> Result<(), PortError> {
        let invalid = |detail: String| {
            let error = PortError::new("use an index", FailureClass::Halted, Code::CONFIG_INVALID);
            Err(error.detail(detail))
        };
        if self.fields.is_empty() {
            return invalid("the index has no fields".into());
        }
        if self.writer_bytes < WRITER_BYTES_MIN {
            return invalid(format!("a writer needs {WRITER_BYTES_MIN} bytes of memory"));
        }
        for (place, field) in self.fields.iter().enumerate() {
            if let Some(reason) = FieldSpec::unusable(&field.name) {
                return invalid(format!("{:?} is no name of a field: {reason}", field.name));
            }
            if self.fields[..place].iter().any(|other| other.name == field.name) {
                return invalid(format!("the index has field `{}` twice", field.name));
            }
            if !field.indexed && !field.stored && !field.fast {
                let name = &field.name;
                return invalid(format!("field `{name}` is neither searched, stored nor fast"));
            }
        }
        Ok(())
    }
}

impl FieldSpec {
    /// Why a field cannot be named so. Queries write names before a colon and paths with dots.
    pub fn unusable(name: &str) -> Option<&'static str> {
        if name.is_empty() {
            return Some("it is empty");
        }
        if name.starts_with(['_', '-']) {
            return Some("names that begin with `_` or `-` are taken");
        }
        let odd = |c: char| !c.is_alphanumeric() && !"_-".contains(c);
        name.contains(odd).then_some("only letters, digits, `_` and `-` can stand in a query")
    }

    /// The field but for its name, in words that are equal only for equal fields.
    pub fn told(&self) -> String {
        let kind = match self.kind {
            FieldKind::Text(analysis) => format!("text by {}", analysis.name()),
            FieldKind::Keyword => "keyword".to_owned(),
            FieldKind::Facet => "facet".to_owned(),
            FieldKind::Date(DateUnit::Text) => "date".to_owned(),
            FieldKind::Date(DateUnit::Seconds) => "date in s".to_owned(),
            FieldKind::Date(DateUnit::Milliseconds) => "date in ms".to_owned(),
            FieldKind::Date(DateUnit::Microseconds) => "date in us".to_owned(),
            FieldKind::Signed => "i64".to_owned(),
            FieldKind::Unsigned => "u64".to_owned(),
            FieldKind::Real => "f64".to_owned(),
            FieldKind::Boolean => "bool".to_owned(),
            FieldKind::Json(analysis) => format!("json by {}", analysis.name()),
        };
        let flags = [
            (self.indexed, "indexed"),
            (self.stored, "stored"),
            (self.fast, "fast"),
            (self.required, "required"),
        ];
        let flags = flags.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
        std::iter::once(kind.as_str()).chain(flags).collect::<Vec<_>>().join(", ")
    }
}
