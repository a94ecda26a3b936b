//! Time and randomness, for the engine only.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::{CommitToken, HolderId, Incarnation, LeaseToken, RunId};

/// Time as the process sees it. It never decides who may take a lease or what may land.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// Time since some fixed point, counting on while the machine sleeps (boot time).
    fn monotonic(&self) -> Duration;

    /// Returns after this long.
    async fn sleep(&self, length: Duration);
}

/// Randomness: ids, tokens and jitter draws.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Entropy: Debug + Send + Sync {
    /// A draw, uniform in [0, 1).
    fn draw(&self) -> f64;
    /// A token for one commit.
    fn commit_token(&self) -> CommitToken;
    /// A token for one taking of a lease.
    fn lease_token(&self) -> LeaseToken;
    /// An id for one run.
    fn run_id(&self) -> RunId;
    /// An id for one process start.
    fn holder_id(&self) -> HolderId;
    /// An id for one life of a pipeline.
    fn incarnation(&self) -> Incarnation;
}
