//! Follow: delivers every change of the feed, for ever, and says how far it is.
//!
//! Invariants: F1 (the cursor), F2 (things that went back), F3 (killers), S3 (moments).
//!
//! ```text
//! Opening ──opened──▶ Tailing ──page, redelivery, registration──▶ Tailing
//!    ▲  │                │
//!    │  └──refused──┐    └── went back, ahead, needs an operator ──┐
//!    │              ▼                                              ▼
//!    └──look again── Halted ◀──────────────────────────────────────┘
//! ```
//! A source that went back may lead to Repairing, which numbers it anew and then goes on to Tailing.
//! A take-over of the lease, and new rules, lead to Opening from everywhere but there.

mod halted;
mod opening;
mod probe;
mod repairing;
mod tail;
mod tailing;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use halted::Halted;
pub use opening::{Opened, Opening};
pub use probe::Probe;
pub use repairing::{Repairing, SourceWentBack, Stage, Suspect};
pub use tail::Tail;
pub use tailing::{Delivered, Failed, PageSeen, Tailing};

use crate::code::Code;
use crate::ports::{Consumer, LedgerWrite, Registration};
use crate::procedure::{Due, Misplaced, Procedure, Step};
use crate::retry::RetryPolicy;
use crate::{Attempt, Place, RulesNumber, Timestamp, Version};

/// What a run of follow works under.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The rules in force.
    pub rules: RulesNumber,
    /// Who we are in the source and in the sink.
    pub consumer: Consumer,
    /// The most rows of a page.
    pub page_rows: u32,
    /// When a failed delivery is tried again, and how often.
    pub delivery: RetryPolicy,
    /// How often a moving cursor is acknowledged in the source.
    pub register_every: Duration,
    /// How often a halted run looks again.
    pub halted_recheck: Duration,
    /// What to do about a source that went back.
    pub source_went_back: SourceWentBack,
}

/// Where the run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// Looks whether source, sink and ledger still belong together.
    Opening(Opening),
    /// Delivers.
    Tailing(Tailing),
    /// Needs an operator; looks again now and then.
    Halted(Halted),
    /// Numbers a source anew that went back.
    Repairing(Repairing),
}

impl Phase {
    /// The first phase of a new run.
    pub const START: Self = Self::Opening(Opening { before: None });

    /// What the run remembers, if it ever tailed.
    pub fn tail(&self) -> Option<&Tail> {
        match self {
            Self::Opening(opening) => opening.before.as_ref(),
            Self::Tailing(tailing) => Some(&tailing.tail),
            Self::Halted(halted) => halted.before.as_ref(),
            Self::Repairing(repairing) => Some(&repairing.before),
        }
    }

    fn into_tail(self) -> Option<Tail> {
        match self {
            Self::Opening(opening) => opening.before,
            Self::Tailing(tailing) => Some(tailing.tail),
            Self::Halted(halted) => halted.before,
            Self::Repairing(repairing) => Some(repairing.before),
        }
    }

    /// The phase's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Opening(_) => "opening",
            Self::Tailing(_) => "tailing",
            Self::Halted(_) => "halted",
            Self::Repairing(_) => "repairing",
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Prepare the sink, read its mark and the source's view.
    Open,
    /// Store this acknowledgement in the source.
    Register(Registration),
    /// Nothing outside: the next page is to be marked as one that may kill.
    Arm,
    /// Deliver items that are due, or else the next page of the feed.
    Deliver {
        /// The place in the feed.
        after: Place,
        /// The most rows of the page.
        rows_max: u32,
    },
    /// Make the source's counter go on above a version, and every row to be numbered anew.
    BeginAgain {
        /// Greater than any that was seen.
        above: Version,
    },
    /// Number the next rows.
    Fill,
    /// Read one row of the feed and do not deliver it: it killed too many workers.
    Isolate {
        /// The place in the feed.
        after: Place,
    },
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// The lease is ours since a moment ago.
    TookOver {
        /// Whether the holder before died.
        after_crash: bool,
    },
    /// Source and sink, before anything is delivered.
    Opened(Opened),
    /// The acknowledgement is stored.
    Registered(Registration),
    /// The next page is marked.
    Armed,
    /// A page was delivered.
    Page(PageSeen),
    /// Items were delivered.
    Redelivered(Delivered),
    /// A page of the row that kills, which failed for good; an empty one if the feed has none there.
    Isolated(PageSeen),
    /// What a reconcile has found: why the sink is not to be trusted, or that it is again.
    Judged(Option<Code>),
    /// A rebuild has delivered again all that is of earlier rules; whether all of it is there, a
    /// comparison has yet to say.
    Renewed,
    /// The counter goes on above.
    BegunAgain,
    /// Rows were numbered.
    Filled {
        /// Whether all are.
        done: bool,
    },
    /// Something needs an operator.
    Refused(Code),
}

impl Observation {
    fn name(&self) -> &'static str {
        match self {
            Self::TookOver { .. } => "took_over",
            Self::Opened(_) => "opened",
            Self::Registered(_) => "registered",
            Self::Armed => "armed",
            Self::Page(_) => "page",
            Self::Redelivered(_) => "redelivered",
            Self::Isolated(_) => "isolated",
            Self::Judged(_) => "judged",
            Self::Renewed => "renewed",
            Self::BegunAgain => "begun_again",
            Self::Filled { .. } => "filled",
            Self::Refused(_) => "refused",
        }
    }
}

/// The procedure.
#[derive(Debug, Clone, Copy)]
pub struct Follow;

impl Procedure for Follow {
    type Terms = Terms;
    type Phase = Phase;
    type Command = Command;
    type Observation = Observation;

    fn due(terms: &Terms, phase: &Phase, now: Timestamp) -> Due<Command> {
        match phase {
            Phase::Opening(_) => Due::Now(Command::Open),
            Phase::Tailing(tailing) if tailing.tail.rules != terms.rules => Due::Now(Command::Open),
            Phase::Tailing(tailing) => tailing.due(terms, now),
            Phase::Halted(halted) => halted.due(terms, now),
            Phase::Repairing(repairing) if repairing.before.rules != terms.rules => {
                Due::Now(Command::Open)
            }
            Phase::Repairing(repairing) => repairing.due(),
        }
    }

    fn on(
        terms: &Terms,
        phase: Phase,
        seen: Observation,
        now: Timestamp,
    ) -> Result<Step<Phase>, Misplaced> {
        let halted_by = match &phase {
            Phase::Halted(halted) => Some(halted.code.clone()),
            Phase::Opening(_) | Phase::Tailing(_) | Phase::Repairing(_) => None,
        };
        let mut step = follows(terms, phase, seen, now)?;
        if let Phase::Halted(halted) = &step.next
            && halted_by.as_ref() == Some(&halted.code)
        {
            // Still halted for the same reason: told once.
            step.writes.retain(|write| !matches!(write, LedgerWrite::Record(_)));
        }
        Ok(step)
    }
}

/// What follows from what was seen, in each phase: the transition table.
fn follows(
    terms: &Terms,
    phase: Phase,
    seen: Observation,
    now: Timestamp,
) -> Result<Step<Phase>, Misplaced> {
    let misplaced = Misplaced { phase: phase.name(), observation: seen.name() };
    match (phase, seen) {
        (Phase::Repairing(repairing), Observation::TookOver { .. }) => Ok(repairing.took_over()),
        (phase, Observation::TookOver { after_crash }) => {
            Ok(Opening::took_over(terms, phase.into_tail(), after_crash))
        }
        (Phase::Repairing(repairing), Observation::Opened(opened))
            if repairing.before.rules == terms.rules =>
        {
            Ok(repairing.opened(terms, &opened, now))
        }
        (Phase::Halted(halted), Observation::Opened(opened)) => {
            let opening = Opening { before: halted.before };
            Ok(opening.opened(terms, &opened, halted.suspect.as_ref(), now))
        }
        (phase, Observation::Opened(opened)) => {
            Ok(Opening { before: phase.into_tail() }.opened(terms, &opened, None, now))
        }
        (phase, Observation::Refused(code)) => {
            Ok(Halted::enter(phase.into_tail(), code, None, now))
        }
        (Phase::Repairing(repairing), Observation::BegunAgain) => Ok(repairing.begun_again()),
        (Phase::Repairing(repairing), Observation::Filled { done }) => Ok(repairing.filled(done)),
        (Phase::Tailing(tailing), Observation::Registered(registration)) => {
            Ok(tailing.registered(registration, now))
        }
        (Phase::Tailing(tailing), Observation::Judged(distrust)) => Ok(tailing.judged(distrust)),
        (Phase::Tailing(tailing), Observation::Renewed) => Ok(tailing.renewed()),
        (Phase::Tailing(tailing), Observation::Armed) => Ok(tailing.armed()),
        (Phase::Tailing(tailing), Observation::Page(page)) => Ok(tailing.page(terms, page, now)),
        (Phase::Tailing(tailing), Observation::Redelivered(delivered)) => {
            Ok(tailing.redelivered(terms, delivered, now))
        }
        (Phase::Tailing(tailing), Observation::Isolated(page)) => {
            Ok(tailing.isolated(terms, page, now))
        }
        (
            Phase::Opening(_) | Phase::Halted(_) | Phase::Repairing(_),
            Observation::Registered(_)
            | Observation::Armed
            | Observation::Judged(_)
            | Observation::Renewed
            | Observation::Page(_)
            | Observation::Redelivered(_)
            | Observation::Isolated(_),
        )
        | (
            Phase::Opening(_) | Phase::Halted(_) | Phase::Tailing(_),
            Observation::BegunAgain | Observation::Filled { .. },
        ) => Err(misplaced),
    }
}

/// Whether a try was the last one.
fn exhausted(policy: &RetryPolicy, attempts: Attempt) -> bool {
    attempts >= policy.attempts_max
}

#[cfg(test)]
mod tests;
