//! Checkpoints: a phase and what is written beside it.

use crate::certificate::{Claim, Tally};
use crate::guard::{Guard, Lost};
use crate::ports::{Event, NewItem, RunHealth, RunState, Settle};
use crate::{CommitToken, RunId, RunVersion, ScopeId};

/// One thing to write in a commit, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum LedgerWrite {
    /// Stores items.
    Enqueue(Vec<NewItem>),
    /// Removes items that are done.
    Settle(Vec<Settle>),
    /// Judges the scope's certificate ([`crate::certificate::judge`]) after the writes before it,
    /// with the items as they are in this transaction.
    Certify(Claim),
    /// Adds to the history.
    Record(Event),
}

/// A checkpoint: the phase and everything beside it, in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Which run.
    pub run: RunId,
    /// Of which scope.
    pub scope: ScopeId,
    /// What the writer believes.
    pub guard: Guard,
    /// Identifies this commit; the same token is used when the same commit is repeated.
    pub token: CommitToken,
    /// The phase, as JSON.
    pub phase: String,
    /// Whether the run goes on.
    pub state: RunState,
    /// What ails it.
    pub health: RunHealth,
    /// Records delivered by this turn.
    pub delivered: u64,
    /// What is written beside it.
    pub writes: Vec<LedgerWrite>,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It landed: the run has this version and the scope this many items.
    Landed(RunVersion, Tally),
    /// It did not, and nothing changed.
    Lost(Lost),
}
