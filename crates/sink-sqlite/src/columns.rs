//! Documents as the values of a mirror's columns.

use std::sync::Arc;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use truekeep_core::{Document, Value, same_json};

use crate::json::{Unsayable, write_serialized, write_value};
use crate::spec::Layout;

/// Why a document does not fit the mirror.
pub(crate) struct Unfit(pub(crate) String);

/// A column's value, as SQLite stores it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stored<'value> {
    /// These bits.
    Exactly(ValueRef<'value>),
    /// JSON, which may be written in more than one way.
    Json(&'value [u8]),
}

impl Stored<'_> {
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

/// Makes columns of documents; remembers how those of one projection map to columns.
#[derive(Debug)]
pub(crate) struct Converter<'mirror> {
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

impl<'mirror> Converter<'mirror> {
    pub(crate) fn new(layout: &'mirror Layout) -> Self {
        Self { layout, names: None, form: Form::Unfit(String::new()), text: Vec::new() }
    }

    /// Gives what each column of the document is to hold, by its place after our own columns.
    pub(crate) fn convert<E: From<Unfit>>(
        &mut self,
        document: &Document,
        mut column: impl FnMut(usize, Stored<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = self.names.as_ref().is_some_and(|names| Arc::ptr_eq(names, document.names()));
        if !known {
            self.form = form_of(self.layout, document.names());
            self.names = Some(Arc::clone(document.names()));
        }
        match &self.form {
            Form::Unfit(reason) => Err(Unfit(reason.clone()).into()),
            Form::Object(heads) => {
                self.text.clear();
                write_document(&mut self.text, self.layout, heads, document)?;
                column(0, Stored::Json(&self.text))
            }
            Form::Mapped(places) => places.iter().enumerate().try_for_each(|(at, place)| {
                let stored = as_column(&document.values()[*place])
                    .ok_or_else(|| unfit(document, *place, &NOT_A_NUMBER))?;
                column(at, stored)
            }),
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
) -> Result<(), Unfit> {
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

fn unfit(document: &Document, place: usize, what: &Unsayable) -> Unfit {
    Unfit(format!("`{}` {}", document.names()[place], what.0))
}

/// A value as SQLite stores it, exactly; SQLite would store what is not a number as NULL.
fn as_column(value: &Value) -> Option<Stored<'_>> {
    Some(Stored::Exactly(match value {
        Value::Null => ValueRef::Null,
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Real(number) if number.is_nan() => return None,
        Value::Real(number) => ValueRef::Real(*number),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::InvalidText(bytes) => ValueRef::Text(bytes),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
        Value::Json(text) => return Some(Stored::Json(text.as_bytes())),
    }))
}
