//! Every port behind a tap.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use truekeep_adapter_memory::{MemoryLedger, MemorySource};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Acquired, Announced, Announcement, Applied, AuditPage, Batch, Body, Cancelled, Capabilities,
    Capture, CaptureReport, Change, ChangePage, Commit, Committed, Confirmation, Consumer,
    Delivery, Discarded, Feed, FillProgress, Item, ItemCursor, ItemFilter, ItemKind, Items,
    KeyPage, Leases, Ledger, Listing, Loaded, Mark, NewRun, Numbered, Opened, Operations,
    PipelineRecord, ProcedureKind, Pulse, Pulsed, Receipt, Records, Registration, Removal, Retried,
    Run, Sink, SourceView, Steer, Steered,
};
use truekeep_core::{
    Document, Fence, HolderId, Incarnation, Key, LeaseToken, LedgerId, PipelineName, Place, RunId,
    ScopeId, Timestamp, Value, Version,
};
use truekeep_sink_memory::MemorySink;

use super::tap::{Grudge, Tapped, failure};

/// Passes a call on to the port behind the tap.
macro_rules! pass {
    ($self:ident, $name:literal, $call:expr) => {
        $self.tap.call($name, $call).await
    };
}

#[async_trait]
impl Ledger for Tapped<MemoryLedger> {
    async fn identity(&self) -> Result<LedgerId, PortError> {
        pass!(self, "ledger.identity", self.port.identity())
    }
    async fn now(&self) -> Result<Timestamp, PortError> {
        pass!(self, "ledger.now", self.port.now())
    }
    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError> {
        pass!(self, "ledger.pipeline", self.port.pipeline(name))
    }
    async fn announce(&self, new: &Announcement) -> Result<Announced, PortError> {
        pass!(self, "ledger.announce", self.port.announce(new))
    }
    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError> {
        pass!(self, "ledger.open_run", self.port.open_run(new))
    }
    async fn load(&self, scope: &ScopeId, of: ProcedureKind) -> Result<Option<Run>, PortError> {
        pass!(self, "ledger.load", self.port.load(scope, of))
    }
    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError> {
        pass!(self, "ledger.commit", self.port.commit(commit))
    }
    async fn pulse(&self, scope: &ScopeId, of: ProcedureKind) -> Result<Option<Pulse>, PortError> {
        pass!(self, "ledger.pulse", Ledger::pulse(&*self.port, scope, of))
    }
}

#[async_trait]
impl Operations for Tapped<MemoryLedger> {
    async fn steer(&self, steer: &Steer) -> Result<Steered, PortError> {
        pass!(self, "ledger.operations.steer", self.port.steer(steer))
    }
    async fn cancel(&self, scope: &ScopeId, run: &RunId, by: &str) -> Result<Cancelled, PortError> {
        pass!(self, "ledger.operations.cancel", self.port.cancel(scope, run, by))
    }
    async fn discard(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
    ) -> Result<Discarded, PortError> {
        pass!(self, "ledger.operations.discard", self.port.discard(scope, key, version, by))
    }
    async fn remove(&self, removal: &Removal) -> Result<Option<PipelineRecord>, PortError> {
        pass!(self, "ledger.operations.remove", self.port.remove(removal))
    }
    async fn drop_part(
        &self,
        pipeline: &PipelineName,
        life: &Incarnation,
        limit: u32,
    ) -> Result<bool, PortError> {
        pass!(self, "ledger.operations.drop_part", self.port.drop_part(pipeline, life, limit))
    }
    async fn floor(&self, pipeline: &PipelineName) -> Result<Version, PortError> {
        pass!(self, "ledger.operations.floor", self.port.floor(pipeline))
    }
}

#[async_trait]
impl Leases for Tapped<MemoryLedger> {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        pass!(self, "ledger.leases.acquire", self.port.acquire(scope, holder, token, ttl))
    }
    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        pass!(self, "ledger.leases.renew", self.port.renew(holder, tokens, ttl))
    }
    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        pass!(self, "ledger.leases.release", self.port.release(scope, token))
    }
    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        pass!(self, "ledger.leases.holder", self.port.holder(scope))
    }
}

#[async_trait]
impl Items for Tapped<MemoryLedger> {
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        pass!(self, "ledger.items.claim", self.port.claim(scope, guard, limit))
    }
    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError> {
        pass!(self, "ledger.items.list", Items::list(&*self.port, scope, filter, after, limit))
    }
    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError> {
        pass!(self, "ledger.items.item", self.port.item(scope, key))
    }
    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError> {
        pass!(self, "ledger.items.retry", self.port.retry(scope, key))
    }
    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError> {
        pass!(self, "ledger.items.request", self.port.request(scope, key, version, kind))
    }
}

#[async_trait]
impl Feed for Tapped<MemorySource> {
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError> {
        pass!(self, "feed.view", Feed::view(&*self.port, consumer, at))
    }
    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        pass!(self, "feed.changes", self.port.changes(consumer, after, limit))
    }
    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        pass!(self, "feed.find", self.port.find(keys))
    }
    async fn pending(&self) -> Result<bool, PortError> {
        pass!(self, "feed.pending", self.port.pending())
    }
    async fn register(&self, consumer: &Consumer, new: &Registration) -> Result<(), PortError> {
        pass!(self, "feed.register", self.port.register(consumer, new))
    }
    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError> {
        pass!(self, "feed.forget", self.port.forget(consumer))
    }
    async fn prune(&self) -> Result<u64, PortError> {
        pass!(self, "feed.prune", self.port.prune())
    }
    async fn pulse(&self) -> Result<Pulsed, PortError> {
        pass!(self, "feed.pulse", Feed::pulse(&*self.port))
    }
    async fn stirred(&self) {
        self.tap.stirs.notified().await;
    }
}

#[async_trait]
impl Capture for Tapped<MemorySource> {
    async fn install(&self) -> Result<CaptureReport, PortError> {
        pass!(self, "capture.install", self.port.install())
    }
    async fn fill(&self) -> Result<FillProgress, PortError> {
        pass!(self, "capture.fill", self.port.fill())
    }
    async fn verify(&self) -> Result<CaptureReport, PortError> {
        pass!(self, "capture.verify", self.port.verify())
    }
    async fn audit(&self, after: Option<Key>, limit: u32) -> Result<AuditPage, PortError> {
        pass!(self, "capture.audit", self.port.audit(after, limit))
    }
    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError> {
        pass!(self, "capture.number", self.port.number(keys))
    }
    async fn begin_again(&self, above: Version) -> Result<(), PortError> {
        pass!(self, "capture.begin_again", self.port.begin_again(above))
    }
    async fn remove(&self) -> Result<(), PortError> {
        pass!(self, "capture.remove", Capture::remove(&*self.port))
    }
}

#[async_trait]
impl Records for Tapped<MemorySource> {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        if keys.iter().any(|key| self.tap.grudge(key) == Some(Grudge::KillsReader)) {
            self.tap.killed.notify_one();
            std::future::pending::<()>().await;
        }
        pass!(self, "records.load", self.port.load(keys, bytes_max))
    }
    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        pass!(self, "records.canonical", self.port.canonical(keys))
    }
    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        pass!(self, "records.keys", self.port.keys(after, limit))
    }
}

impl Tapped<MemorySink> {
    /// Applies what the sink has no grudge against.
    async fn grudging(&self, batch: Batch) -> Result<Applied, PortError> {
        let Batch { mut mark, follows, mut deliveries } = batch;
        if !self.capabilities().marked {
            mark.fence = Fence::new(u64::MAX);
        }
        let mut grudges: Vec<_> = deliveries.iter().map(|d| self.tap.grudge(&d.key)).collect();
        for (delivery, grudge) in deliveries.iter_mut().zip(&mut grudges) {
            if let (Some(Grudge::Alters), Body::Upsert(document)) = (*grudge, &delivery.body) {
                let values = vec![Value::Text("altered".into())];
                let altered = Document::new(Arc::clone(document.names()), values);
                delivery.body = Body::Upsert(Arc::new(altered));
                *grudge = None;
            }
        }
        if grudges.contains(&Some(Grudge::Kills)) {
            self.tap.killed.notify_one();
            std::future::pending::<()>().await;
        }
        if grudges.contains(&Some(Grudge::RefusesBatch)) {
            return Err(failure(FailureClass::Terminal));
        }
        let liked = deliveries.into_iter().zip(&grudges).filter(|(_, grudge)| grudge.is_none());
        let liked: Vec<_> = liked.map(|(delivery, _)| delivery).collect();
        let keys: Vec<_> = liked.iter().map(|delivery| delivery.key.clone()).collect();
        let applied = self.port.apply(Batch { mark, follows, deliveries: liked }).await?;
        self.tap.reached(keys.into_iter());
        let mut outcomes = applied.outcomes.into_iter();
        let outcomes = grudges.into_iter().map(|grudge| match grudge {
            Some(grudge) => grudge.outcome(),
            None => outcomes.next().expect("one each"),
        });
        Ok(Applied { outcomes: outcomes.collect(), receipt: applied.receipt })
    }
}

#[async_trait]
impl Sink for Tapped<MemorySink> {
    fn capabilities(&self) -> Capabilities {
        self.tap.limited(self.port.capabilities())
    }
    async fn prepare(&self) -> Result<(), PortError> {
        pass!(self, "sink.prepare", self.port.prepare())
    }
    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        pass!(self, "sink.mark", self.port.mark())
    }
    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        pass!(self, "sink.apply", self.grudging(batch))
    }
    async fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError> {
        pass!(self, "sink.confirm", self.port.confirm(receipt))
    }
    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        pass!(self, "sink.list", Sink::list(&*self.port, after, limit))
    }
    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        pass!(self, "sink.verify", self.port.verify(deliveries))
    }
}
