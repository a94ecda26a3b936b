//! Whether sinks are complete, for whoever makes an action depend on it.
//!
//! Invariant: C4. What is not known, or cannot be looked up, is not complete.

use std::time::Duration;

use serde::Serialize;
use truekeep_core::certificate::{State, aggregate};
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{CaptureState, Feed};
use truekeep_core::{Moment, Place};

use crate::status::{Known, word};

/// What is asked beyond completeness.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The moment includes this one.
    pub token: Option<Moment>,
    /// What is vouched for is no older than this.
    pub age_max: Option<Duration>,
}

/// The answer for all pipelines that were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Whether all that was wanted holds for all of them.
    pub complete: bool,
    /// One word for all.
    pub state: &'static str,
    /// Each of them.
    pub pipelines: Vec<Covered>,
}

/// The answer for one pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Covered {
    /// Its name.
    pub pipeline: String,
    /// Whether all that was wanted holds.
    pub complete: bool,
    /// `unknown`, or a certificate's state.
    pub state: &'static str,
    /// Whether an operator has paused it: then nothing after the moment is on its way.
    pub paused: bool,
    /// Why it is not complete.
    pub code: Option<String>,
    /// The moment that is vouched for.
    pub moment: Option<String>,
    /// The rules it speaks of.
    pub rules: Option<u64>,
    /// Records that are parked.
    pub parked: u64,
    /// Milliseconds since what is vouched for was known to be all there is.
    pub age_ms: Option<u64>,
    /// What is missing, in words; empty if nothing is.
    pub reason: String,
}

impl Coverage {
    /// Sums the answers up. Nothing at all is not complete.
    pub fn of(pipelines: Vec<(Covered, Option<State>)>) -> Self {
        let state = aggregate(pipelines.iter().map(|(_, state)| *state));
        let pipelines: Vec<_> = pipelines.into_iter().map(|(covered, _)| covered).collect();
        Self {
            complete: !pipelines.is_empty() && pipelines.iter().all(|covered| covered.complete),
            state: word(state),
            pipelines,
        }
    }
}

/// How fresh a certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// The source has nothing after the certificate's moment, as of this one.
    Current(Moment),
    /// The source has more, or cannot say.
    AsOfCertificate,
}

/// Judges one pipeline by what its ledger knows and, if it was looked up, by its source.
pub fn judge(known: &Known, wanted: &Wanted, freshness: &Freshness) -> (Covered, Option<State>) {
    let state = known.state();
    let certificate = known.certificate.as_ref();
    let age = certificate.map(|certificate| match freshness {
        Freshness::Current(_) => Duration::ZERO,
        Freshness::AsOfCertificate => known.now.since(certificate.changed_at),
    });
    let moment = match freshness {
        Freshness::Current(moment) => Some(moment),
        Freshness::AsOfCertificate => known.moment(),
    };
    let included = includes(moment, wanted);
    let fresh = wanted.age_max.is_none_or(|most| age.is_some_and(|age| age <= most));
    let reason = match state {
        None if known.removed => "it was removed".to_owned(),
        None => "the ledger does not know it: no worker has begun".to_owned(),
        Some(State::Complete) if !included => {
            let (reached, token) = (moment.cloned(), wanted.token.clone());
            let (reached, token) = (reached.unwrap_or_default(), token.unwrap_or_default());
            format!("the moment {reached} does not include {token}")
        }
        Some(State::Complete) if !fresh => {
            format!("older than asked: {} s", age.unwrap_or_default().as_secs())
        }
        Some(State::Complete) => String::new(),
        Some(other) => match certificate.and_then(|certificate| certificate.code.as_ref()) {
            Some(code) => format!("{}: {}", other.as_str(), meaning(code)),
            None => format!("{}{}", other.as_str(), counts(known)),
        },
    };
    let covered = Covered {
        pipeline: known.scope.pipeline().to_string(),
        complete: reason.is_empty(),
        state: word(state),
        paused: known.closed() == Some(Code::PIPELINE_PAUSED),
        code: certificate.and_then(|c| c.code.as_ref()).map(Code::to_string),
        moment: moment.map(Moment::to_string),
        rules: certificate.map(|certificate| certificate.rules.get()),
        parked: certificate.map_or(0, |certificate| certificate.parked),
        age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        reason,
    };
    (covered, state)
}

fn includes(moment: Option<&Moment>, wanted: &Wanted) -> bool {
    let included = |token| moment.is_some_and(|moment| moment.includes(token));
    wanted.token.as_ref().is_none_or(included)
}

fn meaning(code: &Code) -> &str {
    code.entry().map_or(code.as_str(), |entry| entry.meaning).trim_end_matches('.')
}

fn counts(known: &Known) -> String {
    match &known.certificate {
        Some(certificate) if certificate.parked > 0 => {
            format!(": {} parked", certificate.parked)
        }
        _ => String::new(),
    }
}

/// Whether the certificate is too old for what is wanted as it stands, so that the source has to be
/// asked.
pub fn needs_source(known: &Known, wanted: &Wanted) -> bool {
    let aged = |most: Duration| {
        let certificate = known.certificate.as_ref();
        certificate.is_some_and(|certificate| known.now.since(certificate.changed_at) > most)
    };
    let old = wanted.age_max.is_some_and(aged) || !includes(known.moment(), wanted);
    known.state() == Some(State::Complete) && old
}

/// Asks the source whether it has anything after the moment: an idle pipeline writes nothing, so
/// its certificate does not get younger by itself, although a source's moments may go on without a
/// change of the table.
///
/// # Errors
/// The source's.
pub async fn freshness(known: &Known, feed: &dyn Feed) -> Result<Freshness, PortError> {
    let tail = known.phase.as_ref().and_then(truekeep_core::follow::Phase::tail);
    let (Some(consumer), Some(moment), Some(tail)) = (known.consumer(), known.moment(), tail)
    else {
        return Ok(Freshness::AsOfCertificate);
    };
    let place = Place { passed: moment.clone(), ..Place::START };
    let page = feed.changes(&consumer, &place, 1).await?;
    let idle = page.changes.is_empty() && page.end;
    let trusted = matches!(page.view.capture, CaptureState::Trusted(_));
    // Another source, or one that went back, may have nothing new either.
    let ours = tail.admit(&page.view).is_ok();
    let current = page.moment.filter(|_| idle && trusted && ours);
    Ok(current.map_or(Freshness::AsOfCertificate, Freshness::Current))
}

#[cfg(test)]
mod tests;
