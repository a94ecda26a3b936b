//! The fields of a search index.

use toml::Spanned;
use toml::de::DeValue;
use truekeep_sink_tantivy::{
    Analysis, DateUnit, FieldKind, FieldSpec, IndexSpec, LANGUAGES, Language, Split, WRITER_BYTES,
    WRITER_BYTES_MIN,
};

use super::reader::{Found, Reader, nearest};
use super::sections::filled;
use super::{IndexConfig, Location, quantity, schema};

/// The types of fields, in the order in which they are explained.
const TYPES: &[&str] = &["text", "keyword", "facet", "date", "i64", "u64", "f64", "bool", "json"];

const SPLITS: &[(&str, Split)] =
    &[("words", Split::Words), ("whitespace", Split::Whitespace), ("grams", Split::Grams)];

const UNITS: &[(&str, DateUnit)] =
    &[("s", DateUnit::Seconds), ("ms", DateUnit::Milliseconds), ("us", DateUnit::Microseconds)];

/// Keys that only some types have.
const OF_TEXT: &[&str] = &["split", "fold", "language"];
const OF_DATES: &[&str] = &["unit"];

pub(super) fn read(table: &Reader<'_>) -> Option<IndexConfig> {
    let location = location(table);
    let bytes = memory(table);
    let fields = fields(table);
    let spec = IndexSpec { fields: fields?, writer_bytes: bytes? };
    Some(IndexConfig { location: location?, spec })
}

fn location(table: &Reader<'_>) -> Option<Location> {
    let written = table.value("path").and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    let path = table.required("path", "name the folder of the index, as in `path = \"search\"`")?;
    let path = filled(table, "path", path)?;
    Some(Location::new(written.unwrap_or_default(), table.gather.folder.join(path.value)))
}

fn memory(table: &Reader<'_>) -> Option<usize> {
    if table.value("memory").is_none() {
        return Some(WRITER_BYTES);
    }
    let least = WRITER_BYTES_MIN.div_ceil(1 << 20);
    table.parsed("memory", |text| match quantity::size(text)? {
        bytes if bytes < WRITER_BYTES_MIN => Err(format!("a writer needs {least} MB")),
        bytes => Ok(bytes),
    })
}

fn fields(table: &Reader<'_>) -> Option<Vec<FieldSpec>> {
    const REMEDY: &str = "name what is searched, as in `fields = { title = \"text\" }`";
    let Some(value) = table.value("fields") else {
        table.missing("fields", REMEDY);
        return None;
    };
    let entries = table.entries("fields")?;
    if entries.is_empty() {
        table.gather.problem(&value.span(), "`fields` is empty", REMEDY);
        return None;
    }
    // Each is read before any is missed, so that all problems are told.
    let fields: Vec<_> = entries.iter().map(|(name, value)| field(table, name, value)).collect();
    fields.into_iter().collect()
}

fn field(
    table: &Reader<'_>,
    name: &Found<String>,
    value: &Spanned<DeValue<'_>>,
) -> Option<FieldSpec> {
    if let Some(reason) = FieldSpec::unusable(&name.value) {
        let message = format!("`{}` is no name of a field: {reason}", name.value);
        let remedy =
            "name the document's value otherwise, as in `SELECT \"full name\" AS full_name`";
        table.gather.problem(&name.span, message, remedy);
        return None;
    }
    let place = format!("{}.fields.{}", table.name, name.value);
    let (kind, reader) = match value.get_ref() {
        DeValue::String(_) => (table.gather.text(&place, value)?, None),
        DeValue::Table(_) => {
            let reader = table.inner(place, value, schema::FIELD)?;
            let kind = reader.required("type", &format!("write one of: {}", TYPES.join(", ")));
            (kind?, Some(reader))
        }
        _ => {
            table.gather.mistyped(&place, value, "a type, or a table with a `type`");
            return None;
        }
    };
    let kind = kind_of(table, &kind, reader.as_ref());
    let flag = |key, default| match &reader {
        Some(reader) if reader.value(key).is_some() => reader.boolean(key),
        _ => Some(default),
    };
    let (indexed, stored) = (flag("indexed", true), flag("stored", true));
    let (fast, required) = (flag("fast", false), flag("required", false));
    let field = FieldSpec {
        name: name.value.clone(),
        kind: kind?,
        indexed: indexed?,
        stored: stored?,
        fast: fast?,
        required: required?,
    };
    if field.kind == FieldKind::Facet && !field.indexed {
        let message = format!("field `{}` is a facet, and every facet can be searched", name.value);
        table.gather.problem(&name.span, message, "leave `indexed` out, or make it a keyword");
        return None;
    }
    if !field.indexed && !field.stored && !field.fast {
        let message = format!("field `{}` is neither indexed, stored nor fast", name.value);
        table.gather.problem(&name.span, message, "leave it out");
        return None;
    }
    Some(field)
}

fn kind_of(
    table: &Reader<'_>,
    kind: &Found<String>,
    reader: Option<&Reader<'_>>,
) -> Option<FieldKind> {
    let is_text = matches!(kind.value.as_str(), "text" | "json");
    let is_date = kind.value == "date";
    for (keys, fits, whose) in
        [(OF_TEXT, is_text, "`text` and `json`"), (OF_DATES, is_date, "`date`")]
    {
        for key in keys.iter().filter(|_| !fits) {
            if let Some(value) = reader.and_then(|reader| reader.value(key)) {
                let message = format!("`{key}` is of {whose}, not of `{}`", kind.value);
                table.gather.problem(&value.span(), message, "leave it out, or change the `type`");
            }
        }
    }
    Some(match kind.value.as_str() {
        "text" => FieldKind::Text(analysis(reader)?),
        "json" => FieldKind::Json(analysis(reader)?),
        "keyword" => FieldKind::Keyword,
        "facet" => FieldKind::Facet,
        "date" => FieldKind::Date(chosen(reader, "unit", UNITS)?.unwrap_or(DateUnit::Text)),
        "i64" => FieldKind::Signed,
        "u64" => FieldKind::Unsigned,
        "f64" => FieldKind::Real,
        "bool" => FieldKind::Boolean,
        other => {
            let message = format!("unknown type of field `{other}`");
            table.gather.problem(&kind.span, message, nearest(other, TYPES.iter().copied()));
            return None;
        }
    })
}

fn analysis(reader: Option<&Reader<'_>>) -> Option<Analysis> {
    let split = chosen(reader, "split", SPLITS);
    let language: Option<Option<Language>> = chosen(reader, "language", LANGUAGES);
    let fold = match reader {
        Some(reader) if reader.value("fold").is_some() => reader.boolean("fold"),
        _ => Some(false),
    };
    let split = split?.unwrap_or(Split::Words);
    Some(Analysis { split, fold: fold?, language: language? })
}

/// One of several names: `Some(None)` if the key is left out, `None` if it has a problem.
fn chosen<T: Copy>(
    reader: Option<&Reader<'_>>,
    key: &'static str,
    known: &'static [(&'static str, T)],
) -> Option<Option<T>> {
    let Some(reader) = reader.filter(|reader| reader.value(key).is_some()) else {
        return Some(None);
    };
    let text = reader.text(key)?;
    let found = known.iter().find(|(name, _)| *name == text.value);
    if found.is_none() {
        let message = format!("`{key}` cannot be `{}`", text.value);
        let remedy = nearest(&text.value, known.iter().map(|(name, _)| *name));
        reader.gather.problem(&text.span, message, remedy);
    }
    found.map(|(_, value)| Some(*value))
}
