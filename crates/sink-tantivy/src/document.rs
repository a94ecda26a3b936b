//! Documents as the values of an index's fields.
//!
//! A value becomes exactly what the field holds, or the record is refused with the field's name:
//! nothing is rounded, cut or guessed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Number, Value as Json};
use tantivy::TantivyDocument;
use tantivy::schema::document::OwnedValue;
use tantivy::schema::{Facet, Field};
use truekeep_core::{Document, Key, Rank, Value};

use crate::date;
use crate::digest::Digester;
use crate::schema::Layout;
use crate::spec::{DateUnit, FieldKind, FieldSpec, TERM_BYTES_MAX};

/// Integers up to this are doubles exactly.
const EXACT_MAX: u64 = 1 << 53;

/// Makes documents; remembers where the fields stand in those of one projection.
#[derive(Debug)]
pub(crate) struct Maker<'l> {
    layout: &'l Layout,
    /// The names that `form` was made for.
    names: Option<Arc<[Box<str>]>>,
    form: Form,
}

/// Where the values of the fields stand.
#[derive(Debug)]
enum Form {
    /// Not all of them do, for this reason.
    Unfit(String),
    /// For each field, at which place.
    Places(Vec<usize>),
    /// In the JSON object that is the document's only value.
    Object,
}

/// Why a document does not fit: the text names the field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit(pub String);

impl<'l> Maker<'l> {
    pub(crate) fn new(layout: &'l Layout) -> Self {
        Self { layout, names: None, form: Form::Object }
    }

    /// A live record.
    pub(crate) fn live(
        &mut self,
        key: &Key,
        rank: Rank,
        given: &Document,
    ) -> Result<TantivyDocument, Unfit> {
        let layout = self.layout;
        fits(key)?;
        let mut made = TantivyDocument::default();
        made.add_text(layout.key, key.as_str());
        add_rank(layout, &mut made, rank);
        let mut filling = Filling { document: made, digester: Digester::default() };
        self.fill(&mut filling, given)?;
        let Filling { mut document, digester } = filling;
        document.add_bytes(layout.digest, &digester.digest());
        Ok(document)
    }

    /// A tombstone.
    pub(crate) fn buried(&self, key: &Key, rank: Rank) -> Result<TantivyDocument, Unfit> {
        fits(key)?;
        let mut made = TantivyDocument::default();
        made.add_text(self.layout.buried, key.as_str());
        made.add_bool(self.layout.tombstone, true);
        add_rank(self.layout, &mut made, rank);
        Ok(made)
    }

    fn fill(&mut self, filling: &mut Filling, given: &Document) -> Result<(), Unfit> {
        let known = self.names.as_ref().is_some_and(|names| Arc::ptr_eq(names, given.names()));
        if !known {
            self.form = form_of(&self.layout.fields, given);
            self.names = Some(Arc::clone(given.names()));
        }
        match &self.form {
            Form::Unfit(reason) => Err(Unfit(reason.clone())),
            Form::Places(places) => {
                for ((spec, field), place) in self.layout.fields.iter().zip(places) {
                    let filled = filling.value(spec, *field, &given.values()[*place]);
                    filled.map_err(|what| unfit(spec, &what))?;
                }
                Ok(())
            }
            Form::Object => {
                let [Value::Json(text)] = given.values() else {
                    return Err(Unfit("the document is no JSON object".into()));
                };
                let object: BTreeMap<String, Json> = serde_json::from_str(text)
                    .map_err(|error| Unfit(format!("the document is no JSON object: {error}")))?;
                for (spec, field) in &self.layout.fields {
                    let filled = match object.get(&spec.name) {
                        Some(value) => filling.json(spec, *field, value),
                        None => missing(spec),
                    };
                    filled.map_err(|what| unfit(spec, &what))?;
                }
                Ok(())
            }
        }
    }
}

fn form_of(fields: &[(FieldSpec, Field)], given: &Document) -> Form {
    let place = |spec: &FieldSpec| given.names().iter().position(|name| **name == *spec.name);
    if fields.iter().all(|(spec, _)| place(spec).is_none())
        && matches!(given.values(), [Value::Json(_)])
    {
        return Form::Object;
    }
    let mut places = Vec::with_capacity(fields.len());
    for (spec, _) in fields {
        match place(spec) {
            Some(place) => places.push(place),
            None => return Form::Unfit(format!("the document has no value `{}`", spec.name)),
        }
    }
    Form::Places(places)
}

fn fits(key: &Key) -> Result<(), Unfit> {
    let bytes = key.as_str().len();
    if bytes <= TERM_BYTES_MAX {
        return Ok(());
    }
    Err(Unfit(format!("the key has {bytes} bytes, and an index holds {TERM_BYTES_MAX}")))
}

fn add_rank(layout: &Layout, document: &mut TantivyDocument, rank: Rank) {
    document.add_u64(layout.rules, rank.rules.get());
    document.add_u64(layout.version, rank.version.get());
}

fn unfit(spec: &FieldSpec, what: &str) -> Unfit {
    Unfit(format!("`{}` {what}", spec.name))
}

/// One value of a field.
#[derive(Debug, Clone, Copy)]
enum Scalar<'v> {
    Boolean(bool),
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    Text(&'v str),
}

impl Scalar<'_> {
    fn told(self) -> &'static str {
        match self {
            Self::Boolean(_) => "a boolean",
            Self::Signed(_) | Self::Unsigned(_) => "an integer",
            Self::Real(_) => "a real number",
            Self::Text(_) => "text",
        }
    }
}

/// A document under way. Reasons complete "`name` ...".
struct Filling {
    document: TantivyDocument,
    digester: Digester,
}

impl Filling {
    fn value(&mut self, spec: &FieldSpec, field: Field, value: &Value) -> Result<(), String> {
        match value {
            Value::Null => self.null(spec),
            Value::Json(text) => {
                let parsed: Json = serde_json::from_str(text)
                    .map_err(|error| format!("holds JSON that cannot be read: {error}"))?;
                self.json(spec, field, &parsed)
            }
            Value::Integer(number) => self.scalar(spec, field, Scalar::Signed(*number)),
            Value::Real(number) => self.scalar(spec, field, Scalar::Real(*number)),
            Value::Text(text) => self.scalar(spec, field, Scalar::Text(text)),
            Value::InvalidText(_) => Err("holds text that is not UTF-8".into()),
            Value::Blob(_) => Err("holds a blob, and no kind of field takes one".into()),
        }
    }

    /// NULL leaves nothing in a field, and is another value than one that is not there.
    fn null(&mut self, spec: &FieldSpec) -> Result<(), String> {
        self.digester.add(&spec.name, b'n', &[]);
        missing(spec)
    }

    fn json(&mut self, spec: &FieldSpec, field: Field, value: &Json) -> Result<(), String> {
        if *value == Json::Null {
            return self.null(spec);
        }
        if let FieldKind::Json(_) = spec.kind {
            self.digester.add(&spec.name, b'j', value.to_string().as_bytes());
            self.document.add_field_value(field, &owned(value));
            return Ok(());
        }
        let Json::Array(items) = value else {
            return self.scalar(spec, field, scalar_of(value)?);
        };
        let mut filled = false;
        for item in items.iter().filter(|item| **item != Json::Null) {
            self.scalar(spec, field, scalar_of(item)?)?;
            filled = true;
        }
        if filled { Ok(()) } else { missing(spec) }
    }

    fn scalar(&mut self, spec: &FieldSpec, field: Field, scalar: Scalar<'_>) -> Result<(), String> {
        let (name, document) = (&spec.name, &mut self.document);
        let digester = &mut self.digester;
        match spec.kind {
            FieldKind::Text(_) => {
                let text = as_text(scalar)?;
                digester.add(name, b't', text.as_bytes());
                document.add_text(field, text);
            }
            FieldKind::Keyword => {
                let text = as_text(scalar)?;
                short(text.len())?;
                digester.add(name, b't', text.as_bytes());
                document.add_text(field, text);
            }
            FieldKind::Facet => {
                let facet = as_facet(as_text(scalar)?)?;
                digester.add(name, b'p', facet.encoded_str().as_bytes());
                document.add_facet(field, facet);
            }
            FieldKind::Date(unit) => {
                let moment = as_moment(scalar, unit)?;
                digester.add(name, b'd', &moment.into_timestamp_nanos().to_le_bytes());
                document.add_date(field, moment);
            }
            FieldKind::Signed => {
                let number = as_signed(scalar)?;
                digester.add(name, b'i', &number.to_le_bytes());
                document.add_i64(field, number);
            }
            FieldKind::Unsigned => {
                let number = as_unsigned(scalar)?;
                digester.add(name, b'u', &number.to_le_bytes());
                document.add_u64(field, number);
            }
            FieldKind::Real => {
                let number = as_real(scalar)?;
                digester.add(name, b'f', &number.to_bits().to_le_bytes());
                document.add_f64(field, number);
            }
            FieldKind::Boolean => {
                let truth = as_boolean(scalar)?;
                digester.add(name, b'b', &[u8::from(truth)]);
                document.add_bool(field, truth);
            }
            FieldKind::Json(_) => return Err(format!("is {}, not JSON", scalar.told())),
        }
        Ok(())
    }
}

fn missing(spec: &FieldSpec) -> Result<(), String> {
    if spec.required { Err("is missing, and required".into()) } else { Ok(()) }
}

fn scalar_of(value: &Json) -> Result<Scalar<'_>, String> {
    match value {
        Json::Bool(truth) => Ok(Scalar::Boolean(*truth)),
        Json::Number(number) => Ok(number_of(number)),
        Json::String(text) => Ok(Scalar::Text(text)),
        Json::Null => Err("holds null where a value belongs".into()),
        Json::Array(_) => Err("holds a list in a list".into()),
        Json::Object(_) => Err("holds a JSON object".into()),
    }
}

fn number_of<'v>(number: &Number) -> Scalar<'v> {
    if let Some(number) = number.as_i64() {
        Scalar::Signed(number)
    } else if let Some(number) = number.as_u64() {
        Scalar::Unsigned(number)
    } else {
        Scalar::Real(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// JSON as tantivy holds it. Text stays text, also where it looks like a date.
fn owned(value: &Json) -> OwnedValue {
    match value {
        Json::Null => OwnedValue::Null,
        Json::Bool(truth) => OwnedValue::Bool(*truth),
        Json::Number(number) => match number_of(number) {
            Scalar::Signed(number) => OwnedValue::I64(number),
            Scalar::Unsigned(number) => OwnedValue::U64(number),
            Scalar::Real(number) => OwnedValue::F64(number),
            Scalar::Boolean(_) | Scalar::Text(_) => OwnedValue::Null,
        },
        Json::String(text) => OwnedValue::Str(text.clone()),
        Json::Array(items) => OwnedValue::Array(items.iter().map(owned).collect()),
        Json::Object(entries) => OwnedValue::Object(
            entries.iter().map(|(name, value)| (name.clone(), owned(value))).collect(),
        ),
    }
}

fn not(scalar: Scalar<'_>, wanted: &str) -> String {
    format!("is {}, not {wanted}", scalar.told())
}

fn as_text(scalar: Scalar<'_>) -> Result<&str, String> {
    match scalar {
        Scalar::Text(text) => Ok(text),
        other => Err(not(other, "text")),
    }
}

fn short(bytes: usize) -> Result<(), String> {
    if bytes <= TERM_BYTES_MAX {
        return Ok(());
    }
    Err(format!("has {bytes} bytes, and a term holds {TERM_BYTES_MAX}"))
}

fn as_facet(text: &str) -> Result<Facet, String> {
    if text.contains('\0') {
        return Err("holds a NUL, which separates the steps of a facet".into());
    }
    short(text.len())?;
    Facet::from_text(text).map_err(|_| "is no facet: it begins with `/`".to_owned())
}

fn as_moment(scalar: Scalar<'_>, unit: DateUnit) -> Result<tantivy::DateTime, String> {
    let moment = match scalar {
        Scalar::Text(text) => date::parse(text),
        Scalar::Signed(number) => date::from_number(number, unit),
        other => return Err(not(other, "a date")),
    };
    moment.map_err(str::to_owned)
}

fn as_signed(scalar: Scalar<'_>) -> Result<i64, String> {
    match scalar {
        Scalar::Signed(number) => Ok(number),
        Scalar::Unsigned(number) => Err(format!("is {number}, over the greatest signed integer")),
        other => Err(not(other, "an integer")),
    }
}

fn as_unsigned(scalar: Scalar<'_>) -> Result<u64, String> {
    match scalar {
        Scalar::Unsigned(number) => Ok(number),
        Scalar::Signed(number) => u64::try_from(number)
            .map_err(|_| format!("is {number}, under the least unsigned integer")),
        other => Err(not(other, "an integer")),
    }
}

fn as_real(scalar: Scalar<'_>) -> Result<f64, String> {
    let exact = |magnitude: u64, number: f64, told: String| {
        if magnitude <= EXACT_MAX {
            Ok(number)
        } else {
            Err(format!("is {told}, which no double is"))
        }
    };
    match scalar {
        Scalar::Real(number) if number.is_nan() => Err("is not a number".into()),
        Scalar::Real(number) => Ok(number),
        Scalar::Signed(number) => exact(number.unsigned_abs(), number as f64, number.to_string()),
        Scalar::Unsigned(number) => exact(number, number as f64, number.to_string()),
        other => Err(not(other, "a number")),
    }
}

/// SQLite has no booleans: there they are 0 and 1.
fn as_boolean(scalar: Scalar<'_>) -> Result<bool, String> {
    match scalar {
        Scalar::Boolean(truth) => Ok(truth),
        Scalar::Signed(0) => Ok(false),
        Scalar::Signed(1) => Ok(true),
        Scalar::Signed(number) => Err(format!("is {number}, not true or false")),
        other => Err(not(other, "true or false")),
    }
}

#[cfg(test)]
mod tests;
