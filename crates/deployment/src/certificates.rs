//! Watches certificates, so that a worker can tell when a pipeline is complete and when it is no more.
//!
//! A periodic look at the ledger and no event: whoever changes a certificate (another worker, an
//! operator, new rules), it is seen.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use truekeep_core::certificate::{Certificate, State};
use truekeep_core::code::Code;
use truekeep_core::ports::Clock;
use truekeep_core::{Moment, ScopeId};

use crate::clock::SystemClock;
use crate::config::PipelineConfig;
use crate::status::LedgerPorts;

/// How often is looked: one row is read for each pipeline.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate that began or ceased to be complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// It is complete at this moment.
    Complete(Moment),
    /// It is complete no more.
    Incomplete {
        /// What it says instead; none if the pipeline is gone.
        state: Option<State>,
        /// Why.
        code: Option<Code>,
    },
}

/// Looks for ever; `told` hears of each certificate that turned. What is found first is how it was.
///
/// A ledger that does not answer says nothing: the worker tells that by itself.
pub async fn watch(
    ledger: &LedgerPorts,
    pipelines: &[&PipelineConfig],
    told: impl Fn(&ScopeId, &Turned),
) -> Infallible {
    let mut before = BTreeMap::new();
    loop {
        for pipeline in pipelines {
            let scope = ScopeId::whole(pipeline.name.clone());
            let Ok(found) = ledger.archive.certificate(&scope).await else { continue };
            let state = found.as_ref().map(|certificate| certificate.state);
            let is_complete = state == Some(State::Complete);
            let was_complete = before.insert(scope.clone(), is_complete);
            if let Some(turned) = was_complete.and_then(|was| turned(was, found)) {
                told(&scope, &turned);
            }
        }
        SystemClock.sleep(LOOK_EVERY).await;
    }
}

fn turned(was_complete: bool, found: Option<Certificate>) -> Option<Turned> {
    let state = found.as_ref().map(|certificate| certificate.state);
    match (was_complete, state == Some(State::Complete)) {
        (true, true) | (false, false) => None,
        (false, true) => found.and_then(|found| found.moment).map(Turned::Complete),
        (true, false) => {
            Some(Turned::Incomplete { state, code: found.and_then(|found| found.code) })
        }
    }
}

#[cfg(test)]
mod tests;
