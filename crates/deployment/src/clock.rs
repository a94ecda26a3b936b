//! Time as this machine sees it.

use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::Timestamp;
use truekeep_core::ports::Clock;

/// Boot time, where the system has it: it counts on while the machine sleeps, so that a lease does
/// not seem fresh to a laptop that was closed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        // Apple's monotonic clock counts on while the machine sleeps.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds)
            .saturating_add(Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0)))
    }

    async fn sleep(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }
}

/// The time of day: what a ledger in memory goes by, as no database's clock is there.
pub fn wall() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_does_not_go_back() {
        let (first, second) = (SystemClock.monotonic(), SystemClock.monotonic());
        assert!(first > Duration::ZERO && second >= first);
    }
}
