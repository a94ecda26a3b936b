//! The ledger's ports over the way to it.

use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Acquired, Announced, Announcement, Commit, Committed, Item, ItemCursor, ItemFilter, ItemKind,
    Items, Leases, Ledger, NewRun, Opened, PipelineRecord, ProcedureKind, Pulse, Retried, Run,
};
use truekeep_core::{
    HolderId, Key, LeaseToken, LedgerId, PipelineName, ScopeId, Timestamp, Version,
};

use crate::wire::Wire;
use crate::world::{World, at_once};

/// The ledger as a process reaches it.
#[derive(Debug)]
pub(crate) struct LedgerPort {
    pub wire: Wire,
}

#[async_trait]
impl Ledger for LedgerPort {
    async fn identity(&self) -> Result<LedgerId, PortError> {
        self.wire.call("ledger.identity", |w| at_once(w.stores.ledger.identity())).await
    }

    async fn now(&self) -> Result<Timestamp, PortError> {
        self.wire.call("ledger.now", |w| at_once(w.stores.ledger.now())).await
    }

    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError> {
        let name = name.clone();
        self.wire.call("ledger.pipeline", move |w| at_once(w.stores.ledger.pipeline(&name))).await
    }

    async fn announce(&self, new: &Announcement) -> Result<Announced, PortError> {
        let new = new.clone();
        let deed = move |w: &World| w.watched(|a, stores| a.announce(stores, &new));
        self.wire.call("ledger.announce", deed).await
    }

    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError> {
        let new = new.clone();
        self.wire.call("ledger.open_run", move |w| at_once(w.stores.ledger.open_run(&new))).await
    }

    async fn load(&self, scope: &ScopeId, of: ProcedureKind) -> Result<Option<Run>, PortError> {
        let scope = scope.clone();
        self.wire.call("ledger.load", move |w| at_once(w.stores.ledger.load(&scope, of))).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError> {
        let (commit, who) = (commit.clone(), self.wire.process.name.clone());
        let deed =
            move |w: &World| w.watched(|auditor, stores| auditor.commit(stores, &who, &commit));
        self.wire.call("ledger.commit", deed).await
    }

    async fn pulse(&self, scope: &ScopeId, of: ProcedureKind) -> Result<Option<Pulse>, PortError> {
        let scope = scope.clone();
        self.wire.call("ledger.pulse", move |w| at_once(w.stores.ledger.pulse(&scope, of))).await
    }
}

#[async_trait]
impl Leases for LedgerPort {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        let (scope, holder, token) = (scope.clone(), holder.clone(), token.clone());
        let deed = move |w: &World| {
            w.watched(|auditor, stores| auditor.acquire(stores, &scope, &holder, &token, ttl))
        };
        self.wire.call("leases.acquire", deed).await
    }

    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        let (holder, tokens) = (holder.clone(), tokens.to_vec());
        let deed = move |w: &World| {
            w.watched(|auditor, stores| auditor.renew(stores, &holder, &tokens, ttl))
        };
        self.wire.call("leases.renew", deed).await
    }

    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        let (scope, token) = (scope.clone(), token.clone());
        let deed = move |w: &World| at_once(w.stores.ledger.release(&scope, &token));
        self.wire.call("leases.release", deed).await
    }

    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        let scope = scope.clone();
        self.wire.call("leases.holder", move |w| at_once(w.stores.ledger.holder(&scope))).await
    }
}

#[async_trait]
impl Items for LedgerPort {
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        let (scope, guard) = (scope.clone(), guard.clone());
        let deed = move |w: &World| {
            w.watched(|auditor, stores| auditor.claim(stores, &scope, &guard, limit))
        };
        self.wire.call("items.claim", deed).await
    }

    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError> {
        let scope = scope.clone();
        let deed = move |w: &World| at_once(w.stores.ledger.list(&scope, filter, after, limit));
        self.wire.call("items.list", deed).await
    }

    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        self.wire.call("items.item", move |w| at_once(w.stores.ledger.item(&scope, &key))).await
    }

    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        self.wire.call("items.retry", move |w| at_once(w.stores.ledger.retry(&scope, &key))).await
    }

    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        let deed = move |w: &World| at_once(w.stores.ledger.request(&scope, &key, version, kind));
        self.wire.call("items.request", deed).await
    }
}
