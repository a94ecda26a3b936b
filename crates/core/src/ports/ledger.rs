//! The ledger: the worker's own durable memory. Four narrow ports, one store.
//!
//! One commit is one transaction: there is no window between items, checkpoint and certificate.
//! A commit that was confirmed survives a power cut.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::certificate::{Certificate, Claim, Tally};
use crate::code::Code;
use crate::failure::PortError;
use crate::guard::{Guard, Lost};
use crate::lease::Lease;
use crate::{
    Attempt, CommitToken, Epoch, Fingerprint, HolderId, Incarnation, Key, LeaseToken, LedgerId,
    PipelineName, RulesNumber, RunId, RunVersion, ScopeId, Timestamp, Version,
};

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

/// Rules to be put in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Of which pipeline.
    pub pipeline: PipelineName,
    /// The incarnation it gets if it is new, drawn by the caller.
    pub incarnation: Incarnation,
    /// The hash of the rules.
    pub fingerprint: Fingerprint,
    /// The full text of the rules, so that an old generation can be followed by them.
    pub text: String,
    /// The rules number this follows; `None` announces a pipeline that the ledger does not know.
    pub replaces: Option<RulesNumber>,
}

/// The answer to an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announced {
    /// These rules are in force now. The scopes' certificates are stale unless they were never
    /// complete.
    InForce(PipelineRecord),
    /// Somebody else announced first; nothing changed.
    Outpaced(Option<PipelineRecord>),
}

/// Rules with their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesRecord {
    /// The number.
    pub number: RulesNumber,
    /// The hash.
    pub fingerprint: Fingerprint,
    /// The full text.
    pub text: String,
    /// When they were announced.
    pub announced_at: Timestamp,
}

/// A pipeline as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineRecord {
    /// Its name.
    pub name: PipelineName,
    /// Which life of the name.
    pub incarnation: Incarnation,
    /// The rules in force.
    pub rules: RulesRecord,
}

/// What a delivery that is not done yet wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The record's document.
    Upsert,
    /// Its absence.
    Delete,
}

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Never tried, or an operator wants it tried again.
    Pending,
    /// Being tried by the holder of a lease.
    Leased,
    /// Waits for its next try.
    Retry,
    /// Needs an operator or newer source data.
    Parked,
}

/// One record's delivery that did not go straight through. It has no rules number of its own: it
/// takes the scope's at delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Of which scope.
    pub scope: ScopeId,
    /// Which record.
    pub key: Key,
    /// The version whose delivery failed.
    pub version: Version,
    /// What it wants.
    pub kind: ItemKind,
    /// Where it is.
    pub state: ItemState,
    /// How often it was tried.
    pub attempts: Attempt,
    /// When it may be tried.
    pub due_at: Timestamp,
    /// Why it is an item.
    pub code: Code,
    /// The reason, bounded.
    pub reason: String,
    /// When it last changed.
    pub changed_at: Timestamp,
}

/// An item to be stored: replaces one of the same key unless that one has a greater version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    /// Which record.
    pub key: Key,
    /// The version whose delivery failed.
    pub version: Version,
    /// What it wants.
    pub kind: ItemKind,
    /// How often it was tried.
    pub attempts: Attempt,
    /// `Some(delay)`: in retry, due that long after the ledger's now. `None`: parked.
    pub retry_in: Option<Duration>,
    /// Why.
    pub code: Code,
    /// The reason; the ledger bounds it.
    pub reason: String,
}

/// A delivery that is done: removes the item of this key at or below this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Which record.
    pub key: Key,
    /// The version that the sink holds now.
    pub version: Version,
}

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

/// Something worth telling an operator later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// A code, or the name of what happened.
    pub code: Code,
    /// What happened, bounded.
    pub text: String,
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

/// The answer to an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It is ours.
    Ours {
        /// The lease.
        lease: Lease,
        /// Whether the holder before neither released it nor is alive.
        after_crash: bool,
    },
    /// Somebody has it.
    Held {
        /// The process that has it.
        by: HolderId,
        /// When it ends unless it is renewed, by the ledger's clock.
        until: Timestamp,
    },
}

/// What an idle scope looks at: cheap to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// The run's version; moves when an operator wants something.
    pub run_version: RunVersion,
    /// The rules in force.
    pub rules: RulesNumber,
    /// The scope's items.
    pub tally: Tally,
    /// When the next item may be tried.
    pub next_due: Option<Timestamp>,
    /// The ledger's now.
    pub now: Timestamp,
}

/// Runs, rules and checkpoints.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Ledger: Debug + Send + Sync {
    /// Which ledger this is: drawn when it was made. A repeat is harmless.
    async fn identity(&self) -> Result<LedgerId, PortError>;

    /// The ledger's clock.
    async fn now(&self) -> Result<Timestamp, PortError>;

    /// A pipeline with the rules in force. `None` if the ledger does not know it.
    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError>;

    /// Puts rules in force: the number after `replaces`, or 1.
    ///
    /// Makes certificates of the pipeline that were complete or partial stale with
    /// `RULES_CHANGED`, in the same transaction. A repeat after an unknown outcome answers
    /// `Outpaced` with the record that the first try made.
    async fn announce(&self, announcement: &Announcement) -> Result<Announced, PortError>;

    /// Opens a run, or finds the open one. A repeat is harmless.
    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError>;

    /// The open run of a scope.
    async fn load(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Run>, PortError>;

    /// Writes a checkpoint under the guard: everything or nothing (G1).
    ///
    /// After an unknown outcome the caller repeats the same commit with the same token until the
    /// answer is known: a commit whose token the run already carries answers `Landed`.
    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError>;

    /// What an idle scope looks at. `None` if the scope has no open run.
    async fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Pulse>, PortError>;
}

/// Who may try.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Leases: Debug + Send + Sync {
    /// Takes the lease of a scope if nobody has it, by the ledger's clock (L1, L3), with a fence
    /// number that the pipeline never gave before (L2). The pipeline must have been announced.
    ///
    /// A repeat with the same token finds the lease that the first try took.
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError>;

    /// Moves the expiry of all these leases to now + ttl, in one statement, and returns the tokens
    /// whose lease is no longer theirs. An expired lease that nobody took is lost as well.
    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError>;

    /// Gives a lease back: true if it was still this token's. Leaves anybody else's lease alone.
    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError>;

    /// The lease of a scope, in force or not, and the ledger's now.
    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError>;
}

/// Which items to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFilter {
    /// All of them.
    All,
    /// Those that are parked.
    Parked,
    /// Those that are pending, leased or in retry.
    Unsettled,
}

/// A place in a listing of items: the last key that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCursor(pub Key);

/// The answer to an operator's wish to try a record again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retried {
    /// It is pending, with no attempt counted; the certificate says so.
    Pending,
    /// It already was pending or in retry with a newer version: nothing changed.
    Unchanged,
    /// It is being tried right now, until then.
    Leased(Timestamp),
    /// There is no such item.
    Unknown,
}

/// Deliveries that did not go straight through.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Items: Debug + Send + Sync {
    /// Claims items that are due, oldest due first, at most `limit`, under the guard's lease, and
    /// counts an attempt for each.
    ///
    /// If an item was left leased by a claim that ended without settling it, such an item is
    /// claimed alone: what kills a worker is found without parking its neighbours.
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError>;

    /// Items of a scope in the byte order of their keys, at most `limit` (1 to 10,000).
    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError>;

    /// One item.
    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError>;

    /// Makes a parked item pending, on an operator's wish. In the same transaction the run's
    /// version moves, so that the worker sees it, and the certificate counts it as unsettled.
    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError>;

    /// Adds a pending item for a record that has none, on an operator's wish, likewise.
    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError>;
}

/// What readers ask for.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Archive: Debug + Send + Sync {
    /// The certificate of a scope; `None` if the ledger does not know the scope.
    async fn certificate(&self, scope: &ScopeId) -> Result<Option<Certificate>, PortError>;

    /// The pipelines that the ledger knows, by name.
    async fn pipelines(&self) -> Result<Vec<PipelineRecord>, PortError>;

    /// The newest events of a scope, newest first, at most `limit`.
    async fn history(
        &self,
        scope: &ScopeId,
        limit: u32,
    ) -> Result<Vec<(Timestamp, Event)>, PortError>;
}
