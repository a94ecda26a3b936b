//! Time: the runtime's paused clock, and the ledger's, which may jump.

#![expect(clippy::disallowed_methods, reason = "the runtime's paused clock is the world's clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use truekeep_core::Timestamp;

/// Where the ledger's clock begins: far from zero, so that jumps back stay dates.
const LEDGER_EPOCH_MS: i64 = 1_700_000_000_000;

/// The world's time. Clones are one time.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    began: Instant,
    skew_ms: Arc<AtomicI64>,
}

impl Time {
    /// Begins now, in a runtime whose clock is paused.
    pub fn begin() -> Self {
        Self { began: Instant::now(), skew_ms: Arc::default() }
    }

    /// How long the world exists.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Lets time pass.
    pub async fn pass(&self, length: Duration) {
        sleep_until(Instant::now() + length).await;
    }

    /// What the ledger's clock shows.
    pub fn ledger(&self) -> Timestamp {
        let skew = self.skew_ms.load(Ordering::Relaxed);
        Timestamp::from_ms(LEDGER_EPOCH_MS + skew).plus(self.now())
    }

    /// The ledger's clock jumps, back if negative.
    pub fn jump_ledger(&self, ms: i64) {
        self.skew_ms.fetch_add(ms, Ordering::Relaxed);
    }
}
