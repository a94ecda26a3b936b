//! What a search finds.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Number, Value as Json};
use tantivy::TantivyDocument;
use tantivy::schema::document::OwnedValue;
use tantivy::schema::{Document as _, Schema};
use tantivy::time::format_description::well_known::Rfc3339;
use truekeep_core::Key;

use crate::schema::KEY;

/// A record that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its key.
    pub key: Key,
    /// How well it fits; only the order of one search's scores has a meaning.
    pub score: f32,
    /// Its stored fields, by name; one with several values is a list.
    pub fields: Map<String, Json>,
    /// Where the words of the query stand, for each text field that has some.
    pub snippets: Vec<Snippet>,
}

/// A piece of a field's text with the words that were looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The field.
    pub field: String,
    /// The piece.
    pub text: String,
    /// The words, as ranges of the text's bytes, rising, none in another.
    pub marked: Vec<Range<usize>>,
}

/// The key and the stored fields of a document; none if it carries no key.
pub(crate) fn shown(
    document: &TantivyDocument,
    schema: &Schema,
) -> Option<(Key, Map<String, Json>)> {
    let mut key = None;
    let mut fields = Map::new();
    for (field, value) in document.iter_fields_and_values() {
        let name = schema.get_field_name(field);
        let value = OwnedValue::from(value);
        match (name, value) {
            (KEY, OwnedValue::Str(text)) => key = Some(Key::new(text)),
            (name, _) if name.starts_with('_') => {}
            (name, value) => add(&mut fields, name, json(value)),
        }
    }
    Some((key?, fields))
}

fn add(fields: &mut Map<String, Json>, name: &str, value: Json) {
    match fields.get_mut(name) {
        None => {
            fields.insert(name.to_owned(), value);
        }
        Some(Json::Array(values)) => values.push(value),
        Some(single) => *single = Json::Array(vec![single.take(), value]),
    }
}

fn json(value: OwnedValue) -> Json {
    match value {
        OwnedValue::Str(text) => Json::String(text),
        OwnedValue::U64(number) => Json::from(number),
        OwnedValue::I64(number) => Json::from(number),
        // JSON has no infinities; SQLite, Python and JavaScript read these as such.
        OwnedValue::F64(number) => match Number::from_f64(number) {
            Some(number) => Json::Number(number),
            None if number < 0.0 => Json::String("-Infinity".into()),
            None => Json::String("Infinity".into()),
        },
        OwnedValue::Bool(truth) => Json::Bool(truth),
        OwnedValue::Date(moment) => {
            let text = moment.into_utc().format(&Rfc3339);
            Json::String(text.unwrap_or_else(|_| format!("{moment:?}")))
        }
        OwnedValue::Facet(facet) => Json::String(facet.to_path_string()),
        OwnedValue::Array(items) => Json::Array(items.into_iter().map(json).collect()),
        OwnedValue::Object(entries) => {
            Json::Object(entries.into_iter().map(|(name, value)| (name, json(value))).collect())
        }
        // No field of ours holds these.
        _ => Json::Null,
    }
}
