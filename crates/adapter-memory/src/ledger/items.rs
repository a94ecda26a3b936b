//! Items in memory.

use async_trait::async_trait;
use truekeep_core::certificate::Certificate;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::ports::{
    Item, ItemCursor, ItemFilter, ItemKind, ItemState, Items, ProcedureKind, Retried,
};
use truekeep_core::{Key, ScopeId, Timestamp, Version, limits};

use super::MemoryLedger;
use super::state::{ItemRecord, LeaseRecord, LedgerState, Scope};

#[async_trait]
impl Items for MemoryLedger {
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        let limit = limits::rows("claim items", limit)?;
        let (mut state, now) = self.transaction();
        let rules = state.rules("claim items", scope.pipeline())?;
        let version = state.open(scope, ProcedureKind::Follow).map(|run| run.run.version);
        if let Err(lost) = guard.check(&state.held(scope, version, rules, now)) {
            return Ok(Err(lost));
        }
        Ok(state.scopes.get_mut(scope).map(|s| s.claim(guard, limit, now)).ok_or(Lost::Run))
    }

    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError> {
        let limit = limits::rows("list items", limit)?;
        let state = self.locked();
        let Some(scope) = state.scopes.get(scope) else { return Ok(Vec::new()) };
        let wanted = |item: &&Item| match filter {
            ItemFilter::All => true,
            ItemFilter::Parked => item.state == ItemState::Parked && !item.is_discarded(),
            ItemFilter::Discarded => item.is_discarded(),
            ItemFilter::Unsettled => item.state != ItemState::Parked,
        };
        let items = scope.items.values().map(|record| &record.item);
        let items = items.filter(|item| after.as_ref().is_none_or(|after| item.key > after.0));
        Ok(items.filter(wanted).take(limit as usize).cloned().collect())
    }

    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError> {
        let state = self.locked();
        let record = state.scopes.get(scope).and_then(|scope| scope.items.get(key));
        Ok(record.map(|record| record.item.clone()))
    }

    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError> {
        let (mut state, now) = self.transaction();
        state.retry(scope, key, now)
    }

    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError> {
        let (mut state, now) = self.transaction();
        state.request(scope, key, version, kind, now)
    }
}

impl Scope {
    /// What is leased still was left so by a claim that ended without settling it: a holder has
    /// one claim at a time.
    fn claim(&mut self, guard: &Guard, limit: u32, now: Timestamp) -> Vec<Item> {
        let mut left: Vec<&mut ItemRecord> = Vec::new();
        let mut due: Vec<&mut ItemRecord> = Vec::new();
        for record in self.items.values_mut() {
            match record.item.state {
                ItemState::Leased => left.push(record),
                ItemState::Pending | ItemState::Retry if record.due_at(now) <= now => {
                    due.push(record);
                }
                ItemState::Pending | ItemState::Retry | ItemState::Parked => {}
            }
        }
        let (mut chosen, limit) = if left.is_empty() { (due, limit) } else { (left, 1) };
        // Stable: items that are due together come in the order of their keys.
        chosen.sort_by_key(|record| record.item.due_at);
        let chosen = chosen.into_iter().take(limit as usize);
        chosen.map(|record| record.lease(guard, now)).collect()
    }

    /// Makes an item pending. The run's version moves, so that the worker sees it; nothing but the
    /// counts of the certificate changes, since the moment still holds.
    fn wish(&mut self, item: Item, now: Timestamp) -> Retried {
        self.items.insert(item.key.clone(), ItemRecord { item, lease: None });
        if let Some(record) = self.open(ProcedureKind::Follow) {
            record.run.version = record.run.version.next();
        }
        let tally = self.tally();
        let before = self.certificate.clone();
        self.certificate = Certificate {
            parked: tally.parked,
            unsettled: tally.unsettled,
            changed_at: now,
            ..before
        };
        Retried::Pending
    }
}

impl ItemRecord {
    /// When it may be tried. An item that changed later than now tells that the clock went back:
    /// what it waits for may be as far away as the clock was ahead.
    pub(super) fn due_at(&self, now: Timestamp) -> Timestamp {
        if self.item.changed_at > now { now } else { self.item.due_at }
    }

    fn lease(&mut self, guard: &Guard, now: Timestamp) -> Item {
        self.lease = Some(guard.token.clone());
        self.item.state = ItemState::Leased;
        self.item.attempts = self.item.attempts.saturating_add(1);
        self.item.changed_at = now;
        self.item.clone()
    }

    /// Until when it is surely being tried.
    pub(super) fn tried_until(
        &self,
        lease: Option<&LeaseRecord>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let lease = lease.filter(|lease| lease.in_force(now))?;
        (self.lease.as_ref() == Some(&lease.lease.token)).then_some(lease.lease.expires_at)
    }
}

impl LedgerState {
    fn retry(&mut self, scope: &ScopeId, key: &Key, now: Timestamp) -> Result<Retried, PortError> {
        let lease = self.leases.get(scope).cloned();
        let Some(scope) = self.scope("retry an item", scope)? else { return Ok(Retried::Unknown) };
        let Some(record) = scope.items.get(key) else { return Ok(Retried::Unknown) };
        if let Some(until) = record.tried_until(lease.as_ref(), now) {
            return Ok(Retried::Leased(until));
        }
        Ok(match record.item.state {
            // What a dead holder left leased is claimed next, and alone.
            ItemState::Pending | ItemState::Retry | ItemState::Leased => Retried::Unchanged,
            ItemState::Parked => {
                let item = pending(record.item.clone(), now);
                scope.wish(item, now)
            }
        })
    }

    fn request(
        &mut self,
        id: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
        now: Timestamp,
    ) -> Result<Retried, PortError> {
        let Some(scope) = self.scope("request an item", id)? else { return Ok(Retried::Unknown) };
        let is_newer = match scope.items.get(key) {
            None => true,
            Some(ItemRecord { item, .. }) => match item.state {
                ItemState::Leased => false,
                ItemState::Pending | ItemState::Retry => version > item.version,
                ItemState::Parked => version >= item.version,
            },
        };
        if !is_newer {
            return self.retry(id, key, now);
        }
        let item = Item {
            scope: id.clone(),
            key: key.clone(),
            version,
            kind,
            state: ItemState::Pending,
            attempts: 0,
            due_at: now,
            code: Code::REQUESTED,
            reason: String::new(),
            changed_at: now,
        };
        Ok(scope.wish(item, now))
    }
}

fn pending(item: Item, now: Timestamp) -> Item {
    Item { state: ItemState::Pending, attempts: 0, due_at: now, changed_at: now, ..item }
}
