//! Leases: one in force, judged by the ledger's clock, with a fence that was never given before.
//!
//! Invariants: L1, L2, L3, G1 (claims).

use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{Acquired, Item, Items, Leases, Ledger, ProcedureKind};
use truekeep_core::{HolderId, LeaseToken, RulesNumber, RunVersion, ScopeId};

use super::Auditor;
use crate::world::{Stores, at_once};

impl Auditor {
    /// The lease in force, by a formula of the auditor's own.
    pub(super) fn lease(&self, stores: &Stores, scope: &ScopeId) -> Option<Lease> {
        let (lease, now) = at_once(stores.ledger.holder(scope)).ok()?;
        let ttl_ms = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX);
        lease.filter(|lease| (1..=ttl_ms).contains(&(lease.expires_at.ms() - now.ms())))
    }

    pub fn acquire(
        &mut self,
        stores: &Stores,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        let before = self.lease(stores, scope);
        let answer = at_once(stores.ledger.acquire(scope, holder, token, ttl))?;
        let Some(index) = self.index(scope) else { return Ok(answer) };
        if let Acquired::Held { .. } = &answer {
            self.holds(before.is_some(), "L3", || {
                format!("{scope} is held back by a lease that is not in force")
            });
        } else if let Acquired::Ours { lease, .. } = &answer {
            let again = before.as_ref().is_some_and(|held| held.token == *token);
            self.holds(before.is_none() || again, "L1", || {
                format!("{scope} was taken under a lease in force: {before:?}")
            });
            let fence = self.watches[index].fence;
            self.holds(again || lease.fence > fence, "L2", || {
                format!("fence {} of {scope} was given after {fence}", lease.fence)
            });
            self.watches[index].fence = fence.max(lease.fence);
        }
        Ok(answer)
    }

    pub fn renew(
        &mut self,
        stores: &Stores,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        let scopes = self.scopes.clone();
        let held: Vec<_> = scopes.iter().filter_map(|scope| self.lease(stores, scope)).collect();
        let lost = at_once(stores.ledger.renew(holder, tokens, ttl))?;
        for token in tokens.iter().filter(|token| !lost.contains(token)) {
            let in_force = held.iter().any(|lease| lease.token == *token);
            self.holds(in_force, "L1", || format!("{token} was renewed after its end"));
        }
        Ok(lost)
    }

    pub fn claim(
        &mut self,
        stores: &Stores,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        let run = at_once(stores.ledger.load(scope, ProcedureKind::Follow)).ok().flatten();
        let version = run.map(|run| run.version);
        let lease = self.lease(stores, scope);
        let rules = self.rules(stores, scope);
        let answer = at_once(stores.ledger.claim(scope, guard, limit))?;
        if let Ok(items) = &answer {
            self.guarded("a claim", guard, lease.as_ref(), version, rules);
            let keys: Vec<&str> = items.iter().map(|item| item.key.as_str()).collect();
            if !keys.is_empty() {
                self.tell(stores, "claimed", format_args!("{scope} {keys:?}"));
            }
        }
        Ok(answer)
    }

    pub(super) fn rules(&self, stores: &Stores, scope: &ScopeId) -> Option<RulesNumber> {
        let record = at_once(stores.ledger.pipeline(scope.pipeline())).ok().flatten()?;
        Some(record.rules.number)
    }

    /// G1, for something that has landed.
    pub(super) fn guarded(
        &mut self,
        what: &str,
        guard: &Guard,
        lease: Option<&Lease>,
        version: Option<RunVersion>,
        rules: Option<RulesNumber>,
    ) {
        let leased =
            lease.is_some_and(|held| held.token == guard.token && held.fence == guard.fence);
        self.holds(leased, "G1", || format!("{what} landed without the lease: {guard:?}"));
        self.holds(version == Some(guard.run_version), "G1", || {
            format!("{what} landed on run version {version:?}: {guard:?}")
        });
        self.holds(rules == Some(guard.rules), "G1", || {
            format!("{what} landed under rules {rules:?}: {guard:?}")
        });
    }
}
