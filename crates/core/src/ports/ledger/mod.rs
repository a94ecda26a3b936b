//! The ledger: the worker's own durable memory. Five narrow ports, one store.
//!
//! One commit is one transaction: there is no window between items, checkpoint and certificate.
//! A commit that was confirmed survives a power cut.

mod archive;
mod commits;
mod items;
mod leases;
mod operations;
mod rules;
mod runs;

use std::fmt::Debug;

use async_trait::async_trait;

pub use archive::{Archive, Event};
pub use commits::{Commit, Committed, LedgerWrite};
pub use items::{
    Item, ItemCursor, ItemFilter, ItemKind, ItemState, Items, NewItem, Retried, Settle,
};
pub use leases::{Acquired, Leases};
pub use operations::{Cancelled, Discarded, Operations, Removal, Steer, Steered, Steering};
pub use rules::{Announced, Announcement, PipelineRecord, PipelineState, Removing, RulesRecord};
pub use runs::{NewRun, Opened, ProcedureKind, Pulse, Run, RunHealth, RunState};

#[cfg(feature = "mock")]
pub use {archive::MockArchive, items::MockItems, leases::MockLeases, operations::MockOperations};

use crate::failure::PortError;
use crate::{LedgerId, PipelineName, ScopeId, Timestamp};

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

    /// Puts rules in force: the number after the last of this name, or after `above`.
    ///
    /// Makes certificates of the pipeline that were complete or partial stale with
    /// `RULES_CHANGED`, in the same transaction. A repeat after an unknown outcome answers
    /// `Outpaced` with the record that the first try made.
    ///
    /// # Errors
    /// Class Terminal with `PIPELINE_REMOVED` for a pipeline that is being removed, and for a name
    /// whose pipeline was removed unless it is to begin anew.
    async fn announce(&self, announcement: &Announcement) -> Result<Announced, PortError>;

    /// Opens a run, or finds the open one. A repeat is harmless.
    ///
    /// # Errors
    /// Class Terminal: `PIPELINE_UNKNOWN`, `PIPELINE_REMOVED` while it is being removed.
    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError>;

    /// The newest run of a scope, whether it goes on or has ended.
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
