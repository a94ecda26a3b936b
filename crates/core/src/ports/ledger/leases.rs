//! Leases: who may try.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::code::Code;
use crate::failure::PortError;
use crate::lease::Lease;
use crate::{HolderId, LeaseToken, ScopeId, Timestamp};

/// The answer to an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It is ours.
    Ours {
        /// The lease.
        lease: Lease,
        /// Whether the holder before neither released it nor is alive.
        after_crash: bool,
    },
    /// Somebody has it.
    Held {
        /// The process that has it.
        by: HolderId,
        /// When it ends unless it is renewed, by the ledger's clock.
        until: Timestamp,
    },
    /// Nobody may have it: an operator has paused the pipeline or is removing it, as the code says.
    Closed(Code),
}

/// Who may try.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Leases: Debug + Send + Sync {
    /// Takes the lease of a scope if nobody has it, by the ledger's clock (L1, L3), with a fence
    /// number that the pipeline never gave before (L2). The pipeline must have been announced.
    ///
    /// A repeat with the same token finds the lease that the first try took.
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError>;

    /// Moves the expiry of all these leases to now + ttl, in one statement, and returns the tokens
    /// whose lease is no longer theirs. An expired lease that nobody took is lost as well.
    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError>;

    /// Gives a lease back: true if it was still this token's. Leaves anybody else's lease alone.
    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError>;

    /// The lease of a scope, in force or not, and the ledger's now.
    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError>;
}
