//! The rules of a pipeline as text, and their fingerprint.
//!
//! The text is what the ledger keeps of them. It holds what decides how a document looks, and
//! nothing else: a page's size, a limit, a path or a secret's place can change without a rebuild.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use truekeep_core::Fingerprint;

#[cfg(feature = "tantivy")]
use truekeep_sink_tantivy::FieldSpec;

use crate::config::{
    DocumentConfig, LayoutConfig, PipelineConfig, SinkConfig, TargetConfig, WatchConfig,
};

/// Counts the forms of the text: a new form is another fingerprint.
const FORM: u32 = 1;

/// The text's form. Structs, not maps: the order of their fields is the order of the text.
#[derive(Serialize)]
struct RulesText<'c> {
    form: u32,
    table: &'c str,
    key: &'c [String],
    normal_form: bool,
    document: DocumentText<'c>,
    live_when: Option<&'c str>,
    watch: Vec<WatchText<'c>>,
    sink: SinkText<'c>,
    source: &'c [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum DocumentText<'c> {
    All(&'static str),
    Columns(&'c [String]),
    Sql { sql: &'c str, json: &'c [String] },
}

#[derive(Serialize)]
#[serde(untagged)]
enum WatchText<'c> {
    Child { table: &'c str, key: &'c [String] },
    Parent { table: &'c str, via: &'c [String], references: &'c [String] },
}

#[derive(Serialize)]
#[serde(untagged)]
enum SinkText<'c> {
    Mirror {
        kind: &'static str,
        table: &'c str,
        layout: LayoutText<'c>,
    },
    #[cfg(feature = "postgres")]
    Table {
        kind: &'static str,
        schema: &'c str,
        table: &'c str,
        layout: LayoutText<'c>,
    },
    /// Fields in the order of their names; each as one word, since a user compares them.
    #[cfg(feature = "tantivy")]
    Index {
        kind: &'static str,
        fields: std::collections::BTreeMap<&'c str, String>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum LayoutText<'c> {
    Named(&'static str),
    Json { json: &'c str },
}

/// Rules, ready to be announced or compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// Canonical JSON.
    pub text: String,
    /// The hash of the text.
    pub fingerprint: Fingerprint,
}

impl<'c> LayoutText<'c> {
    fn of(layout: &'c LayoutConfig) -> Self {
        match layout {
            LayoutConfig::Columns => Self::Named("columns"),
            LayoutConfig::Json(column) => Self::Json { json: column },
        }
    }
}

impl<'c> SinkText<'c> {
    fn of(target: &'c TargetConfig) -> Self {
        match target {
            TargetConfig::Mirror(mirror) => {
                let layout = LayoutText::of(&mirror.layout);
                Self::Mirror { kind: "sqlite", table: &mirror.table, layout }
            }
            #[cfg(feature = "postgres")]
            TargetConfig::Table(found) => Self::Table {
                kind: "postgres",
                schema: &found.schema,
                table: &found.table,
                layout: LayoutText::of(&found.layout),
            },
            #[cfg(feature = "tantivy")]
            TargetConfig::Index(index) => {
                let field = |field: &'c FieldSpec| (field.name.as_str(), field.told());
                let fields = index.spec.fields.iter().map(field).collect();
                Self::Index { kind: "tantivy", fields }
            }
        }
    }
}

impl Rules {
    /// The rules of a pipeline; `source` is what the source adds: columns, types, the key's form.
    pub fn of(pipeline: &PipelineConfig, sink: &SinkConfig, source: &[String]) -> Self {
        let document = match &pipeline.document {
            DocumentConfig::AllColumns => DocumentText::All("all columns"),
            DocumentConfig::Columns(columns) => DocumentText::Columns(columns),
            DocumentConfig::Sql { query, json } => DocumentText::Sql { sql: query, json },
        };
        let watch = pipeline.watch.iter().map(|watch| match watch {
            WatchConfig::Child { table, key } => WatchText::Child { table, key },
            WatchConfig::Parent { table, via, references } => {
                WatchText::Parent { table, via, references }
            }
        });
        let text = RulesText {
            form: FORM,
            table: &pipeline.table,
            key: &pipeline.key,
            normal_form: pipeline.normal_form,
            document,
            live_when: pipeline.live_when.as_deref(),
            watch: watch.collect(),
            sink: SinkText::of(&sink.target),
            source,
        };
        Self::from_text(serde_json::to_string(&text).expect("names and texts are JSON"))
    }

    fn from_text(text: String) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let fingerprint = Fingerprint::parse(&hex).expect("hex digits are a token");
        Self { text, fingerprint }
    }
}

/// One part of the rules that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulesDifference {
    /// Which part.
    pub part: String,
    /// As it is in force.
    pub before: Value,
    /// As it is configured.
    pub after: Value,
}

/// How two rules differ, by their parts. Text that is no JSON object differs as a whole.
pub fn differences(before: &str, after: &str) -> Vec<RulesDifference> {
    let parts = |text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(parts)) => parts,
        _ => serde_json::Map::from_iter([("rules".to_owned(), Value::from(text))]),
    };
    let (before, after) = (parts(before), parts(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let part = |name: &String| {
        let of = |parts: &serde_json::Map<String, Value>| parts.get(name).cloned();
        let (before, after) = (of(&before).unwrap_or_default(), of(&after).unwrap_or_default());
        (before != after).then(|| RulesDifference { part: name.clone(), before, after })
    };
    names.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests;
