//! `check --key`: makes the document of one key and shows it.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::wiring::open_source;
use truekeep_core::ports::{CaptureState, Loaded};
use truekeep_core::{Document, Key, ScopeId, Value};

use crate::args::Selection;
use crate::output::{dash, plain};
use crate::session::Session;

#[derive(Serialize)]
struct Made {
    pipeline: String,
    key: Key,
    /// The newest change of the key; none if the feed has none.
    version: Option<u64>,
    /// Whether the newest change removed it.
    deleted: Option<bool>,
    /// `live`, `absent` or `unloadable`.
    state: &'static str,
    code: Option<String>,
    reason: Option<String>,
    document: Option<Fields>,
}

/// A document as JSON; a name that occurs twice is printed twice.
struct Fields(Document);

pub async fn document(
    session: &Session,
    selection: &Selection,
    key: &str,
) -> Result<Exit, Trouble> {
    let pipeline = session.one(selection)?;
    let source = open_source(&session.config, pipeline).await?;
    let key = Key::new(key);
    let keys = std::slice::from_ref(&key);
    let captured = source.capture.verify().await?;
    let change = match captured.state {
        CaptureState::Broken(_) => None,
        CaptureState::Trusted(_) | CaptureState::Filling => {
            source.feed.find(keys).await?.into_iter().next().flatten()
        }
    };
    let loaded = source.records.load(keys, pipeline.document_max).await?.into_iter().next();
    let mut made = Made {
        pipeline: ScopeId::whole(pipeline.name.clone()).to_string(),
        key,
        version: change.as_ref().map(|change| change.version.get()),
        deleted: change.as_ref().map(|change| change.deleted),
        state: "absent",
        code: None,
        reason: None,
        document: None,
    };
    match loaded {
        Some(Loaded::Live(document)) => {
            made.state = "live";
            made.document = Some(Fields(document));
        }
        Some(Loaded::Unloadable(code, reason)) => {
            made.state = "unloadable";
            made.code = Some(code.to_string());
            made.reason = Some(reason);
        }
        Some(Loaded::Absent) | None => {}
    }
    session.out.show(&made, made_words);
    Ok(if made.state == "unloadable" { Exit::Incomplete } else { Exit::Done })
}

fn made_words(made: &Made) -> String {
    let version = dash(made.version);
    let mut text = format!("{} {}: ", made.pipeline, plain(made.key.as_str()));
    text += &match (&made.document, &made.reason) {
        (Some(_), _) => format!("live at version {version}\n"),
        (None, Some(reason)) => format!("{}: {}\n", dash(made.code.as_ref()), plain(reason)),
        (None, None) => {
            format!("no such record, or `live_when` rules it out (version {version})\n")
        }
    };
    for (name, value) in made.document.iter().flat_map(|fields| fields.0.fields()) {
        let json = serde_json::to_string(&Printed(value)).unwrap_or_default();
        text += &format!("  {}: {}\n", plain(name), plain(&json));
    }
    text
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.values().len()))?;
        for (name, value) in self.0.fields() {
            map.serialize_entry(name, &Printed(value))?;
        }
        map.end()
    }
}

/// A value as JSON; what JSON cannot say is an object that names it.
struct Printed<'v>(&'v Value);

impl Serialize for Printed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Real(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Real(number) => named(serializer, "real", number.to_string()),
            Value::Text(text) => serializer.serialize_str(text),
            Value::InvalidText(bytes) => named(serializer, "invalid_text", hex(bytes)),
            Value::Blob(bytes) => named(serializer, "blob", hex(bytes)),
            Value::Json(text) => match serde_json::from_str::<&serde_json::value::RawValue>(text) {
                Ok(raw) => raw.serialize(serializer),
                Err(_) => named(serializer, "invalid_json", text.to_string()),
            },
        }
    }
}

fn named<S: Serializer>(serializer: S, name: &str, text: String) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, &text)?;
    map.end()
}
