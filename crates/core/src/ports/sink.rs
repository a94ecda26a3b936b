//! The sink: a derived store.
//!
//! Every effect is keyed by (key, rank), so that a repeat, or a late message of a former holder,
//! is harmless.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::failure::{FailureClass, PortError};
use crate::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber,
};

/// How long a sink remembers that a key was deleted, and at which rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// As long as it lives.
    Forever,
    /// This long.
    For(Duration),
    /// Not at all.
    None,
}

/// What a sink can do. What it cannot is refused or emulated, never ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Refuses a write of a smaller rank than it holds.
    pub versioned_writes: bool,
    /// Refuses a delete of a smaller rank than it holds.
    pub versioned_deletes: bool,
    /// How long it remembers deletes.
    pub remembers_deletes: Memory,
    /// Refuses a batch of a smaller fence than it has seen, in the transaction of the batch.
    pub fenced_writes: bool,
    /// Lists in the byte order of keys.
    pub ordered_listing: bool,
    /// Keeps a mark, written in the transaction of a batch.
    pub marked: bool,
    /// How long after a write a listing may not show it.
    pub listing_lag: Duration,
    /// Says whether it holds a document.
    pub verifies: bool,
}

impl Capabilities {
    /// Whether documents can be held against the sink.
    ///
    /// # Errors
    /// Class Terminal with `SINK_UNVERIFIABLE` if not.
    pub fn verifying(&self) -> Result<(), PortError> {
        if self.verifies {
            return Ok(());
        }
        let class = FailureClass::Terminal;
        Err(PortError::new("compare documents", class, Code::SINK_UNVERIFIABLE))
    }
}

/// What a sink remembers of who writes it: tells a restored, replaced or shared sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The ledger that writes it.
    pub ledger: LedgerId,
    /// The life of the pipeline that writes it.
    pub pipeline: Incarnation,
    /// The rules it was last written under.
    pub rules: RulesNumber,
    /// The greatest fence that wrote it.
    pub fence: Fence,
    /// Counts the batches: grows with each that is sent.
    pub number: MarkNumber,
    /// Whether the pipeline was removed: the mark is a headstone, which keeps its former writers
    /// out and tells whoever comes next above which rules to begin.
    #[serde(default)]
    pub removed: bool,
}

/// Why a sink does not take a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// Another ledger or pipeline writes it.
    Owned(LedgerId, Incarnation),
    /// A later holder has written it, under this fence.
    Fenced(Fence),
    /// It lacks batches that it had taken: this is the last that it holds.
    WentBack(BatchName),
    /// The pipeline that sends was removed.
    Removed,
    /// A removed pipeline wrote it under these rules; only greater ones begin anew.
    Inherited(RulesNumber),
}

impl Mark {
    /// The mark that a batch leaves, given the one that is held: the one place where is decided
    /// who may write. Nothing in it goes back, so that a late batch of the same holder does not
    /// look like a sink that was restored.
    ///
    /// `follows` is the newest batch that the sender knows to be held. A sink that holds none as
    /// new was restored since it was opened; whoever opens it goes on from what it holds.
    ///
    /// # Errors
    /// Why the batch is not taken.
    pub fn after(held: Option<&Self>, sent: &Self, follows: BatchName) -> Result<Self, Denied> {
        let known = |held: &Self| held.batch_before(&sent.ledger, &sent.pipeline);
        let last = held.map(known).unwrap_or_default();
        if let Some(held) = held {
            match (held.is_of(&sent.ledger, &sent.pipeline), held.removed, sent.removed) {
                (false, true, false) if sent.rules <= held.rules => {
                    return Err(Denied::Inherited(held.rules));
                }
                // The fences of another pipeline say nothing.
                (false, true, false) => {}
                (false, ..) => {
                    return Err(Denied::Owned(held.ledger.clone(), held.pipeline.clone()));
                }
                (true, true, false) => return Err(Denied::Removed),
                (true, ..) if sent.fence < held.fence => return Err(Denied::Fenced(held.fence)),
                (true, ..) => {}
            }
        }
        if last < follows {
            return Err(Denied::WentBack(last));
        }
        Ok(Self {
            rules: held.map_or(sent.rules, |held| held.rules.max(sent.rules)),
            number: last.number.max(sent.number),
            ..sent.clone()
        })
    }

    /// The batch that left it.
    pub fn batch(&self) -> BatchName {
        BatchName { fence: self.fence, number: self.number }
    }

    /// The batch that left it, as this life of a pipeline knows it: the fences of another say
    /// nothing to it.
    pub fn batch_before(&self, ledger: &LedgerId, pipeline: &Incarnation) -> BatchName {
        let ours = self.is_of(ledger, pipeline);
        BatchName { fence: if ours { self.fence } else { Fence::default() }, number: self.number }
    }

    /// The rules above which whoever comes next has to begin: those of a pipeline that was removed.
    pub fn inherited(held: Option<&Self>) -> RulesNumber {
        held.filter(|held| held.removed).map(|held| held.rules).unwrap_or_default()
    }

    /// Whether this life of a pipeline wrote it.
    pub fn is_of(&self, ledger: &LedgerId, pipeline: &Incarnation) -> bool {
        (&self.ledger, &self.pipeline) == (ledger, pipeline)
    }
}

impl From<Denied> for PortError {
    fn from(denied: Denied) -> Self {
        let (class, code, detail) = match denied {
            Denied::Owned(ledger, pipeline) => (
                FailureClass::Halted,
                Code::SINK_OWNED,
                format!("its ledger is {ledger}, its pipeline {pipeline}"),
            ),
            Denied::Fenced(fence) => {
                (FailureClass::Fenced, Code::SINK_FENCED, format!("its fence is {fence}"))
            }
            Denied::WentBack(last) => (
                FailureClass::Halted,
                Code::SINK_WENT_BACK,
                format!("the last batch that it holds is number {last}"),
            ),
            Denied::Removed => (FailureClass::Fenced, Code::PIPELINE_REMOVED, String::new()),
            Denied::Inherited(rules) => (
                FailureClass::Halted,
                Code::SINK_INHERITED,
                format!("it was written under rules {rules}"),
            ),
        };
        Self::new("write a batch", class, code).detail(detail)
    }
}

/// What a record is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// This document.
    Upsert(Arc<Document>),
    /// Absent.
    Delete,
}

/// One record's delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Which record.
    pub key: Key,
    /// Orders it among the deliveries of its key.
    pub rank: Rank,
    /// What it is to become.
    pub body: Body,
}

/// What is sent at once. Each key stands in it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Who sends, and which batch it is; becomes the sink's mark.
    pub mark: Mark,
    /// The newest batch that the sink is known to have taken.
    pub follows: BatchName,
    /// The records.
    pub deliveries: Vec<Delivery>,
}

/// What became of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The sink holds it now.
    Applied,
    /// The sink already held this rank; it holds this document now.
    Repeated,
    /// The sink holds a greater rank and keeps it.
    Outdone(Rank),
    /// The sink cannot take this record: the code and the reason.
    Refused(Code, String),
    /// The sink could not take this record now: the code and the reason.
    Retry(Code, String),
}

/// Names an applied batch until it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt(pub u64);

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// One outcome per delivery, in order.
    pub outcomes: Vec<Outcome>,
    /// What to confirm.
    pub receipt: Receipt,
}

/// Whether a batch is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// It survives a power cut.
    Confirmed,
    /// Not yet.
    Pending,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key as the sink has it.
    pub key: Key,
    /// Its rank; `None` if it carries none of ours.
    pub rank: Option<Rank>,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Entries in the declared order.
    pub entries: Vec<Entry>,
    /// Whether the listing ended. A short page is not the end.
    pub end: bool,
}

/// A derived store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Sink: Debug + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Makes what it needs (a table, an index) if it is not there, and checks it if it is.
    ///
    /// # Errors
    /// Class Halted if what is there does not fit the rules. A repeat is harmless.
    async fn prepare(&self) -> Result<(), PortError>;

    /// The mark; `None` if nobody has written the sink. A batch that is not confirmed yet does not
    /// count: a sink that stops at once would be taken for one that went back.
    async fn mark(&self) -> Result<Option<Mark>, PortError>;

    /// Writes a batch: per key the greater rank wins, and an equal one replaces. A repeat is
    /// harmless.
    ///
    /// # Errors
    /// What [`Mark::after`] denies: class Fenced with `SINK_FENCED` if the sink has seen a greater
    /// fence, class Halted with `SINK_OWNED` if it belongs to another ledger or pipeline, and with
    /// `SINK_WENT_BACK` if it lacks what it had taken; for what a removed pipeline wrote, class
    /// Fenced with `PIPELINE_REMOVED` if that one still sends, and class Halted with
    /// `SINK_INHERITED` if the rules of another are not above its own; nothing was written. Class
    /// Terminal if the batch is refused as a whole: the caller splits it.
    ///
    /// A batch whose mark says that the pipeline was removed makes the sink forget its deletions:
    /// whoever comes next writes under greater rules.
    async fn apply(&self, batch: Batch) -> Result<Applied, PortError>;

    /// Whether an applied batch is durable. A repeat is harmless.
    async fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError>;

    /// Entries after `after` in the declared order, at most `limit`; tombstones are not listed.
    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError>;

    /// Whether the sink holds exactly what each delivery would leave: this document at this rank,
    /// converted just as [`Self::apply`] converts it; for a delete, no record. One answer per
    /// delivery, in order. Writes nothing.
    ///
    /// What is JSON is the same whatever the order of its keys and its whitespace. NULL, an empty
    /// text and a value that is not there are three things. A document that cannot be read, and
    /// one that would be refused, is not held.
    ///
    /// # Errors
    /// Class Terminal with `SINK_UNVERIFIABLE` if the sink does not claim to verify.
    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError>;
}

/// What a sink does with a delivery, given what it holds: the one place where ranks decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Write it; it was not held at this rank.
    Write,
    /// Write it again: it is held at this very rank.
    Rewrite,
    /// Leave what is held.
    Keep(Rank),
}

impl Verdict {
    /// The verdict for an incoming rank, given the greatest rank held for the key, live or
    /// remembered as deleted.
    pub fn of(incoming: Rank, held: Option<Rank>) -> Self {
        match held {
            Some(held) if held > incoming => Self::Keep(held),
            Some(held) if held == incoming => Self::Rewrite,
            Some(_) | None => Self::Write,
        }
    }

    /// The outcome to report once it is carried out.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Write => Outcome::Applied,
            Self::Rewrite => Outcome::Repeated,
            Self::Keep(held) => Outcome::Outdone(held),
        }
    }
}

#[cfg(test)]
mod tests;
