//! `apply`: puts the configured rules in force, and shows what that delivers.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use truekeep::Trouble;
use truekeep::announce::{Remains, Standing, announce};
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::entropy::RandomEntropy;
use truekeep::rules::RulesDifference;
use truekeep::status::LedgerPorts;
use truekeep::wiring::{Purpose, SourcePorts, open_source, sink_as_it_is};
use truekeep_core::RulesNumber;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Ledger, PipelineRecord, PipelineState};

use crate::args::Apply;
use crate::output::plain;
use crate::session::Session;

#[derive(Serialize)]
struct PipelineApplied {
    pipeline: String,
    #[serde(flatten)]
    standing: Standing,
    /// About how many records are delivered because of it; none while they are not recorded.
    records: Option<u64>,
    /// The number under which the rules were announced.
    announced: Option<u64>,
    /// Whether rules would be announced, had it not been a dry run.
    due: bool,
}

pub async fn apply(session: &Session, wanted: &Apply) -> Result<Exit, Trouble> {
    let purpose = if wanted.dry_run { Purpose::Read } else { Purpose::Work };
    let ledger = session.ledger(purpose).await?;
    let applied = async |pipeline: &PipelineConfig| {
        pipeline_applied(session, &ledger, pipeline, wanted).await
    };
    let answers = session.each(&wanted.selection, applied).await?;
    session.out.show(&answers, |applied| applied.pipelines.iter().map(words).collect());
    Ok(answers.end(session, Exit::Done))
}

async fn pipeline_applied(
    session: &Session,
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    wanted: &Apply,
) -> Result<PipelineApplied, Trouble> {
    let source = open_source(&session.config, pipeline).await?;
    let capture = source.capture.verify().await?;
    let record = ledger.ledger.pipeline(&pipeline.name).await?;
    if let Some(PipelineState::Removing(_)) = record.as_ref().map(|record| record.state) {
        let class = FailureClass::Terminal;
        let error = PortError::new("announce rules", class, Code::PIPELINE_REMOVED);
        return Err(error.detail(format!("{} is being removed", pipeline.name)).into());
    }
    let standing = Standing::of(&source.rules, record.as_ref());
    let due = wanted.again || !matches!(standing, Standing::InForce { .. });
    let mut announced = None;
    if due && !wanted.dry_run {
        let made =
            put_in_force(session, &ledger.ledger, pipeline, &source, record.as_ref()).await?;
        announced = Some(made.rules.number.get());
    }
    let live = capture.feed_rows.saturating_sub(capture.tombstones);
    Ok(PipelineApplied {
        pipeline: pipeline.name.to_string(),
        standing,
        records: (capture.feed_rows > 0).then_some(live),
        announced,
        due,
    })
}

/// Announces the configured rules after those of the record, whether they differ or not.
pub(super) async fn put_in_force(
    session: &Session,
    ledger: &Arc<dyn Ledger>,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
    record: Option<&PipelineRecord>,
) -> Result<PipelineRecord, Trouble> {
    let sink = sink_as_it_is(&session.config, pipeline, source).await;
    let remains = match &sink {
        Ok(sink) => Remains::of(sink.as_ref(), true).await,
        // What it holds is looked at again before it is written.
        Err(_) => Remains { rules: RulesNumber::default(), anew: true },
    };
    let (ledger, name) = (ledger.as_ref(), &pipeline.name);
    Ok(announce(ledger, &RandomEntropy, name, &source.rules, record, remains).await?)
}

fn words(applied: &PipelineApplied) -> String {
    let name = &applied.pipeline;
    let mut text = match &applied.standing {
        Standing::New => format!("{name}: new\n"),
        Standing::InForce { rules } => format!("{name}: rules {rules} are in force, unchanged\n"),
        Standing::Changed { rules, differences } => {
            let mut text = format!("{name}: differs from rules {rules}, which are in force\n");
            text += &differences.iter().map(difference_words).collect::<String>();
            text
        }
    };
    let records = match applied.records {
        Some(records) => format!("about {records} records"),
        None => "every record, once capture is installed".to_owned(),
    };
    match (applied.announced, applied.due) {
        (Some(rules), _) => {
            text += &format!("  announced as rules {rules}: the worker delivers {records}\n");
        }
        (None, true) => text += &format!("  to be announced: the worker would deliver {records}\n"),
        (None, false) => {}
    }
    text
}

/// What the source adds is a list of lines, of which only those that differ are shown.
fn difference_words(difference: &RulesDifference) -> String {
    let RulesDifference { part, before, after } = difference;
    if let ("source", Value::Array(before), Value::Array(after)) = (part.as_str(), before, after) {
        let only = |sign: &str, these: &[Value], others: &[Value]| -> String {
            let differing = these.iter().filter(|line| !others.contains(line));
            let text = |line: &Value| line.as_str().map_or_else(|| line.to_string(), str::to_owned);
            differing.map(|line| format!("  {part} {sign} {}\n", plain(&text(line)))).collect()
        };
        return only("-", before, after) + &only("+", after, before);
    }
    let (before, after) = (plain(&before.to_string()), plain(&after.to_string()));
    format!("  {part} was {before}\n  {part} is  {after}\n")
}
