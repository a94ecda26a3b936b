//! The sink's port over an index.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Applied, Batch, Body, Capabilities, Confirmation, Delivery, Listing, Mark, Memory, Receipt,
    Sink,
};

use crate::index::OpenIndex;
use crate::keeper::{Keeper, KeeperThread};
use crate::schema::Layout;
use crate::spec::IndexSpec;

/// A full-text index in a folder.
#[derive(Debug)]
pub struct TantivySink {
    keeper: KeeperThread,
}

impl TantivySink {
    /// Names an index; the folder is looked at, and made by [`Sink::prepare`], later. Nobody else
    /// can write the index from the first batch on until this is dropped or has been silent for
    /// some seconds.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such index can be.
    pub fn new(folder: &Path, spec: &IndexSpec) -> Result<Self, PortError> {
        spec.check()?;
        let keeper = Keeper::new(folder, Layout::wanted(spec), spec.writer_bytes);
        Ok(Self { keeper: KeeperThread::start(keeper)? })
    }

    /// Whether the index is there. Makes nothing.
    ///
    /// # Errors
    /// Class Halted with `INDEX_MISMATCH` if what is there does not fit the configuration.
    pub async fn inspect(&self) -> Result<bool, PortError> {
        self.keeper.call("inspect the index", |keeper| Ok(keeper.look()?.is_some())).await
    }
}

#[async_trait]
impl Sink for TantivySink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            versioned_writes: true,
            versioned_deletes: true,
            remembers_deletes: Memory::Forever,
            fenced_writes: true,
            ordered_listing: true,
            marked: true,
            listing_lag: Duration::ZERO,
            verifies: true,
        }
    }

    async fn prepare(&self) -> Result<(), PortError> {
        let prepare = |keeper: &mut Keeper| {
            if keeper.look()?.is_none() {
                OpenIndex::make(&keeper.folder, &keeper.wanted)?;
                keeper.look()?;
            }
            Ok(())
        };
        self.keeper.call("prepare the index", prepare).await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        let read = |keeper: &mut Keeper| Ok(keeper.look()?.and_then(|open| open.mark.clone()));
        self.keeper.call("read the mark", read).await
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        self.keeper.call("write a batch", move |keeper| keeper.apply(&batch)).await
    }

    /// The commit of [`Sink::apply`] was synced, so only a folder that went away loses it.
    async fn confirm(&self, _receipt: &Receipt) -> Result<Confirmation, PortError> {
        const OPERATION: &str = "confirm a batch";
        let there = self.keeper.call(OPERATION, |keeper| Ok(keeper.unchanged())).await?;
        if there {
            return Ok(Confirmation::Confirmed);
        }
        Err(PortError::new(OPERATION, FailureClass::Halted, Code::SINK_WENT_BACK)
            .detail("the index was replaced or removed"))
    }

    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let list = move |keeper: &mut Keeper| match keeper.look()? {
            Some(open) => open.list(after.as_ref(), limit),
            None => Ok(Listing { entries: Vec::new(), end: true }),
        };
        self.keeper.call("list the index", list).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        let deliveries = deliveries.to_vec();
        let verify = move |keeper: &mut Keeper| match keeper.look()? {
            Some(open) => open.verify(&deliveries),
            // Nothing is there.
            None => Ok(deliveries.iter().map(|sent| sent.body == Body::Delete).collect()),
        };
        self.keeper.call("verify documents", verify).await
    }
}
