//! Operations: what operators decide. Each is one transaction that also says in the history who
//! decided, and none needs a lease: it takes effect whoever works, or nobody.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::failure::PortError;
use crate::ports::{PipelineRecord, Run};
use crate::{Incarnation, Key, PipelineName, Revision, RunId, ScopeId, Timestamp, Version};

/// Where an operator wants a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// Nobody works on it until it is resumed.
    Pause,
    /// It is worked on again, from where it was.
    Resume,
}

/// A wish to pause or resume a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steer {
    /// Which.
    pub pipeline: PipelineName,
    /// Where to.
    pub to: Steering,
    /// What was decided when the operator looked: of two who saw the same, one wins.
    pub seen: Revision,
    /// Who decides, and why; the ledger bounds it.
    pub by: String,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steered {
    /// It is so now.
    Done(PipelineRecord),
    /// It was so already; nothing changed.
    Unchanged(PipelineRecord),
    /// Somebody decided otherwise meanwhile; nothing changed.
    Outpaced(PipelineRecord),
}

/// The answer to a wish to cancel a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended with this, and nothing that its owner still writes lands.
    Ended(Run),
    /// It had ended before; nothing changed.
    Over(Run),
    /// It never ends: what follows is paused or removed.
    Perpetual,
    /// There is no such run.
    Unknown,
}

/// The answer to a wish to give a parked delivery up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discarded {
    /// It is given up. The record stays counted with those that are parked, so nothing is
    /// certified that was not, until newer data or a repair settles it.
    GivenUp,
    /// It was given up already; nothing changed.
    Unchanged,
    /// It is another version's by now; nothing changed.
    Newer(Version),
    /// It is not parked: it will be tried by itself; nothing changed.
    Trying,
    /// It is being tried right now, until then; nothing changed.
    Leased(Timestamp),
    /// There is no such item.
    Unknown,
}

/// A wish to remove a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Which.
    pub pipeline: PipelineName,
    /// Which life of the name: one that was made since is left alone.
    pub incarnation: Incarnation,
    /// Whether the sink is emptied. Once asked for it stays so.
    pub purge: bool,
    /// The newest version that the feed had, as far as it is known.
    pub newest: Version,
    /// How long a request may be under way after whoever sent it has stopped.
    pub request_max: Duration,
    /// Who decides, and why; the ledger bounds it.
    pub by: String,
}

/// What operators decide.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Operations: Debug + Send + Sync {
    /// Pauses or resumes a pipeline. While it is paused nobody takes its lease; who has it sees
    /// the pause with the next pulse. Certificates, items and runs stay as they are.
    ///
    /// A repeat is harmless.
    ///
    /// # Errors
    /// Class Terminal: `PIPELINE_UNKNOWN`, `PIPELINE_REMOVED` while it is being removed.
    async fn steer(&self, steer: &Steer) -> Result<Steered, PortError>;

    /// Ends a run of reconcile as stopped with `CANCELLED`; another may begin at once. What it has
    /// told follow stays told. A repeat is harmless.
    async fn cancel(&self, scope: &ScopeId, run: &RunId, by: &str) -> Result<Cancelled, PortError>;

    /// Gives a parked item of this version up: it stays parked, with the code `DISCARDED`. A
    /// repeat is harmless.
    ///
    /// # Errors
    /// Class Terminal: `PIPELINE_REMOVED` while the pipeline is being removed.
    async fn discard(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
    ) -> Result<Discarded, PortError>;

    /// Begins a removal, or finds the one under way: leases end, a fence is drawn, runs are
    /// stopped with `PIPELINE_REMOVED`, certificates are stale with that code. From then on
    /// whatever would be written for this life is refused: rules, runs, leases, checkpoints,
    /// claims, wishes.
    ///
    /// Returns the record with the removal in it; `None` if this life is gone. A repeat is
    /// harmless.
    async fn remove(&self, removal: &Removal) -> Result<Option<PipelineRecord>, PortError>;

    /// Drops at most `limit` (1 to 10,000) items of a pipeline that is being removed; with the last
    /// of them everything else that the ledger holds of it but its history. Then the name is free,
    /// and this returns true. What a new life of the name needs is kept: it begins above the rules
    /// and the fences that were given.
    ///
    /// A repeat is harmless; a life that is gone answers true.
    async fn drop_part(
        &self,
        pipeline: &PipelineName,
        incarnation: &Incarnation,
        limit: u32,
    ) -> Result<bool, PortError>;

    /// The newest version that feeds had of pipelines that were removed under this name: a feed
    /// that is made for it begins above. 0 if there was none.
    async fn floor(&self, pipeline: &PipelineName) -> Result<Version, PortError>;
}
