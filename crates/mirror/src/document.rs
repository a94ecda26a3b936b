//! Documents as the values of a mirror's columns.

use std::sync::Arc;

use truekeep_core::{Document, Value};

use crate::json::{Unsayable, write_serialized, write_value};

/// Why a document does not fit the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit(pub String);

impl Unfit {
    /// That a value of a document is not what a column takes.
    pub fn value(name: &str, what: &Unsayable) -> Self {
        Self(format!("`{name}` {}", what.0))
    }
}

/// The columns of a mirror that documents fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape<'mirror> {
    /// The whole document as JSON text in the column of this name.
    ///
    /// A document whose only value is JSON and has the column's name is that JSON; every other
    /// document becomes an object of its values.
    Json(&'mirror str),
    /// A column for each value, by name.
    Columns(Vec<&'mirror str>),
}

/// What a column is to hold.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'document> {
    /// A value of the document.
    Value(&'document Value),
    /// The document.
    Json(&'document [u8]),
}

/// Makes columns of documents; remembers how those of one projection map to columns.
#[derive(Debug)]
pub struct Converter<'mirror> {
    shape: Shape<'mirror>,
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
    /// Makes columns of this shape.
    pub fn new(shape: Shape<'mirror>) -> Self {
        Self { shape, names: None, form: Form::Unfit(String::new()), text: Vec::new() }
    }

    /// Gives what each column of the document is to hold, by the column's place, with the name of
    /// the value.
    ///
    /// # Errors
    /// Why the document does not fit, or what `column` says.
    pub fn convert<E: From<Unfit>>(
        &mut self,
        document: &Document,
        mut column: impl FnMut(usize, &str, Cell<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = self.names.as_ref().is_some_and(|names| Arc::ptr_eq(names, document.names()));
        if !known {
            self.form = form_of(&self.shape, document.names());
            self.names = Some(Arc::clone(document.names()));
        }
        match &self.form {
            Form::Unfit(reason) => Err(Unfit(reason.clone()).into()),
            Form::Object(heads) => {
                self.text.clear();
                write_document(&mut self.text, &self.shape, heads, document)?;
                column(0, "the document", Cell::Json(&self.text))
            }
            Form::Mapped(places) => places.iter().enumerate().try_for_each(|(at, place)| {
                column(at, &document.names()[*place], Cell::Value(&document.values()[*place]))
            }),
        }
    }
}

fn form_of(shape: &Shape<'_>, names: &[Box<str>]) -> Form {
    match shape {
        Shape::Json(_) => Form::Object(heads_of(names)),
        Shape::Columns(columns) => {
            if let Some(name) = names.iter().find(|name| !columns.contains(&&***name)) {
                return Form::Unfit(format!("the mirror has no column `{name}`"));
            }
            let mut places = Vec::with_capacity(columns.len());
            for column in columns {
                match names.iter().position(|name| **name == **column) {
                    Some(place) => places.push(place),
                    None => {
                        return Form::Unfit(format!("the document has no value `{column}`"));
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
    shape: &Shape<'_>,
    heads: &[Vec<u8>],
    document: &Document,
) -> Result<(), Unfit> {
    if let Some(json) = whole(shape, document) {
        text.extend_from_slice(json.as_bytes());
        return Ok(());
    }
    for (place, (head, value)) in heads.iter().zip(document.values()).enumerate() {
        text.extend_from_slice(head);
        write_value(text, value).map_err(|what| Unfit::value(&document.names()[place], &what))?;
    }
    text.extend_from_slice(if heads.is_empty() { b"{}" } else { b"}" });
    Ok(())
}

/// The JSON that is the whole document, if it is such a one.
fn whole<'document>(shape: &Shape<'_>, document: &'document Document) -> Option<&'document str> {
    match (shape, document.values(), &document.names()[..]) {
        (Shape::Json(column), [Value::Json(json)], [name]) if **name == **column => Some(json),
        _ => None,
    }
}
