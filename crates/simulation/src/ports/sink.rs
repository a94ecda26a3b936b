//! A sink over the way to it.

use async_trait::async_trait;
use truekeep_core::Key;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, Listing, Mark, Receipt, Sink,
};

use crate::plan::Poison;
use crate::sink::poisoned;
use crate::wire::Wire;
use crate::world::World;

/// A sink as a process reaches it.
#[derive(Debug)]
pub(crate) struct SinkPort {
    pub wire: Wire,
    pub pipeline: usize,
}

#[async_trait]
impl Sink for SinkPort {
    fn capabilities(&self) -> Capabilities {
        self.wire.world().stores.targets[self.pipeline].sink.plan.able
    }

    async fn prepare(&self) -> Result<(), PortError> {
        self.wire.call("sink.prepare", |_| Ok(())).await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        let at = self.pipeline;
        self.wire.call("sink.mark", move |w| Ok(w.stores.targets[at].sink.mark())).await
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        if batch.deliveries.iter().any(|one| poisoned(one) == Some(Poison::Kills)) {
            return self.wire.process.die("a record that it sent").await;
        }
        let (at, who) = (self.pipeline, self.wire.process.name.clone());
        let deed = move |w: &World| w.watched(|a, stores| a.apply(stores, at, &who, batch));
        self.wire.call("sink.apply", deed).await
    }

    async fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError> {
        let (at, receipt) = (self.pipeline, receipt.clone());
        self.wire.call("sink.confirm", move |w| w.stores.targets[at].sink.confirm(&receipt)).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        self.capabilities().verifying()?;
        let (at, deliveries) = (self.pipeline, deliveries.to_vec());
        let deed = move |w: &World| Ok(w.stores.targets[at].sink.verify(&deliveries));
        self.wire.call("sink.verify", deed).await
    }

    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let (at, limit) = (self.pipeline, self.wire.clamp(limit));
        let deed = move |w: &World| Ok(w.stores.targets[at].sink.list(after.as_ref(), limit));
        self.wire.call("sink.list", deed).await
    }
}
