//! Runs: what is under way in a scope, where it is, and how an idle one is looked at.

use serde::{Deserialize, Serialize};

use crate::certificate::Tally;
use crate::code::Code;
use crate::{Attempt, CommitToken, Epoch, RulesNumber, RunId, RunVersion, ScopeId, Timestamp};

/// The procedures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcedureKind {
    /// Deliver every change, for ever.
    Follow,
    /// Hold both sides against each other, and repair.
    Reconcile,
}

/// Whether a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It has work or waits for some.
    Active,
    /// It ended well.
    Succeeded,
    /// It ended for this reason, and stays the scope's run until it is retried.
    Failed(Code),
    /// It ended for this reason, and another may begin.
    Stopped(Code),
}

/// The trouble a run is in, for operators; decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHealth {
    /// Failures in a row.
    pub attempts: Attempt,
    /// The last failure's code, while it lasts.
    pub code: Option<Code>,
    /// Its text, bounded.
    pub text: String,
    /// When it is tried again.
    pub due_at: Option<Timestamp>,
}

/// One effort to make a scope true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which run.
    pub id: RunId,
    /// Of which scope.
    pub scope: ScopeId,
    /// What it does.
    pub procedure: ProcedureKind,
    /// Makes opening idempotent: one open run per scope and procedure, named by its key.
    pub key: String,
    /// Which claim of completeness it works for.
    pub epoch: Epoch,
    /// Counts its commits.
    pub version: RunVersion,
    /// Where it is, as the procedure's JSON.
    pub phase: String,
    /// Whether it goes on.
    pub state: RunState,
    /// What ails it.
    pub health: RunHealth,
    /// The token of the commit that made this version; none before the first.
    pub token: Option<CommitToken>,
    /// Records delivered so far, for progress.
    pub delivered: u64,
}

/// A run to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id, drawn by the caller.
    pub id: RunId,
    /// Its scope.
    pub scope: ScopeId,
    /// What it does.
    pub procedure: ProcedureKind,
    /// Its idempotency key.
    pub key: String,
    /// Its first phase, as JSON.
    pub phase: String,
}

/// The answer to opening a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The run of this key, new or found.
    Run(Run),
    /// The scope has an open run of this procedure under another key.
    Conflict(Run),
}

/// What an idle scope looks at: cheap to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// The run's version; moves when an operator wants something.
    pub run_version: RunVersion,
    /// The rules in force.
    pub rules: RulesNumber,
    /// Whether an operator has paused the pipeline.
    pub paused: bool,
    /// The scope's items.
    pub tally: Tally,
    /// When the next item may be tried.
    pub next_due: Option<Timestamp>,
    /// The ledger's now.
    pub now: Timestamp,
}
