//! Leases in Postgres, by the server's clock.
//!
//! Invariants: L1, L2, L3.

use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::lease::{self, Lease};
use truekeep_core::ports::{Acquired, Leases, PipelineState};
use truekeep_core::{HolderId, LeaseToken, PipelineName, ScopeId, Timestamp};
use truekeep_postgres::{Failure, Transaction};

use super::rows::LeaseRow;
use super::{Hold, PostgresLedger, ledger, rows, sql};

#[async_trait]
impl Leases for PostgresLedger {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        let ttl = lease::length("take a lease", ttl)?;
        let wanted = Wanted { scope, holder, token, ttl };
        let (mut transaction, now) = self.writing("take a lease", Hold::Scope(scope)).await?;
        let done = wanted.take(&mut transaction, now).await;
        transaction.end(done).await
    }

    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        let ttl = lease::length("renew leases", ttl)?;
        let hold = Hold::Tokens(holder, tokens);
        let (mut transaction, now) = self.writing("renew leases", hold).await?;
        let query = Transaction::query(sql::LEASE_RENEW)
            .bind(holder.as_str().to_owned())
            .bind(rows::texts(tokens))
            .bind(now.ms())
            .bind(now.plus(ttl).ms())
            .bind(rows::milliseconds(ttl));
        let renewed = rows::all(&mut transaction, query, rows::lease_token).await;
        let renewed = transaction.end(renewed).await?;
        Ok(tokens.iter().filter(|token| !renewed.contains(token)).cloned().collect())
    }

    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        let (mut transaction, now) = self.writing("release a lease", Hold::Scope(scope)).await?;
        let query = Transaction::query(sql::LEASE_RELEASE)
            .bind(scope.to_string())
            .bind(token.as_str().to_owned())
            .bind(now.ms());
        let released = rows::execute(&mut transaction, query).await;
        Ok(transaction.end(released).await? > 0)
    }

    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        let mut reading = self.reading("read a lease").await?;
        let found = async {
            let lease = load(&mut reading, scope).await?.map(|row| row.lease);
            Ok((lease, self.clock.now(&mut reading).await?))
        };
        let found = found.await;
        reading.end(found).await
    }
}

/// The lease of a scope, in force or not.
pub(super) async fn load(
    transaction: &mut Transaction,
    scope: &ScopeId,
) -> Result<Option<LeaseRow>, Failure> {
    let query = Transaction::query(sql::LEASE_LOAD).bind(scope.to_string());
    rows::first(transaction, query, rows::lease).await
}

/// A lease that somebody wants.
struct Wanted<'a> {
    scope: &'a ScopeId,
    holder: &'a HolderId,
    token: &'a LeaseToken,
    ttl: Duration,
}

impl Wanted<'_> {
    async fn take(
        &self,
        transaction: &mut Transaction,
        now: Timestamp,
    ) -> Result<Acquired, Failure> {
        let before = load(transaction, self.scope).await?;
        let after_crash = before.is_some();
        if let Some(LeaseRow { lease, .. }) = before.filter(|row| row.in_force(now)) {
            return Ok(if lease.holder == *self.holder && lease.token == *self.token {
                Acquired::Ours { lease, after_crash: false }
            } else {
                Acquired::Held { by: lease.holder, until: lease.expires_at }
            });
        }
        let pipeline = self.scope.pipeline();
        let query = Transaction::query(sql::PIPELINE_DRAW).bind(pipeline.as_str().to_owned());
        let Some(fence) = rows::first(transaction, query, rows::fence).await? else {
            return closed(transaction, pipeline).await;
        };
        let lease = Lease {
            holder: self.holder.clone(),
            token: self.token.clone(),
            fence,
            expires_at: now.plus(self.ttl),
        };
        let query = Transaction::query(sql::LEASE_TAKE)
            .bind(self.scope.to_string())
            .bind(pipeline.as_str().to_owned())
            .bind(lease.holder.as_str().to_owned())
            .bind(lease.token.as_str().to_owned())
            .bind(rows::stored(fence.get())?)
            .bind(lease.expires_at.ms())
            .bind(rows::milliseconds(self.ttl));
        rows::execute(transaction, query).await?;
        Ok(Acquired::Ours { lease, after_crash })
    }
}

/// Why nobody may have a lease of the pipeline.
async fn closed(transaction: &mut Transaction, name: &PipelineName) -> Result<Acquired, Failure> {
    let record = ledger::pipeline(transaction, name).await?;
    let record = record.ok_or_else(|| ledger::unknown("take a lease", name))?;
    Ok(Acquired::Closed(match record.state {
        PipelineState::Removing(_) => Code::PIPELINE_REMOVED,
        PipelineState::Working | PipelineState::Paused => Code::PIPELINE_PAUSED,
    }))
}
