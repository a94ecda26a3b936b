//! The types of a mirror's columns: what a source's column becomes, and which values a column takes.
//!
//! A value is written as text that the type reads as this value and no other, or it is refused:
//! nothing is rounded, and two values that differ never become one.

use truekeep_core::same_json;

/// How values are written, read back and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Integers from this to this.
    Integer(i64, i64),
    /// Doubles that are floats of 32 bits by their shortest text.
    Single,
    /// Doubles.
    Double,
    /// Numbers of JSON with all of their digits; NaN and infinities by their names.
    Number,
    /// `true` and `false`.
    Boolean,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Any value, as JSON says it.
    Json,
    /// Moments in ISO 8601, and `infinity`.
    Time,
    /// What Postgres itself wrote of a type, or of one that is not known here.
    Written,
}

/// A type of a mirror's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType {
    name: &'static str,
    form: Form,
}

const fn known(name: &'static str, form: Form) -> ColumnType {
    ColumnType { name, form }
}

const TEXT: ColumnType = known("text", Form::Text);
const BIGINT: ColumnType = known("bigint", Form::Integer(i64::MIN, i64::MAX));
const DOUBLE: ColumnType = known("double precision", Form::Double);
const BYTES: ColumnType = known("bytea", Form::Bytes);

/// The types of Postgres that a mirror has as well, by the name that Postgres tells.
const KNOWN: &[ColumnType] = &[
    known("smallint", Form::Integer(i16::MIN as i64, i16::MAX as i64)),
    known("integer", Form::Integer(i32::MIN as i64, i32::MAX as i64)),
    BIGINT,
    known("oid", Form::Integer(0, u32::MAX as i64)),
    known("real", Form::Single),
    DOUBLE,
    known("numeric", Form::Number),
    known("boolean", Form::Boolean),
    TEXT,
    BYTES,
    ColumnType::JSON,
    known("jsonb", Form::Json),
    known("date", Form::Time),
    known("timestamp without time zone", Form::Time),
    known("timestamp with time zone", Form::Time),
    known("time without time zone", Form::Written),
    known("time with time zone", Form::Written),
    known("interval", Form::Written),
    known("uuid", Form::Written),
    known("inet", Form::Written),
    known("cidr", Form::Written),
    known("macaddr", Form::Written),
    known("macaddr8", Form::Written),
    known("int4range", Form::Written),
    known("int8range", Form::Written),
    known("numrange", Form::Written),
    known("tsrange", Form::Written),
    known("tstzrange", Form::Written),
    known("daterange", Form::Written),
];

/// Texts of any length, whatever they are called.
const TEXTS: &[&str] = &["character varying", "character", "name", "citext"];

impl ColumnType {
    /// JSON text as it is written.
    pub(crate) const JSON: Self = known("json", Form::Json);

    /// The type for a column that Postgres declares so, by the name without a length. Arrays become
    /// JSON; what is not known here (enums, domains, types of extensions) is text as Postgres writes
    /// it: one column's values are all written in the same way, so no two become one.
    pub fn of_postgres(declared: &str) -> Self {
        if let Some(known) = KNOWN.iter().find(|known| known.name == declared) {
            return *known;
        }
        if declared.ends_with("[]") {
            return Self::JSON;
        }
        if TEXTS.contains(&declared) { TEXT } else { known("text", Form::Written) }
    }

    /// The type for a column that SQLite declares so, by the affinity that SQLite gives it. A column
    /// that may hold anything is JSON, which tells numbers from texts.
    pub fn of_sqlite(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
        if has(&["INT"]) {
            BIGINT
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            TEXT
        } else if has(&["BLOB"]) {
            BYTES
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            DOUBLE
        } else {
            Self::JSON
        }
    }

    /// As Postgres tells it.
    pub fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn form(self) -> Form {
        self.form
    }

    /// SQL that reads a column back, as text.
    pub(crate) fn read(self, column: &str) -> String {
        match self.form {
            Form::Time => format!("to_json({column}) #>> '{{}}'"),
            _ => format!("({column})::text"),
        }
    }

    /// Whether what a column holds is what was written.
    pub(crate) fn is_same(self, written: Option<&str>, held: Option<&str>) -> bool {
        let (written, held) = match (written, held) {
            (Some(written), Some(held)) => (written, held),
            (written, held) => return written == held,
        };
        match self.form {
            Form::Single => parsed::<f32, _>(written, f32::to_bits) == parsed(held, f32::to_bits),
            Form::Double => parsed::<f64, _>(written, f64::to_bits) == parsed(held, f64::to_bits),
            Form::Json => same_json(written.as_bytes(), held.as_bytes()),
            _ => written == held,
        }
    }
}

/// The bits of a number; all that are none are one.
fn parsed<F: std::str::FromStr, B>(text: &str, bits: fn(F) -> B) -> Option<B> {
    text.parse().ok().map(bits)
}

#[cfg(test)]
mod tests;
