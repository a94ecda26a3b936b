//! Reconcile: holds the feed against the table and the sink against the feed, and repairs. Under new
//! rules it is a rebuild: everything is delivered again before the sink is held against the feed.
//!
//! It repairs nothing itself. What differs is given a fresh number in the feed (a row) or a fresh
//! tombstone (an orphan), and follow delivers it like any change: one delivery path, one order, and
//! a record that is written meanwhile is simply newer still.
//!
//! Invariants: Q1 (nothing is deleted before all orphans are counted and the guard has let them
//! pass), Q2 (an orphan is judged again, in the source, when its tombstone is written), Q3 (what
//! follow has yet to deliver is no difference), Q4 (a rebuild ends only after a comparison under its
//! rules).
//!
//! ```text
//! Beginning ─▶ Auditing ─▶ [Scanning] ─▶ Comparing ─▶ [Purging] ─▶ Settling ─▶ done
//!                                            ▲                        │
//!                                            └── once more, if anything was repaired
//! ```

mod blast;
mod phase;
mod report;
mod scan;
mod seen;

use serde::{Deserialize, Serialize};

pub use blast::{BlastGuard, Refusal};
pub use phase::Phase;
pub use report::Report;
pub use scan::Scan;
pub use seen::{Audited, Command, Found, Observation};

use crate::code::Code;
use crate::compare::Owns;
use crate::ports::{CaptureState, LedgerWrite, NewItem, RunState};
use crate::procedure::{Due, Misplaced, Procedure, Step};
use crate::{Key, RulesNumber, Stamp, Timestamp, limits};

/// What a run of reconcile works under, frozen when it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// How much may be deleted without asking.
    pub guard: BlastGuard,
    /// An operator has said yes to deletions that the guard refuses.
    pub confirmed: bool,
    /// Documents are compared, not only ranks.
    #[serde(default)]
    pub deep: bool,
    /// Which entries of the sink are the pipeline's.
    #[serde(default)]
    pub owns: Owns,
    /// The rules under which everything is delivered again first, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<RulesNumber>,
    /// How often it began anew because the rules had changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for Terms {
    /// The default guard, nobody has said yes, ranks alone are compared, and all is owned.
    fn default() -> Self {
        let guard = BlastGuard::default();
        let (confirmed, deep) = (false, false);
        Self { guard, confirmed, deep, owns: Owns::All, rebuild: None, restarts: 0 }
    }
}

/// What is stored of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// What it works under.
    pub terms: Terms,
    /// Where it is.
    pub phase: Phase,
}

impl Stored {
    /// A run that has not begun.
    pub fn first(terms: Terms) -> Self {
        Self { terms, phase: Phase::Beginning }
    }

    /// The same run as a rebuild under these rules, from its beginning. What it has seen was under
    /// others, and so was an operator's yes. A run that never comes to its end ends here.
    #[must_use]
    pub fn under(self, rules: RulesNumber) -> Self {
        if self.phase == Phase::Beginning && self.terms.rebuild.is_none() {
            return Self::first(Terms { rebuild: Some(rules), ..self.terms });
        }
        let restarts = self.terms.restarts + 1;
        let terms = Terms { rebuild: Some(rules), confirmed: false, restarts, ..self.terms };
        if restarts > limits::RESTARTS_MAX {
            return Self { terms, phase: self.phase.failed(Code::RULES_UNSETTLED) };
        }
        Self::first(terms)
    }

    /// What follow is to be told: why the sink is not to be trusted, that it is again, or nothing.
    pub fn judgement(&self) -> Option<Option<Code>> {
        // Follow knows that the sink is not to be trusted, and why.
        let known = self.terms.rebuild.is_some() && self.phase.state() == RunState::Active;
        match &self.phase {
            Phase::Beginning => None,
            Phase::Auditing { report, .. }
            | Phase::Scanning { report, .. }
            | Phase::Comparing { report, .. }
            | Phase::Purging { report, .. }
            | Phase::Settling { report } => {
                (!known && !report.clean()).then_some(Some(Code::DRIFT_FOUND))
            }
            Phase::Done { .. } => Some(None),
            // A run that could not look has learned nothing.
            Phase::Failed { code, report } => {
                let looked = report.live + report.listed > 0 || !report.clean();
                looked.then(|| Some(code.clone()))
            }
        }
    }
}

/// The procedure.
#[derive(Debug, Clone, Copy)]
pub struct Reconcile;

impl Procedure for Reconcile {
    type Terms = Terms;
    type Phase = Phase;
    type Command = Command;
    type Observation = Observation;

    fn due(terms: &Terms, phase: &Phase, _: Timestamp) -> Due<Command> {
        Due::Now(match phase {
            Phase::Beginning => Command::Look,
            Phase::Auditing { after, report } => {
                let free = terms.guard.orphans_free.saturating_sub(report.ghosts);
                let ghosts_max = if terms.confirmed { u64::MAX } else { free };
                Command::Audit { after: after.clone(), ghosts_max }
            }
            Phase::Scanning { scan, .. } => scan.due(),
            Phase::Comparing { after, report } => {
                Command::Compare { after: after.clone(), park: report.rounds > 0 }
            }
            Phase::Purging { after, report } => {
                let left =
                    |judged: u64, done| (judged + terms.guard.orphans_free).saturating_sub(done);
                let altered = report.altered.filter(|altered| *altered > 0);
                Command::Purge {
                    after: after.clone(),
                    orphans_max: left(report.orphans, report.deleted + report.refused),
                    altered_max: altered.map(|altered| left(altered, report.mended)),
                }
            }
            Phase::Settling { report } => Command::Await { numbered: report.numbered },
            // An ended run is never asked; looking changes nothing.
            Phase::Done { .. } | Phase::Failed { .. } => Command::Look,
        })
    }

    fn on(
        terms: &Terms,
        phase: Phase,
        seen: Observation,
        _: Timestamp,
    ) -> Result<Step<Phase>, Misplaced> {
        let misplaced = Misplaced { phase: phase.name(), observation: seen.name() };
        let (next, parked) = match (phase, seen) {
            (Phase::Beginning, Observation::Looked(capture)) => (looked(terms, &capture), None),
            (phase, Observation::Looked(capture)) => (distrusted(phase, capture), None),
            (phase, Observation::Refused(code)) => (phase.failed(code), None),
            (
                Phase::Comparing { report, .. },
                Observation::Compared { next, found, park, numbered },
            ) => {
                let (next, parked) = ranged(terms, report, next, (found, park), numbered);
                (next, Some(parked).filter(|parked| !parked.is_empty()))
            }
            (phase, seen) => (follows(terms, phase, seen).ok_or(misplaced)?, None),
        };
        let mut writes = next.events(terms);
        writes.extend(parked.map(LedgerWrite::Enqueue));
        Ok(Step { next, writes })
    }
}

/// What follows of what a phase asked for; none if it did not.
fn follows(terms: &Terms, phase: Phase, seen: Observation) -> Option<Phase> {
    Some(match (phase, seen) {
        (Phase::Auditing { report, .. }, Observation::Audited { next, found, numbered }) => {
            audited(terms, report, next, found, numbered)
        }
        (Phase::Scanning { scan, report }, seen) => scan.follows(report, seen)?,
        (phase, Observation::TookOver { .. }) => phase,
        (phase @ (Phase::Comparing { .. } | Phase::Purging { .. }), Observation::Listing) => {
            phase.listing()
        }
        (
            Phase::Purging { mut report, .. },
            Observation::Purged { next, buried, mended, foreign, refused, exceeded, numbered },
        ) => {
            report.deleted += buried + foreign;
            report.mended += mended;
            report.foreign += foreign;
            report.refused += refused;
            report.number(numbered);
            purged(report, next, exceeded)
        }
        (Phase::Settling { report }, Observation::Awaited { reached }) => settled(report, reached),
        (
            Phase::Beginning
            | Phase::Auditing { .. }
            | Phase::Comparing { .. }
            | Phase::Purging { .. }
            | Phase::Settling { .. }
            | Phase::Done { .. }
            | Phase::Failed { .. },
            _,
        ) => return None,
    })
}

/// After the first look only a broken capture changes anything.
fn distrusted(phase: Phase, capture: CaptureState) -> Phase {
    match capture {
        CaptureState::Trusted(_) => phase,
        CaptureState::Filling => phase.failed(Code::CAPTURE_FILLING),
        CaptureState::Broken(code) => phase.failed(code),
    }
}

fn ranged(
    terms: &Terms,
    mut report: Report,
    next: Option<Key>,
    (found, park): (Found, Vec<NewItem>),
    numbered: Option<Stamp>,
) -> (Phase, Vec<NewItem>) {
    report.add(found);
    report.parked += park.len() as u64;
    report.number(numbered);
    let phase = match next {
        Some(_) => Phase::Comparing { after: next, report },
        None => compared(terms, report),
    };
    (phase, park)
}

fn looked(terms: &Terms, capture: &CaptureState) -> Phase {
    let report = Report::of(terms);
    match capture {
        CaptureState::Trusted(_) => Phase::Auditing { after: None, report },
        // It ends by itself; nothing was looked at yet.
        CaptureState::Filling => Phase::Beginning,
        CaptureState::Broken(code) => Phase::Failed { code: code.clone(), report },
    }
}

fn audited(
    terms: &Terms,
    mut report: Report,
    next: Option<Key>,
    found: Audited,
    numbered: Option<Stamp>,
) -> Phase {
    report.capture_missed += found.missed;
    report.rewritten += found.rewritten;
    report.ghosts += found.ghosts;
    report.number(numbered);
    match next {
        _ if report.ghosts > terms.guard.orphans_free && !terms.confirmed => {
            Phase::Failed { code: Code::GUARD_REFUSED, report }
        }
        Some(_) => Phase::Auditing { after: next, report },
        None if terms.rebuild.is_some() => Phase::Scanning { scan: Scan::default(), report },
        None => Phase::Comparing { after: None, report },
    }
}

fn purged(report: Report, next: Option<Key>, exceeded: bool) -> Phase {
    match next {
        _ if exceeded => Phase::Failed { code: Code::GUARD_REFUSED, report },
        Some(_) => Phase::Purging { after: next, report },
        None if report.refused > 0 => Phase::Failed { code: Code::SINK_REFUSED, report },
        None => Phase::Settling { report },
    }
}

/// After the last range (Q1): the number and the share of orphans, and of documents to be written
/// again, are known only now.
fn compared(terms: &Terms, mut report: Report) -> Phase {
    if report.ahead > 0 {
        return Phase::Failed { code: Code::SINK_AHEAD, report };
    }
    if report.rounds > 0 {
        report.settle_deletions();
        return Phase::Settling { report };
    }
    if report.orphans + report.altered.unwrap_or(0) == 0 {
        return Phase::Settling { report };
    }
    match terms.guard.judge(&report) {
        Err(_) if !terms.confirmed => Phase::Failed { code: Code::GUARD_REFUSED, report },
        Ok(()) | Err(_) => Phase::Purging { after: None, report },
    }
}

fn settled(mut report: Report, reached: bool) -> Phase {
    if !reached {
        return Phase::Settling { report };
    }
    let first = report.rounds == 0;
    if first && report.late > 0 && !report.retaken {
        report.retaken = true;
        report.waiting = 0;
        return Phase::Comparing { after: None, report };
    }
    report.rounds += 1;
    let again = first && report.repaired();
    if again { Phase::Comparing { after: None, report } } else { Phase::Done { report } }
}

#[cfg(test)]
mod tests;
