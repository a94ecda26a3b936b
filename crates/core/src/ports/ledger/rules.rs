//! Pipelines and the rules they are under.

use crate::{Fingerprint, Incarnation, PipelineName, RulesNumber, Timestamp};

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
