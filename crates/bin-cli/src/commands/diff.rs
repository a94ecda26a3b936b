//! `diff`: compares sinks with their sources; writes nothing.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::clock::SystemClock;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::diff::{Found, Kind, Means, Named, compare};
use truekeep::spill::FolderSpill;
use truekeep::status::{Known, LedgerPorts};
use truekeep::wiring::{Purpose, open_source, sink_as_it_is};
use truekeep_core::code::Code;
use truekeep_core::ports::CaptureState;
use truekeep_core::{Rank, RulesNumber};
use truekeep_engine::Sides;

use crate::answers::Answers;
use crate::args::{Diff, Selection};
use crate::output::plain;
use crate::progress::Progress;
use crate::session::Session;

#[derive(Serialize)]
struct Differences {
    /// How many differences are drift.
    drift: u64,
    #[serde(flatten)]
    answers: Answers<PipelineDiff>,
}

#[derive(Serialize)]
struct PipelineDiff {
    pipeline: String,
    /// Rules are in force for it; without, the sink's versions have no match.
    announced: bool,
    /// Another configuration is in force, so what is right is not what this one says.
    rules_changed: bool,
    /// Why changes may be missing from the feed itself: equal versions then say nothing.
    untrusted: Option<Code>,
    /// Whether the guard would stop a reconcile, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    guard_refuses: Option<bool>,
    #[serde(flatten)]
    found: Found,
}

/// Differences that are named for people unless they say how many.
pub const NAMED: usize = 20;

pub async fn diff(session: &Session, wanted: &Diff) -> Result<Exit, Trouble> {
    let differences = compared(session, &wanted.selection, wanted.deep).await?;
    session.out.show(&differences, |differences| words(differences, wanted.limit));
    Ok(differences.answers.end(session, differences.exit()))
}

/// What a reconcile would repair.
pub async fn preview(
    session: &Session,
    selection: &Selection,
    deep: bool,
) -> Result<Exit, Trouble> {
    let mut differences = compared(session, selection, deep).await?;
    for diff in &mut differences.answers.pipelines {
        diff.guard_refuses = Some(diff.found.guard_refuses());
    }
    session.out.show(&differences, |differences| words(differences, NAMED));
    let refuses = |diff: &PipelineDiff| diff.guard_refuses == Some(true);
    let refused = differences.answers.pipelines.iter().any(refuses);
    let exit = if refused { Exit::GuardRefused } else { differences.exit() };
    Ok(differences.answers.end(session, exit))
}

async fn compared(
    session: &Session,
    selection: &Selection,
    deep: bool,
) -> Result<Differences, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let compared =
        async |pipeline: &PipelineConfig| pipeline_diff(session, &ledger, pipeline, deep).await;
    let answers = session.each(selection, compared).await?;
    let drift = answers.pipelines.iter().map(|diff| diff.found.drift()).sum();
    Ok(Differences { drift, answers })
}

impl Differences {
    fn exit(&self) -> Exit {
        let untrusted = self.answers.pipelines.iter().any(|diff| diff.untrusted.is_some());
        if self.drift > 0 || untrusted { Exit::Drift } else { Exit::Done }
    }
}

async fn pipeline_diff(
    session: &Session,
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    deep: bool,
) -> Result<PipelineDiff, Trouble> {
    let known = Known::read(ledger, &pipeline.name).await?;
    let source = open_source(&session.config, pipeline).await?;
    let sink = sink_as_it_is(&session.config, pipeline, &source).await?;
    let report = source.capture.verify().await?;
    let live = report.feed_rows.saturating_sub(report.tombstones);
    let record = known.record.as_ref();
    let sides = Sides {
        scope: known.scope.clone(),
        rules: record.map_or(RulesNumber::new(0), |record| record.rules.number),
        cursor: known.cursor(),
        since: None,
        deep,
        owns: pipeline.owns,
        feed: source.feed.as_ref(),
        records: source.records.as_ref(),
        sink: sink.as_ref(),
        items: ledger.items.as_ref(),
    };
    // Every key is looked at against the sink, and by the audit from the table and from the feed.
    let total = live.saturating_mul(3);
    let mut progress = Progress::new(session.out, pipeline.name.as_str(), total);
    let spill = FolderSpill::new(session.config.worker.spill.clone());
    let capture = source.capture.as_ref();
    let means = Means { capture, spill: &spill, clock: &SystemClock };
    let found = compare(&sides, means, |seen| progress.at(seen, total)).await?;
    progress.end();
    Ok(PipelineDiff {
        pipeline: pipeline.name.to_string(),
        announced: record.is_some(),
        rules_changed: record
            .is_some_and(|record| record.rules.fingerprint != source.rules.fingerprint),
        untrusted: match report.state {
            CaptureState::Trusted(_) => None,
            CaptureState::Filling => Some(Code::CAPTURE_FILLING),
            CaptureState::Broken(code) => Some(code),
        },
        guard_refuses: None,
        found,
    })
}

fn words(differences: &Differences, limit: usize) -> String {
    differences.answers.pipelines.iter().map(|diff| pipeline_words(diff, limit)).collect()
}

fn pipeline_words(diff: &PipelineDiff, limit: usize) -> String {
    let found = &diff.found;
    let mut text = match found.drift() {
        0 => format!("{}: no drift, {} equal", diff.pipeline, found.equal),
        drift => format!("{}: {drift} differ, {} equal", diff.pipeline, found.equal),
    };
    if found.altered.is_some() {
        text += " with their documents";
    }
    for (count, word) in [
        (found.missing, "missing"),
        (found.stale, "stale"),
        (found.altered.unwrap_or(0), "altered"),
        (found.orphan, "orphan"),
        (found.ahead, "ahead"),
        (found.capture_missed, "not recorded by capture"),
        (found.parked, "of them parked"),
        (found.in_flight, "in flight"),
        (found.unmarked, "of others left alone"),
    ] {
        if count > 0 {
            text += &format!(", {count} {word}");
        }
    }
    text.push('\n');
    if !diff.announced {
        text += "  the ledger does not know it: no rules are in force\n";
    }
    if diff.rules_changed {
        text +=
            "  the configuration differs from the rules in force: see `truekeep apply --dry-run`\n";
    }
    if let Some(code) = &diff.untrusted {
        let remedy = truekeep::trouble::remedy(code);
        text += &format!("  {code}: changes may have been missed, so equal versions say nothing\n");
        text += &format!("  hint: {remedy}\n");
    }
    if diff.guard_refuses == Some(true) {
        text += "  the guard would stop a reconcile before it removes or rewrites anything; if this \
            is right, run `truekeep reconcile --confirm`\n";
    }
    for named in found.named.iter().take(limit) {
        text += &format!("  {}\n", named_words(named));
    }
    let unnamed = found.drift().saturating_sub(limit.min(found.named.len()) as u64);
    if unnamed > 0 {
        text += &format!("  and {unnamed} more\n");
    }
    text
}

fn named_words(named: &Named) -> String {
    let kind = match named.kind {
        Kind::Missing => "missing",
        Kind::Stale => "stale",
        Kind::Altered => "altered",
        Kind::Orphan => "orphan",
        Kind::Ahead => "ahead",
        Kind::CaptureMissed => "missed",
    };
    let rank = |word: &str, rank: Option<Rank>| {
        rank.map_or_else(String::new, |rank| format!("  {word} {rank}"))
    };
    let parked = if named.parked { "  parked" } else { "" };
    let foreign = if named.foreign { "  no key of the source" } else { "" };
    let (wanted, held) = (rank("wanted", named.wanted), rank("held", named.held));
    format!("{kind:<8}{}{wanted}{held}{parked}{foreign}", plain(named.key.as_str()))
}
