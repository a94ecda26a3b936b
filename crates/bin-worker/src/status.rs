//! What the worker says of its pipelines: the ledger's word, and what this process has seen.

use std::time::Duration;

use serde::Serialize;
use truekeep::Config;
use truekeep::status::{Known, LedgerPorts, PipelineStatus};
use truekeep::trouble::remedy;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::{PipelineName, ScopeId};

use crate::board::{Ailment, Board, Facts};
use crate::readiness::unready;

/// How long the ledger may take to answer one question of a reader.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// One pipeline as it is seen right now.
#[derive(Debug)]
pub struct Seen {
    /// Its name.
    pub pipeline: PipelineName,
    /// What this process has seen.
    pub facts: Facts,
    /// What the ledger knows.
    pub known: Result<Known, PortError>,
    /// Why nobody works on it.
    pub unready: Option<Ailment>,
    ttl: Duration,
}

impl Seen {
    /// Judges what was found; `ttl` is the longest that a lease may run, `now` is by the clock of
    /// the facts.
    pub fn of(
        pipeline: PipelineName,
        facts: Facts,
        known: Result<Known, PortError>,
        ttl: Duration,
        now: Duration,
    ) -> Self {
        let unready = unready(&facts, &known, ttl, now);
        Self { pipeline, facts, known, unready, ttl }
    }

    /// Whether this process has the lease.
    pub fn ours(&self) -> bool {
        let lease = self.known.as_ref().ok().and_then(|known| known.holder(self.ttl));
        lease.is_some_and(|lease| self.facts.fence == Some(lease.fence))
    }
}

/// Looks at all pipelines, in the order of their names. Reads only.
pub async fn look(config: &Config, ledger: &LedgerPorts, board: &Board) -> Vec<Seen> {
    let mut all = Vec::new();
    for pipeline in &config.pipelines {
        let name = &pipeline.name;
        let known = match tokio::time::timeout(ANSWER_MAX, Known::read(ledger, name)).await {
            Ok(known) => known,
            Err(late) => {
                let code = Code::LEDGER_UNAVAILABLE;
                Err(PortError::new("read the ledger", FailureClass::Retry, code).caused_by(late))
            }
        };
        let facts = board.facts(&ScopeId::whole(name.clone()));
        all.push(Seen::of(name.clone(), facts, known, config.worker.lease, board.now()));
    }
    all
}

/// Something that is wrong, with what to do.
#[derive(Debug, Serialize)]
pub struct Complaint {
    code: String,
    text: String,
    remedy: &'static str,
}

impl From<&Ailment> for Complaint {
    fn from(ailment: &Ailment) -> Self {
        let meaning = ailment.code.entry().map_or("", |entry| entry.meaning);
        let text = if ailment.text.is_empty() { meaning } else { &ailment.text };
        let remedy = remedy(&ailment.code);
        Self { code: ailment.code.to_string(), text: text.to_owned(), remedy }
    }
}

/// Whether everything is worked on, and what is not.
#[derive(Debug, Serialize)]
pub struct Readiness {
    /// Whether every pipeline is worked on.
    pub ready: bool,
    stopping: bool,
    unready: Vec<Unready>,
}

#[derive(Debug, Serialize)]
struct Unready {
    pipeline: String,
    #[serde(flatten)]
    complaint: Complaint,
}

impl Readiness {
    /// Sums up what was seen; a worker that stops is not ready.
    pub fn of(seen: &[Seen], stopping: bool) -> Self {
        let unready = seen.iter().filter_map(|seen| {
            let complaint = seen.unready.as_ref()?.into();
            Some(Unready { pipeline: seen.pipeline.to_string(), complaint })
        });
        let unready: Vec<_> = unready.collect();
        Self { ready: unready.is_empty() && !stopping, stopping, unready }
    }
}

/// Everything there is to say.
#[derive(Debug, Serialize)]
pub struct Status {
    version: &'static str,
    ready: bool,
    stopping: bool,
    pipelines: Vec<Line>,
}

/// One pipeline.
#[derive(Debug, Serialize)]
struct Line {
    pipeline: String,
    ready: bool,
    /// Whether this process has the lease.
    ours: bool,
    /// By how many versions the cursor is behind the feed; none if another process knows it.
    behind: Option<u64>,
    /// Milliseconds since this process last heard of it.
    heard_ms: u64,
    /// What is wrong with it, wherever that is known.
    complaint: Option<Complaint>,
    /// What the ledger knows; none if it cannot be read.
    ledger: Option<PipelineStatus>,
}

impl Status {
    /// Puts it together; `now` is by the clock of the facts.
    pub fn of(seen: &[Seen], stopping: bool, now: Duration) -> Self {
        let ready = Readiness::of(seen, stopping).ready;
        let pipelines = seen.iter().map(|seen| Line::of(seen, now)).collect();
        Self { version: env!("CARGO_PKG_VERSION"), ready, stopping, pipelines }
    }
}

impl Line {
    fn of(seen: &Seen, now: Duration) -> Self {
        let known = seen.known.as_ref().ok();
        let heard = now.saturating_sub(seen.facts.heard_at);
        let complaint = seen.unready.as_ref().or(seen.facts.ailment()).map(Complaint::from);
        Self {
            pipeline: seen.pipeline.to_string(),
            ready: seen.unready.is_none(),
            ours: seen.ours(),
            behind: seen.facts.behind,
            heard_ms: u64::try_from(heard.as_millis()).unwrap_or(u64::MAX),
            complaint: complaint.or_else(|| known.and_then(of_ledger)),
            ledger: known.map(|known| PipelineStatus::of(known, seen.ttl)),
        }
    }
}

/// What the ledger says is wrong: with the run, or with the certificate.
fn of_ledger(known: &Known) -> Option<Complaint> {
    let health = known.run.as_ref().map(|run| &run.health);
    let of_run = health
        .and_then(|health| Some(Ailment { code: health.code.clone()?, text: health.text.clone() }));
    let of_certificate = || {
        let code = known.certificate.as_ref()?.code.clone()?;
        Some(Ailment { code, text: String::new() })
    };
    of_run.or_else(of_certificate).as_ref().map(Complaint::from)
}
