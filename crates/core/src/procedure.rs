//! A procedure: a pure step machine that says what is due and what follows from what was seen.
//!
//! Invariants: P1 (perform, then commit), P2 (facts only), P3 (a repeat is harmless).

use crate::Timestamp;
use crate::ports::LedgerWrite;

/// What a phase waits for or wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due<C> {
    /// One thing to do now, through one port.
    Now(C),
    /// Nothing before this time.
    At(Timestamp),
}

/// What follows from an observation: lands in one ledger transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<P> {
    /// The phase to store.
    pub next: P,
    /// What is written beside it.
    pub writes: Vec<LedgerWrite>,
}

/// An observation that the phase did not ask for: a bug of ours. It ends the run, not the worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the phase {phase} cannot take the observation {observation}")]
pub struct Misplaced {
    /// The phase that was asked.
    pub phase: &'static str,
    /// The observation it was given.
    pub observation: &'static str,
}

/// A pure step machine. The worker, the explorer and `explain` run the same functions.
pub trait Procedure {
    /// Frozen when a run begins: sizes, policies, the rules in force.
    type Terms;
    /// Where the run is; each variant carries only what is valid there.
    type Phase;
    /// One thing to do through one port.
    type Command;
    /// What was seen: facts of the domain, never trouble of input and output.
    type Observation;

    /// What is due in this phase at this time.
    fn due(terms: &Self::Terms, phase: &Self::Phase, now: Timestamp) -> Due<Self::Command>;

    /// What follows from what was seen.
    ///
    /// # Errors
    /// [`Misplaced`] if the phase did not ask for it.
    fn on(
        terms: &Self::Terms,
        phase: Self::Phase,
        seen: Self::Observation,
        now: Timestamp,
    ) -> Result<Step<Self::Phase>, Misplaced>;
}
