//! Leases in SQLite, by the database's clock.
//!
//! Invariants: L1, L2, L3.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, named_params};
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::lease::{self, Lease};
use truekeep_core::ports::{Acquired, Leases, PipelineState};
use truekeep_core::{HolderId, LeaseToken, PipelineName, ScopeId, Timestamp};
use truekeep_sqlite::Failure;

use super::rows::LeaseRow;
use super::{SqliteLedger, ledger, rows, sql};

#[async_trait]
impl Leases for SqliteLedger {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        let ttl = lease::length("take a lease", ttl)?;
        let wanted =
            Wanted { scope: scope.clone(), holder: holder.clone(), token: token.clone(), ttl };
        self.write("take a lease", move |transaction, now| wanted.take(transaction, now)).await
    }

    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        let ttl = lease::length("renew leases", ttl)?;
        let (holder, tokens) = (holder.clone(), tokens.to_vec());
        self.write("renew leases", move |transaction, now| {
            let batch = tokens.iter().map(|token| token.as_str().into()).collect();
            let params = named_params! {
                ":holder": holder.as_str(),
                ":tokens": rows::batch(batch),
                ":now": now.ms(),
                ":expires_at": now.plus(ttl).ms(),
                ":ttl_ms": rows::milliseconds(ttl),
            };
            let renewed = rows::all(transaction, sql::LEASE_RENEW, params, rows::lease_token)?;
            Ok(tokens.into_iter().filter(|token| !renewed.contains(token)).collect())
        })
        .await
    }

    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        let (scope, token) = (scope.to_string(), token.clone());
        self.write("release a lease", move |transaction, now| {
            let params = named_params! {
                ":scope": scope,
                ":token": token.as_str(),
                ":now": now.ms(),
            };
            Ok(rows::execute(transaction, sql::LEASE_RELEASE, params)? > 0)
        })
        .await
    }

    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        let scope = scope.clone();
        self.read("read a lease", move |connection, clock| {
            let lease = load(connection, &scope)?.map(|row| row.lease);
            Ok((lease, clock.now(connection)?))
        })
        .await
    }
}

/// The lease of a scope, in force or not.
pub(super) fn load(connection: &Connection, scope: &ScopeId) -> Result<Option<LeaseRow>, Failure> {
    let params = named_params! { ":scope": scope.to_string() };
    rows::first(connection, sql::LEASE_LOAD, params, rows::lease)
}

/// A lease that somebody wants.
struct Wanted {
    scope: ScopeId,
    holder: HolderId,
    token: LeaseToken,
    ttl: Duration,
}

impl Wanted {
    fn take(self, transaction: &Connection, now: Timestamp) -> Result<Acquired, Failure> {
        let Self { scope, holder, token, ttl } = self;
        let before = load(transaction, &scope)?;
        let after_crash = before.is_some();
        if let Some(LeaseRow { lease, .. }) = before.filter(|row| row.in_force(now)) {
            return Ok(if lease.holder == holder && lease.token == token {
                Acquired::Ours { lease, after_crash: false }
            } else {
                Acquired::Held { by: lease.holder, until: lease.expires_at }
            });
        }
        let pipeline = scope.pipeline();
        let params = named_params! { ":pipeline": pipeline.as_str() };
        let Some(fence) = rows::first(transaction, sql::PIPELINE_DRAW, params, rows::fence)? else {
            return closed(transaction, pipeline);
        };
        let lease = Lease { holder, token, fence, expires_at: now.plus(ttl) };
        let params = named_params! {
            ":scope": scope.to_string(),
            ":pipeline": pipeline.as_str(),
            ":holder": lease.holder.as_str(),
            ":token": lease.token.as_str(),
            ":fence": rows::stored(fence.get())?,
            ":expires_at": lease.expires_at.ms(),
            ":ttl_ms": rows::milliseconds(ttl),
        };
        rows::execute(transaction, sql::LEASE_TAKE, params)?;
        Ok(Acquired::Ours { lease, after_crash })
    }
}

/// Why nobody may have a lease of the pipeline.
fn closed(transaction: &Connection, name: &PipelineName) -> Result<Acquired, Failure> {
    let record = ledger::pipeline(transaction, name)?;
    let record = record.ok_or_else(|| ledger::unknown("take a lease", name))?;
    Ok(Acquired::Closed(match record.state {
        PipelineState::Removing(_) => Code::PIPELINE_REMOVED,
        PipelineState::Working | PipelineState::Paused => Code::PIPELINE_PAUSED,
    }))
}
