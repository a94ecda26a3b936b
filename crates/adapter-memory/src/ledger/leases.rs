//! Leases in memory.
//!
//! Invariants: L1, L2, L3.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::lease::{self, Lease};
use truekeep_core::ports::{Acquired, Leases, PipelineState};
use truekeep_core::{HolderId, LeaseToken, ScopeId, Timestamp};

use super::MemoryLedger;
use super::state::{LeaseRecord, LedgerState, Name, unknown};

#[async_trait]
impl Leases for MemoryLedger {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        let ttl = lease::length("take a lease", ttl)?;
        let (mut state, now) = self.transaction();
        state.acquire(scope, holder, token, ttl, now)
    }

    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        let ttl = lease::length("renew leases", ttl)?;
        let (mut state, now) = self.transaction();
        Ok(state.renew(holder, tokens, ttl, now))
    }

    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        let (mut state, now) = self.transaction();
        Ok(state.release(scope, token, now))
    }

    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        let (state, now) = self.transaction();
        Ok((state.leases.get(scope).map(|record| record.lease.clone()), now))
    }
}

impl LedgerState {
    fn acquire(
        &mut self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Acquired, PortError> {
        let name = self.names.get_mut(scope.pipeline());
        let Some(Name { life: Some(record), fence, .. }) = name else {
            return Err(unknown("take a lease", scope.pipeline()));
        };
        let before = self.leases.get(scope);
        if let Some(LeaseRecord { lease, .. }) = before.filter(|record| record.in_force(now)) {
            return Ok(if lease.holder == *holder && lease.token == *token {
                Acquired::Ours { lease: lease.clone(), after_crash: false }
            } else {
                Acquired::Held { by: lease.holder.clone(), until: lease.expires_at }
            });
        }
        match record.state {
            PipelineState::Working => {}
            PipelineState::Paused => return Ok(Acquired::Closed(Code::PIPELINE_PAUSED)),
            PipelineState::Removing(_) => return Ok(Acquired::Closed(Code::PIPELINE_REMOVED)),
        }
        let after_crash = before.is_some();
        *fence = fence.next();
        let lease = Lease {
            holder: holder.clone(),
            token: token.clone(),
            fence: *fence,
            expires_at: now.plus(ttl),
        };
        self.leases.insert(scope.clone(), LeaseRecord { lease: lease.clone(), ttl });
        Ok(Acquired::Ours { lease, after_crash })
    }

    fn renew(
        &mut self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
        now: Timestamp,
    ) -> Vec<LeaseToken> {
        let mut renewed = BTreeSet::new();
        for record in self.leases.values_mut().filter(|record| record.in_force(now)) {
            if record.lease.holder == *holder && tokens.contains(&record.lease.token) {
                record.lease.expires_at = now.plus(ttl);
                record.ttl = ttl;
                renewed.insert(&record.lease.token);
            }
        }
        tokens.iter().filter(|token| !renewed.contains(token)).cloned().collect()
    }

    /// An expired lease stays as it is: the next taker learns that its holder did not end it.
    fn release(&mut self, scope: &ScopeId, token: &LeaseToken, now: Timestamp) -> bool {
        let held = self.leases.get(scope).filter(|record| record.in_force(now));
        let ours = held.is_some_and(|record| record.lease.token == *token);
        if ours {
            self.leases.remove(scope);
        }
        ours
    }
}
