//! What no table can tell by itself: two writers of one place, and what nothing uses.

use std::collections::BTreeMap;
use std::ops::Range;

use super::problem::Problem;
use super::reader::Gather;
use super::sections::Parts;
use super::{LedgerConfig, Location, PipelineConfig, SinkConfig};

/// Checks the whole; what can be used but is likely not meant is returned.
pub(super) fn check(parts: &Parts, gather: &Gather<'_>) -> Vec<Problem> {
    let (mut targets, mut feeds) = (BTreeMap::new(), BTreeMap::new());
    for (pipeline, at) in &parts.pipelines {
        if let Some((_, Some(source))) = parts.sources.get(&pipeline.source) {
            let feed = source.relation(&pipeline.table);
            one_feed(gather, pipeline, feeds.entry(feed).or_insert(pipeline));
        }
        if let Some((_, Some(sink))) = parts.sinks.get(&pipeline.sink) {
            let first = *targets.entry(sink.target.relation()).or_insert(&pipeline.name);
            if *first != pipeline.name {
                let message = format!("pipelines `{first}` and `{}` write one sink", pipeline.name);
                let remedy =
                    "give each pipeline a sink of its own: it deletes what it did not write";
                gather.problem(at, message, remedy);
            }
            own_table(parts, gather, pipeline, at, sink);
        }
    }
    separate(parts, gather);
    warnings(parts)
}

/// A table has one feed, whose keys are made in one way.
fn one_feed(gather: &Gather<'_>, pipeline: &PipelineConfig, first: &PipelineConfig) {
    if (&pipeline.key, pipeline.normal_form) != (&first.key, first.normal_form) {
        let (one, other, table) = (&first.name, &pipeline.name, &pipeline.table);
        let message = format!("`{one}` and `{other}` identify records of `{table}` differently");
        let remedy = "give all pipelines of a table the same `key` and `normal_form`";
        gather.problem(&pipeline.span, message, remedy);
    }
}

fn own_table(
    parts: &Parts,
    gather: &Gather<'_>,
    pipeline: &PipelineConfig,
    at: &Range<usize>,
    sink: &SinkConfig,
) {
    let Some((_, Some(source))) = parts.sources.get(&pipeline.source) else { return };
    if sink.target.relation() == source.relation(&pipeline.table) {
        let message = format!("pipeline `{}` would write the table that it follows", pipeline.name);
        gather.problem(at, message, "choose another `table` or place for the sink");
    }
}

/// The ledger's file is the worker's own: nothing else lives in it.
fn separate(parts: &Parts, gather: &Gather<'_>) {
    let Some(found) = &parts.ledger else { return };
    let LedgerConfig::Sqlite(ledger) = &found.value else { return };
    let clashes = |location: &Location| location.canonical() == ledger.canonical();
    let remedy = "give the ledger a file of its own";
    for (name, (at, source)) in &parts.sources {
        if source.as_ref().and_then(|source| source.file()).is_some_and(clashes) {
            let message = format!("source `{name}` is the ledger's file");
            gather.problem(&at.span, message, remedy);
        }
    }
    for (name, (at, sink)) in &parts.sinks {
        if sink.as_ref().and_then(|sink| sink.target.location()).is_some_and(clashes) {
            gather.problem(&at.span, format!("sink `{name}` is the ledger's file"), remedy);
        }
    }
}

fn warnings(parts: &Parts) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let mut warn = |span, message: String, remedy: &str| {
        warnings.push(Problem { span, message, remedy: remedy.to_owned() });
    };
    if let Some(found) = parts.ledger.as_ref().filter(|l| l.value == LedgerConfig::Memory) {
        let message = "the ledger is in memory and is lost with the process".to_owned();
        let remedy =
            "every start delivers everything again to an empty sink; use a file for anything else";
        warn(Some(found.span.clone()), message, remedy);
    }
    let uses = |name: &str, of: fn(&PipelineConfig) -> &str| {
        parts.pipelines.iter().any(|(pipeline, _)| of(pipeline) == name)
    };
    for (name, (at, _)) in parts.sources.iter().filter(|(name, _)| !uses(name, |p| &p.source)) {
        let message = format!("no pipeline uses the source `{name}`");
        warn(Some(at.span.clone()), message, "remove it, or name it in a pipeline");
    }
    for (name, (at, _)) in parts.sinks.iter().filter(|(name, _)| !uses(name, |p| &p.sink)) {
        let message = format!("no pipeline uses the sink `{name}`");
        warn(Some(at.span.clone()), message, "remove it, or name it in a pipeline");
    }
    if parts.pipelines.is_empty() {
        let remedy = "add a `[pipeline.NAME]`; `truekeep init` proposes some";
        warn(None, "there is no pipeline, so there is nothing to do".to_owned(), remedy);
    }
    warnings
}
