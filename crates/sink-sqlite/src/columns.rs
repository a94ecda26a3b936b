//! Documents as the values of a mirror's columns.

use std::sync::Arc;

use rusqlite::Statement;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use truekeep_core::{Document, Value};

use crate::json::{Unsayable, write_serialized, write_value};
use crate::spec::Layout;

/// The columns before those of the document.
const OWN: usize = 3;

/// Why a document could not be bound.
pub(crate) enum Unbound {
    /// It does not fit the mirror: the reason.
    Unfit(String),
    /// SQLite could not take it.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Unbound {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Binds documents; remembers how those of one projection map to columns.
#[derive(Debug)]
pub(crate) struct Binder<'mirror> {
    layout: &'mirror Layout,
    /// The names that `form` was made for.
    names: Option<Arc<[Box<str>]>>,
    form: Form,
    text: Vec<u8>,
}

/// How documents of some names become columns.
#[derive(Debug)]
enum Form {
    /// They do not, for this reason.
    Unfit(String),
    /// As an object: what stands before each value.
    Object(Vec<Vec<u8>>),
    /// For each column, which value.
    Mapped(Vec<usize>),
}

impl<'mirror> Binder<'mirror> {
    pub(crate) fn new(layout: &'mirror Layout) -> Self {
        Self { layout, names: None, form: Form::Unfit(String::new()), text: Vec::new() }
    }

    /// Binds a document to the places after our own columns.
    pub(crate) fn bind(
        &mut self,
        statement: &mut Statement<'_>,
        document: &Document,
    ) -> Result<(), Unbound> {
        let known = self.names.as_ref().is_some_and(|names| Arc::ptr_eq(names, document.names()));
        if !known {
            self.form = form_of(self.layout, document.names());
            self.names = Some(Arc::clone(document.names()));
        }
        match &self.form {
            Form::Unfit(reason) => Err(Unbound::Unfit(reason.clone())),
            Form::Object(heads) => {
                self.text.clear();
                write_document(&mut self.text, self.layout, heads, document)?;
                let text = Bound(ValueRef::Text(&self.text));
                Ok(statement.raw_bind_parameter(OWN + 1, text)?)
            }
            Form::Mapped(places) => {
                for (column, place) in places.iter().enumerate() {
                    let bound = as_column(&document.values()[*place])
                        .ok_or_else(|| unfit(document, *place, &NOT_A_NUMBER))?;
                    statement.raw_bind_parameter(OWN + 1 + column, bound)?;
                }
                Ok(())
            }
        }
    }
}

const NOT_A_NUMBER: Unsayable = Unsayable("is not a number");

fn form_of(layout: &Layout, names: &[Box<str>]) -> Form {
    match layout {
        Layout::Json { .. } => Form::Object(heads_of(names)),
        Layout::Columns(columns) => {
            let is_mapped = |name: &str| columns.iter().any(|column| column.name == name);
            if let Some(name) = names.iter().find(|name| !is_mapped(name)) {
                return Form::Unfit(format!("the mirror has no column `{name}`"));
            }
            let mut places = Vec::with_capacity(columns.len());
            for column in columns {
                match names.iter().position(|name| **name == *column.name) {
                    Some(place) => places.push(place),
                    None => {
                        let reason = format!("the document has no value `{}`", column.name);
                        return Form::Unfit(reason);
                    }
                }
            }
            Form::Mapped(places)
        }
    }
}

/// `{"name":` for the first value and `,"name":` for the others.
fn heads_of(names: &[Box<str>]) -> Vec<Vec<u8>> {
    let head = |place: usize| {
        let mut text = vec![if place == 0 { b'{' } else { b',' }];
        write_serialized(&mut text, &names[place]);
        text.push(b':');
        text
    };
    (0..names.len()).map(head).collect()
}

fn write_document(
    text: &mut Vec<u8>,
    layout: &Layout,
    heads: &[Vec<u8>],
    document: &Document,
) -> Result<(), Unbound> {
    if let Some(json) = whole(layout, document) {
        text.extend_from_slice(json.as_bytes());
        return Ok(());
    }
    for (place, (head, value)) in heads.iter().zip(document.values()).enumerate() {
        text.extend_from_slice(head);
        write_value(text, value).map_err(|what| unfit(document, place, &what))?;
    }
    text.extend_from_slice(if heads.is_empty() { b"{}" } else { b"}" });
    Ok(())
}

/// The JSON that is the whole document, if it is such a one.
fn whole<'document>(layout: &Layout, document: &'document Document) -> Option<&'document str> {
    match (layout, document.values(), &document.names()[..]) {
        (Layout::Json { column }, [Value::Json(json)], [name]) if **name == **column => Some(json),
        _ => None,
    }
}

fn unfit(document: &Document, place: usize, what: &Unsayable) -> Unbound {
    Unbound::Unfit(format!("`{}` {}", document.names()[place], what.0))
}

/// A value as SQLite stores it, exactly; SQLite would store what is not a number as NULL.
fn as_column(value: &Value) -> Option<Bound<'_>> {
    Some(Bound(match value {
        Value::Null => ValueRef::Null,
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Real(number) if number.is_nan() => return None,
        Value::Real(number) => ValueRef::Real(*number),
        Value::Text(text) | Value::Json(text) => ValueRef::Text(text.as_bytes()),
        Value::InvalidText(bytes) => ValueRef::Text(bytes),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
    }))
}

/// A value to bind without a copy of ours.
struct Bound<'value>(ValueRef<'value>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}
