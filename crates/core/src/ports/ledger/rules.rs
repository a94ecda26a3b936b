//! Pipelines: the rules they are under, and whether they are worked on.

use crate::{Fingerprint, Incarnation, PipelineName, Revision, RulesNumber, Timestamp, Version};

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
    /// What the target was written under before, by a pipeline that was removed: the number given
    /// is greater.
    pub above: RulesNumber,
    /// Whether an operator wants it, so that a name whose pipeline was removed gets a new life.
    pub anew: bool,
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
    /// Whether it is worked on.
    pub state: PipelineState,
    /// Counts what operators decided about it.
    pub revision: Revision,
}

/// Whether a pipeline is worked on: what operators decided last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineState {
    /// By whichever worker has the lease.
    Working,
    /// By nobody until it is resumed. What was certified stays as it is.
    Paused,
    /// By nobody ever again: it is being removed.
    Removing(Removing),
}

/// A removal under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removing {
    /// Whether the sink is emptied.
    pub purge: bool,
    /// Nothing that a former holder sent can still arrive from then on, by the ledger's clock.
    pub quiet_at: Timestamp,
    /// The newest version that the feed had: a feed that is made later begins above it.
    pub newest: Version,
}
