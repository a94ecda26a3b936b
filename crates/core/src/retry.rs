//! When to try again: pure arithmetic over an attempt and a draw.
//!
//! Invariants: R1 (never over the cap), R2 (the bare delay grows with the attempt), R3 (no overflow).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Attempt;
use crate::failure::FailureClass;

/// How a draw spreads the delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// No spread.
    None,
    /// Up to this share of the delay on top of it.
    Additive(f64),
    /// Anything between nothing and the delay.
    Full,
    /// Half of the delay, and up to the other half on top.
    Equal,
}

/// Exponential backoff with jitter: min(cap, base × 2^attempt), spread, and still capped.
///
/// Source of the forms of jitter: M. Brooker, "Exponential Backoff And Jitter", 2015.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The delay after the first failure.
    pub base: Duration,
    /// No delay is longer.
    pub cap: Duration,
    /// How often something is tried before it is given up.
    pub attempts_max: Attempt,
    /// How the delay is spread.
    pub jitter: Jitter,
}

impl RetryPolicy {
    /// The policy of runs: 30 s doubling to 15 min, five attempts.
    pub const RUN: Self = Self {
        base: Duration::from_secs(30),
        cap: Duration::from_secs(900),
        attempts_max: 5,
        jitter: Jitter::Additive(0.25),
    };

    /// The policy of deliveries: 1 s doubling to 15 min, five attempts.
    pub const DELIVERY: Self = Self { base: Duration::from_secs(1), ..Self::RUN };

    /// The delay after `attempt` earlier failures (0 after the first).
    ///
    /// `draw` is uniform in [0, 1); what lies outside is clamped, and what is no number is 0.
    pub fn delay(&self, attempt: Attempt, draw: f64) -> Duration {
        let draw = if draw.is_nan() { 0.0 } else { draw.clamp(0.0, 1.0) };
        let factor = 2u32.checked_pow(attempt).unwrap_or(u32::MAX);
        let bare = self.base.saturating_mul(factor).min(self.cap);
        let share = |of: f64| bare.checked_add(scaled(bare, of)).unwrap_or(self.cap);
        let spread = match self.jitter {
            Jitter::None => bare,
            Jitter::Additive(part) => share(part.max(0.0) * draw),
            Jitter::Full => scaled(bare, draw),
            Jitter::Equal => scaled(bare, 0.5 + draw / 2.0),
        };
        spread.min(self.cap)
    }
}

fn scaled(duration: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * by).unwrap_or(Duration::MAX)
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this long.
    Again(Duration),
    /// Somebody newer owns this: drop what is held and do not write.
    GiveWay,
    /// An operator is needed: say so and look again now and then.
    Halt,
}

/// Decides about a failure by its class. Transient trouble waits for as long as it lasts.
pub fn decide(
    class: FailureClass,
    policy: &RetryPolicy,
    attempt: Attempt,
    draw: f64,
    asked: Option<Duration>,
) -> Decision {
    match class {
        FailureClass::Retry | FailureClass::Unknown => {
            let own = policy.delay(attempt, draw);
            Decision::Again(asked.map_or(own, |asked| asked.max(own).min(policy.cap.max(asked))))
        }
        FailureClass::Fenced => Decision::GiveWay,
        FailureClass::Halted | FailureClass::Terminal => Decision::Halt,
    }
}

#[cfg(test)]
mod tests;
