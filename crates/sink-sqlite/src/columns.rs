//! The values of a mirror's columns, as SQLite stores them.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use truekeep_core::{Value, same_json};
use truekeep_mirror::{Cell, Unfit, Unsayable};

/// A column's value, as SQLite stores it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'value> {
    /// These bits.
    Exactly(ValueRef<'value>),
    /// JSON, which may be written in more than one way.
    Json(&'value [u8]),
}

impl<'value> Stored<'value> {
    /// What a column is to hold; SQLite would store what is not a number as NULL.
    pub(crate) fn of(name: &str, cell: Cell<'value>) -> Result<Self, Unfit> {
        const NOT_A_NUMBER: Unsayable = Unsayable("is not a number");
        let value = match cell {
            Cell::Json(text) => return Ok(Self::Json(text)),
            Cell::Value(value) => value,
        };
        Ok(Self::Exactly(match value {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) if number.is_nan() => {
                return Err(Unfit::value(name, &NOT_A_NUMBER));
            }
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::InvalidText(bytes) => ValueRef::Text(bytes),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
            Value::Json(text) => return Ok(Self::Json(text.as_bytes())),
        }))
    }

    /// Whether a column holds it.
    pub(crate) fn is(self, held: ValueRef<'_>) -> bool {
        match (self, held) {
            (Self::Exactly(ValueRef::Real(one)), ValueRef::Real(other)) => {
                one.to_bits() == other.to_bits()
            }
            (Self::Exactly(value), held) => value == held,
            (Self::Json(one), ValueRef::Text(other)) => same_json(one, other),
            (Self::Json(_), _) => false,
        }
    }
}

/// Binds without a copy of ours.
impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Exactly(value) => value,
            Self::Json(text) => ValueRef::Text(text),
        }))
    }
}
