//! The ledger in memory: the reference for every other.
//!
//! Each call is one change of one state under one lock, by the clock that is handed in.
//! Invariants: L1, L2, L3, G1, C2, C3, C4.

mod archive;
mod commits;
mod items;
mod leases;
mod operations;
mod state;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Announced, Announcement, Commit, Committed, Ledger, NewRun, Opened, PipelineRecord,
    ProcedureKind, Pulse, Run,
};
use truekeep_core::{LedgerId, PipelineName, ScopeId, Timestamp};

pub use state::LedgerState;

/// Where a ledger in memory reads the time.
pub type LedgerClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A clock that moves when it is told to. Clones are one clock.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at this time.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.ms())))
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::SeqCst))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// Sets it, back as well.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.ms(), Ordering::SeqCst);
    }

    /// The clock as a ledger reads it.
    pub fn reader(&self) -> LedgerClock {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}

/// A ledger in memory. Clones are one ledger.
#[derive(Clone)]
pub struct MemoryLedger {
    id: LedgerId,
    clock: LedgerClock,
    state: Arc<Mutex<LedgerState>>,
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").field("id", &self.id).finish_non_exhaustive()
    }
}

impl MemoryLedger {
    /// An empty ledger.
    pub fn new(id: LedgerId, clock: LedgerClock) -> Self {
        Self { id, clock, state: Arc::default() }
    }

    /// What it holds now: a backup.
    pub fn state(&self) -> LedgerState {
        self.locked().clone()
    }

    /// Puts a backup in place of what it holds.
    pub fn restore(&self, backup: LedgerState) {
        *self.locked() = backup;
    }

    /// The state: a panic of another thread left it whole, because nothing that changes it panics
    /// half-way.
    fn locked(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state and the time, read while the state is ours: as a database reads its clock in the
    /// transaction that uses it.
    fn transaction(&self) -> (MutexGuard<'_, LedgerState>, Timestamp) {
        let state = self.locked();
        let now = (self.clock)();
        (state, now)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn identity(&self) -> Result<LedgerId, PortError> {
        Ok(self.id.clone())
    }

    async fn now(&self) -> Result<Timestamp, PortError> {
        Ok((self.clock)())
    }

    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError> {
        Ok(self.locked().pipeline(name).cloned())
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Announced, PortError> {
        let (mut state, now) = self.transaction();
        state.announce(announcement, now)
    }

    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError> {
        let (mut state, now) = self.transaction();
        state.open_run(new, now)
    }

    async fn load(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Run>, PortError> {
        Ok(self.locked().newest(scope, procedure).map(state::RunRecord::run))
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError> {
        let (mut state, now) = self.transaction();
        state.commit(commit, now)
    }

    async fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Pulse>, PortError> {
        let (state, now) = self.transaction();
        Ok(state.pulse(scope, procedure, now))
    }
}

#[cfg(test)]
mod tests;
