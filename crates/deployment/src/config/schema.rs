//! Every key that a configuration may have: the reader refuses all others, and the example shows each.

/// The tables of the file.
pub(super) const FILE: &[&str] = &["ledger", "source", "pipeline", "sink", "worker"];
/// `[ledger]`.
pub(super) const LEDGER: &[&str] = &["url"];
/// `[source.NAME]`.
pub(super) const SOURCE: &[&str] = &["url"];
/// `[pipeline.NAME]`.
pub(super) const PIPELINE: &[&str] = &[
    "source",
    "table",
    "key",
    "normal_form",
    "document",
    "live_when",
    "watch",
    "sink",
    "page_rows",
    "document_max",
    "reconcile_every",
    "owns",
    "source_went_back",
];
/// `document = { .. }`.
pub(super) const DOCUMENT: &[&str] = &["sql", "json"];
/// `watch = [{ .. }]`.
pub(super) const WATCH: &[&str] = &["table", "key", "via", "references"];
/// `[sink.NAME]`: the keys of every kind; each kind has its own of them.
pub(super) const SINK: &[&str] =
    &["kind", "url", "schema", "table", "layout", "path", "fields", "memory", "rate_max"];
/// Of `kind = "sqlite"`.
pub(super) const MIRROR: &[&str] = &["kind", "url", "table", "layout", "rate_max"];
/// Of `kind = "postgres"`.
#[cfg(feature = "postgres")]
pub(super) const TABLE: &[&str] = &["kind", "url", "schema", "table", "layout", "rate_max"];
/// Of `kind = "tantivy"`.
pub(super) const INDEX: &[&str] = &["kind", "path", "fields", "memory", "rate_max"];
/// `fields = { NAME = { .. } }`.
#[cfg(feature = "tantivy")]
pub(super) const FIELD: &[&str] =
    &["type", "split", "fold", "language", "unit", "indexed", "stored", "fast", "required"];
/// `layout = { .. }`.
pub(super) const LAYOUT: &[&str] = &["json"];
/// `[worker]`.
pub(super) const WORKER: &[&str] = &["lease", "listen", "spill"];

/// Every table with its keys.
#[cfg(test)]
pub(super) const ALL: &[(&str, &[&str])] = &[
    ("ledger", LEDGER),
    ("source", SOURCE),
    ("pipeline", PIPELINE),
    ("document", DOCUMENT),
    ("watch", WATCH),
    ("sink", SINK),
    ("layout", LAYOUT),
    #[cfg(feature = "tantivy")]
    ("field", FIELD),
    ("worker", WORKER),
];
