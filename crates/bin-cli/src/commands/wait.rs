//! `wait`: until sinks are complete, and include what was asked. Says meanwhile who holds what until when.

use std::time::{Duration, Instant};

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::coverage::{self, Coverage, Freshness, Wanted, judge};
use truekeep::status::{Known, LedgerPorts, PipelineStatus};
use truekeep::wiring::{Purpose, SourcePorts, open_source};
use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::{Moment, Place};

use crate::args::Wait;
use crate::session::Session;

/// How often the ledger is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Serialize)]
struct Waited {
    #[serde(flatten)]
    coverage: Coverage,
    waited_ms: u64,
}

pub async fn wait(session: &Session, wanted: &Wait) -> Result<Exit, Trouble> {
    let began = Instant::now();
    let mut ledger = session.ledger(Purpose::Read).await?;
    let pipelines = session.selected(&wanted.selection)?;
    let mut tokens: Vec<Option<Moment>> = vec![wanted.token.clone(); pipelines.len()];
    let mut sources: Vec<Option<SourcePorts>> = vec![None; pipelines.len()];
    let mut told = String::new();
    loop {
        let mut answers = Vec::new();
        let mut waits = Vec::new();
        for ((pipeline, token), source) in pipelines.iter().zip(&mut tokens).zip(&mut sources) {
            let known = Known::read(&ledger, &pipeline.name).await?;
            if token.is_none() {
                *token = newest(session, pipeline, &known, source).await?;
            }
            let asked = Wanted { token: token.clone(), age_max: None };
            let freshness = freshness(session, pipeline, &known, &asked, source).await?;
            let (covered, mut state) = judge(&known, &asked, &freshness);
            if !covered.complete {
                waits.push(waiting(session, &known, &covered.reason));
            }
            if token.is_none() {
                state = None;
            }
            answers.push((covered, state));
        }
        let all_known = tokens.iter().all(Option::is_some);
        let coverage = Coverage::of(answers);
        let complete = coverage.complete && all_known;
        // Told once at least, however short the patience is.
        let waits = waits.join("\n");
        if !complete && waits != told {
            session.out.note(&waits);
            told = waits;
        }
        let given_up = wanted.timeout.is_some_and(|most| began.elapsed() >= most);
        if complete || given_up || pipelines.is_empty() {
            let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            session.out.show(&Waited { coverage, waited_ms }, words);
            return Ok(if complete { Exit::Done } else { Exit::Incomplete });
        }
        tokio::time::sleep(LOOK_EVERY).await;
        ledger = reopened(session, ledger, &tokens).await?;
    }
}

/// A ledger that was not there when it was opened may have been made meanwhile.
async fn reopened(
    session: &Session,
    ledger: LedgerPorts,
    tokens: &[Option<Moment>],
) -> Result<LedgerPorts, Trouble> {
    match tokens.iter().all(Option::is_some) {
        true => Ok(ledger),
        false => session.ledger(Purpose::Read).await,
    }
}

/// The moment that the source is at now, once the pipeline was announced.
async fn newest(
    session: &Session,
    pipeline: &PipelineConfig,
    known: &Known,
    source: &mut Option<SourcePorts>,
) -> Result<Option<Moment>, Trouble> {
    let Some(consumer) = known.consumer() else { return Ok(None) };
    let source = source.insert(open_source(&session.config, pipeline).await?);
    Ok(Some(source.feed.view(&consumer, &Place::START).await?.newest))
}

/// How fresh the certificate is; the source is asked only if it matters.
async fn freshness(
    session: &Session,
    pipeline: &PipelineConfig,
    known: &Known,
    asked: &Wanted,
    source: &mut Option<SourcePorts>,
) -> Result<Freshness, Trouble> {
    if !coverage::needs_source(known, asked) {
        return Ok(Freshness::AsOfCertificate);
    }
    let open = match source.take() {
        Some(open) => open,
        None => open_source(&session.config, pipeline).await?,
    };
    Ok(coverage::freshness(known, source.insert(open).feed.as_ref()).await?)
}

fn waiting(session: &Session, known: &Known, reason: &str) -> String {
    let status = PipelineStatus::of(known, session.config.worker.lease);
    let holder = match status.holder {
        None if known.closed() == Some(Code::PIPELINE_PAUSED) => {
            format!("it is paused, run `truekeep resume {}`", status.pipeline)
        }
        Some(holder) => format!("{} has the lease until {}", holder.holder, holder.until),
        None if known.state() == Some(State::Never) || known.state().is_none() => {
            "nobody works on it, start `truekeep run`".to_owned()
        }
        None => "nobody has the lease, start `truekeep run`".to_owned(),
    };
    format!("waiting for {}: {reason}; {holder}", status.pipeline)
}

fn words(waited: &Waited) -> String {
    let lines = waited.coverage.pipelines.iter().map(|covered| {
        let moment =
            covered.moment.as_ref().map_or_else(String::new, |moment| format!(" at {moment}"));
        match covered.reason.as_str() {
            "" => format!("{}: complete{moment}\n", covered.pipeline),
            reason => format!("{}: {reason}\n", covered.pipeline),
        }
    });
    lines.collect()
}
