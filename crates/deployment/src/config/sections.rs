//! The tables of the file, one function each.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use truekeep_core::PipelineName;
use truekeep_core::compare::Owns;
use truekeep_core::follow::SourceWentBack;
use truekeep_core::limits::{DOCUMENT_BYTES_MAX, LEASE_TTL, PAGE_ROWS, PAGE_ROWS_MAX};

use super::problem::Problem;
use super::reader::{Found, Gather, Reader, nearest};
use super::sink::{is_server, sink};
use super::{
    Address, Config, DocumentConfig, Environment, InvalidConfig, LedgerConfig, Location,
    PipelineConfig, SinkConfig, SourceConfig, WatchConfig, WorkerConfig, conflicts, quantity,
    schema,
};

/// The ledger's file where no other is named, beside the configuration.
const LEDGER_FILE: &str = "truekeep.db";

const URL_REMEDY: &str = "write where it is, as in `url = \"sqlite:app.db\"`";

/// Where the service answers unless told otherwise: on this machine only.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9187);

/// What a configuration has read so far: a part is none if it has a problem.
pub(super) struct Parts {
    pub ledger: Option<Found<LedgerConfig>>,
    pub sources: Named<SourceConfig>,
    pub sinks: Named<SinkConfig>,
    /// Each with the place where it names its sink.
    pub pipelines: Vec<(PipelineConfig, Range<usize>)>,
}

pub(super) fn read(
    path: &Path,
    text: &str,
    environment: Environment<'_>,
) -> Result<Config, InvalidConfig> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problems = errors.into_iter().map(|error| Problem {
            span: error.span(),
            message: error.message().trim().to_lowercase().replace('\n', ", "),
            remedy: "mend the line; the file is TOML".to_owned(),
        });
        return Err(InvalidConfig::new(path, text, problems.collect()));
    }
    let gather = Gather::new(path.parent().unwrap_or(Path::new("")), environment);
    let file = Reader::new(&gather, "", root.span(), root.get_ref(), schema::FILE);
    let sources = named(&file, "source", schema::SOURCE, source);
    let sinks = named(&file, "sink", schema::SINK, sink);
    let pipelines = pipelines(&file, &sources, &sinks);
    let parts = Parts { ledger: ledger(&file), sources, sinks, pipelines };
    let worker = worker(&file);
    let warnings = conflicts::check(&parts, &gather);
    let (problems, hidden) = gather.into_parts();
    let sources = parts.sources.into_iter().filter_map(|(name, (_, found))| Some((name, found?)));
    let sinks = parts.sinks.into_iter().filter_map(|(name, (_, found))| Some((name, found?)));
    match (parts.ledger, worker) {
        (Some(ledger), Some(worker)) if problems.is_empty() => Ok(Config {
            ledger: ledger.value,
            sources: sources.collect(),
            sinks: sinks.collect(),
            pipelines: parts.pipelines.into_iter().map(|(pipeline, _)| pipeline).collect(),
            worker,
            path: path.to_owned(),
            text: text.to_owned(),
            warnings,
            hidden,
        }),
        _ => Err(InvalidConfig::new(path, text, problems)),
    }
}

/// Tables that a user names, with the place of the name.
type Named<T> = BTreeMap<String, (Found<String>, Option<T>)>;

fn named<T>(
    file: &Reader<'_>,
    key: &'static str,
    known: &'static [&'static str],
    read: impl Fn(&Reader<'_>) -> Option<T>,
) -> Named<T> {
    let tables = file.named(key, known).into_iter();
    tables.map(|(name, reader)| (name.value.clone(), (name, read(&reader)))).collect()
}

fn ledger(root: &Reader<'_>) -> Option<Found<LedgerConfig>> {
    let beside = || {
        let path = root.gather.folder.join(LEDGER_FILE);
        LedgerConfig::Sqlite(Location::new(format!("sqlite:{LEDGER_FILE}"), path))
    };
    if root.value("ledger").is_none() {
        return Some(Found { value: beside(), span: 0..0 });
    }
    let table = root.table("ledger", schema::LEDGER)?;
    let Some(url) = table.value("url") else {
        return Some(Found { value: beside(), span: table.span.clone() });
    };
    if url.get_ref().as_str() == Some("memory:") {
        return Some(Found { value: LedgerConfig::Memory, span: url.span() });
    }
    let (url, written) = url_of(&table)?;
    if is_server(&url.value) {
        let address = Address::new(written, url.value);
        return Some(Found { value: LedgerConfig::Postgres(address), span: url.span });
    }
    let known = "sqlite, postgres (as in `postgres://user@host/name`), memory";
    let location = file(&table, url, written, known)?;
    Some(Found { value: LedgerConfig::Sqlite(location.value), span: location.span })
}

/// Where something is, and how that was written.
fn url_of(table: &Reader<'_>) -> Option<(Found<String>, String)> {
    let written = table.value("url").and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    Some((table.required("url", URL_REMEDY)?, written.unwrap_or_default()))
}

fn source(table: &Reader<'_>) -> Option<SourceConfig> {
    let (url, written) = url_of(table)?;
    if is_server(&url.value) {
        return Some(SourceConfig::Postgres(Address::new(written, url.value)));
    }
    let known = "sqlite, postgres (as in `postgres://user@host/name`)";
    Some(SourceConfig::Sqlite(file(table, url, written, known)?.value))
}

fn pipelines(
    file: &Reader<'_>,
    sources: &Named<SourceConfig>,
    sinks: &Named<SinkConfig>,
) -> Vec<(PipelineConfig, Range<usize>)> {
    let mut read = Vec::new();
    for (name, table) in file.named("pipeline", schema::PIPELINE) {
        let source = link(&table, "source", sources);
        let sink = link(&table, "sink", sinks);
        read.extend(pipeline(&name, &table, source, sink));
    }
    read.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    read
}

/// The name of a source or a sink, which must be there.
fn link<T>(table: &Reader<'_>, kind: &'static str, known: &Named<T>) -> Option<Found<String>> {
    let found = table.required(kind, &format!("name a `[{kind}.NAME]`"))?;
    if !known.contains_key(&found.value) {
        let message = format!("there is no `[{kind}.{}]`", found.value);
        let remedy = nearest(&found.value, known.keys().map(String::as_str));
        table.gather.problem(&found.span, message, remedy);
    }
    Some(found)
}

fn pipeline(
    name: &Found<String>,
    table: &Reader<'_>,
    source: Option<Found<String>>,
    sink: Option<Found<String>>,
) -> Option<(PipelineConfig, Range<usize>)> {
    let parsed = PipelineName::parse(&name.value).map_err(|error| {
        let remedy = "choose another name; it is the name of the certificate as well";
        table.gather.problem(&name.span, error.to_string(), remedy);
    });
    // Each part is read before any is missed, so that all problems are told.
    let followed = table.required("table", "name the table to follow");
    let followed = followed.and_then(|found| filled(table, "table", found));
    let key = optional(table, "key", Reader::names);
    let normal_form = optional(table, "normal_form", Reader::boolean);
    let document = document(table);
    let live_when = optional(table, "live_when", |table, key| filled(table, key, table.text(key)?));
    let watch: Vec<_> = table.list("watch", schema::WATCH).iter().map(watch).collect();
    let page_rows = table.integer("page_rows", 1..=PAGE_ROWS_MAX).unwrap_or(PAGE_ROWS);
    let document_max = table.parsed("document_max", quantity::size).unwrap_or(DOCUMENT_BYTES_MAX);
    let reconcile_every = table.parsed("reconcile_every", quantity::duration);
    let owns = table.parsed("owns", owns).unwrap_or_default();
    let source_went_back = table.parsed("source_went_back", went_back).unwrap_or_default();
    let (source, sink) = (source?, sink?);
    let config = PipelineConfig {
        name: parsed.ok()?,
        source: source.value,
        table: followed?.value,
        key: key?.map_or_else(Vec::new, |found| found.value),
        normal_form: normal_form?.unwrap_or(false),
        document: document?,
        live_when: live_when?.map(|found| found.value),
        watch: watch.into_iter().collect::<Option<_>>()?,
        sink: sink.value,
        page_rows,
        document_max,
        reconcile_every,
        owns,
        source_went_back,
        span: name.span.clone(),
    };
    Some((config, sink.span))
}

fn owns(text: &str) -> Result<Owns, String> {
    match text {
        "all" => Ok(Owns::All),
        "marked" => Ok(Owns::Marked),
        _ => Err("it is \"all\" or \"marked\"".to_owned()),
    }
}

fn went_back(text: &str) -> Result<SourceWentBack, String> {
    match text {
        "halt" => Ok(SourceWentBack::Halt),
        "repair" => Ok(SourceWentBack::Repair),
        _ => Err("it is \"halt\" or \"repair\"".to_owned()),
    }
}

fn document(table: &Reader<'_>) -> Option<DocumentConfig> {
    let Some(value) = table.value("document") else { return Some(DocumentConfig::AllColumns) };
    match value.get_ref() {
        DeValue::Array(_) => {
            table.names("document").map(|names| DocumentConfig::Columns(names.value))
        }
        DeValue::Table(_) => {
            let document = table.table("document", schema::DOCUMENT)?;
            let query = document
                .required("sql", "write a select of one row by its key, as in `WHERE id = :id`")?;
            let json = optional(&document, "json", Reader::names)?;
            let json = json.map_or_else(Vec::new, |found| found.value);
            let query = filled(&document, "sql", query)?.value;
            Some(DocumentConfig::Sql { query, json })
        }
        _ => {
            table.gather.mistyped("document", value, "a list of columns or { sql = \"..\" }");
            None
        }
    }
}

fn watch(table: &Reader<'_>) -> Option<WatchConfig> {
    let name = table.required("table", "name the related table");
    let has = |key| table.value(key).is_some();
    match (has("key"), has("via"), has("references")) {
        (true, false, false) => {
            Some(WatchConfig::Child { key: table.names("key")?.value, table: name?.value })
        }
        (false, true, _) => {
            let via = table.names("via")?;
            let references = optional(table, "references", Reader::names)?;
            if references.as_ref().is_some_and(|names| via.value.len() != names.value.len()) {
                let message = format!("`via` and `references` differ in length in {}", table.name);
                table.gather.problem(&via.span, message, "name as many columns on each side");
                return None;
            }
            let references = references.map_or_else(Vec::new, |found| found.value);
            Some(WatchConfig::Parent { table: name?.value, via: via.value, references })
        }
        _ => {
            let remedy = "write { table, key } for rows that belong to a record, or \
                { table, via } for a row that records point to";
            let message = format!("`{}` names neither a child nor a parent", table.name);
            table.gather.problem(&table.span, message, remedy);
            None
        }
    }
}

fn worker(file: &Reader<'_>) -> Option<WorkerConfig> {
    let mut worker = WorkerConfig { lease: LEASE_TTL, listen: LISTEN, spill: None };
    if file.value("worker").is_none() {
        return Some(worker);
    }
    let table = file.table("worker", schema::WORKER)?;
    worker.lease = table.parsed("lease", quantity::duration).unwrap_or(worker.lease);
    let address = |text: &str| {
        text.parse()
            .map_err(|_| "write an address with a port, as in \"127.0.0.1:9187\"".to_owned())
    };
    worker.listen = table.parsed("listen", address).unwrap_or(worker.listen);
    let folder = optional(&table, "spill", |table, key| filled(table, key, table.text(key)?))?;
    worker.spill = folder.map(|folder| table.gather.folder.join(folder.value));
    Some(worker)
}

/// A key that may be left out: `Some(None)` if it is, `None` if it has a problem.
pub(super) fn optional<'t, T>(
    table: &Reader<'t>,
    key: &'static str,
    read: impl FnOnce(&Reader<'t>, &'static str) -> Option<T>,
) -> Option<Option<T>> {
    match table.value(key) {
        None => Some(None),
        Some(_) => read(table, key).map(Some),
    }
}

pub(super) fn filled(table: &Reader<'_>, key: &str, found: Found<String>) -> Option<Found<String>> {
    if found.value.trim().is_empty() {
        let message = format!("`{key}` is empty");
        table.gather.problem(&found.span, message, "write a value, or leave the key out");
        return None;
    }
    Some(found)
}

/// A `sqlite:` address, with a path from the configuration's folder.
pub(super) fn location(table: &Reader<'_>) -> Option<Found<Location>> {
    let (url, written) = url_of(table)?;
    file(table, url, written, "sqlite")
}

/// The same, once it is read.
fn file(
    table: &Reader<'_>,
    url: Found<String>,
    written: String,
    known: &str,
) -> Option<Found<Location>> {
    let problem = |message: String, remedy: &str| {
        table.gather.problem(&url.span, message, remedy);
        None
    };
    let Some((scheme, path)) = url.value.split_once(':') else {
        let message = format!("`{}` says no kind of database", url.value);
        return problem(message, "write `sqlite:` before the path");
    };
    if scheme != "sqlite" {
        let remedy = match scheme {
            "memory" => format!("known here: {known}; only a ledger can be in memory"),
            _ => format!("known: {known}"),
        };
        return problem(format!("unknown kind of database `{scheme}`"), &remedy);
    }
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path == ":memory:" || path.contains('?') {
        let message = format!("`{}` names no file", url.value);
        return problem(message, "write the path of a file, without parameters");
    }
    let path = table.gather.folder.join(path);
    let location = Location::new(written, path);
    Some(Found { value: location, span: url.span })
}
