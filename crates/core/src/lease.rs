//! Leases: who may try. Judged by the ledger's clock alone.
//!
//! Invariants: L1 (one holder), L2 (a fence is never given twice), L3 (an expiry further away than
//! the ttl means that the ledger's clock went back, and counts as expired).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::failure::{FailureClass, PortError};
use crate::{Fence, HolderId, LeaseToken, Timestamp, limits};

/// A lease as the ledger stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The process that holds it.
    pub holder: HolderId,
    /// The taking of it.
    pub token: LeaseToken,
    /// Grows with each taking.
    pub fence: Fence,
    /// When it ends, by the ledger's clock.
    pub expires_at: Timestamp,
}

/// Whether a stored lease is in force.
///
/// `ttl` is the longest that any lease may run.
pub fn in_force(lease: &Lease, now: Timestamp, ttl: Duration) -> bool {
    lease.expires_at > now && lease.expires_at <= now.plus(ttl)
}

/// Checks the length that a lease is asked for with.
///
/// # Errors
/// Terminal, unless it is 1 ms to [`limits::DURATION_MAX`].
pub fn length(operation: &'static str, ttl: Duration) -> Result<Duration, PortError> {
    if (Duration::from_millis(1)..=limits::DURATION_MAX).contains(&ttl) {
        return Ok(ttl);
    }
    Err(PortError::new(operation, FailureClass::Terminal, Code::CONFIG_INVALID)
        .detail(format!("a lease of {ttl:?} is not possible")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_a_length_and_it_is_bounded() {
        for ttl in [Duration::from_millis(1), limits::DURATION_MAX] {
            assert_eq!(length("take", ttl).ok(), Some(ttl));
        }
        for ttl in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
            assert_eq!(length("take", ttl).expect_err("no").class, FailureClass::Terminal);
        }
    }

    #[test]
    fn a_lease_is_in_force_up_to_its_expiry_and_no_further_than_its_ttl() {
        let lease = Lease {
            holder: HolderId::parse("h").expect("valid"),
            token: LeaseToken::parse("t").expect("valid"),
            fence: Fence::new(1),
            expires_at: Timestamp::from_ms(1_000),
        };
        let at = |ms| in_force(&lease, Timestamp::from_ms(ms), Duration::from_millis(300));
        assert!(at(999) && at(700));
        assert!(!at(1_000), "it ends at its expiry");
        assert!(!at(699), "the clock went back");
    }
}
