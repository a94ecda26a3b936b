//! Randomness: the one place where ids and jitter are drawn.

use rand::RngExt;
use truekeep_core::ports::Entropy;
use truekeep_core::{CommitToken, HolderId, Incarnation, LeaseToken, LedgerId, RunId};
use uuid::Uuid;

/// UUIDv7 for ids and tokens, the thread's generator for draws.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomEntropy;

fn id() -> String {
    Uuid::now_v7().to_string()
}

/// What a made id always is.
const VALID: &str = "a UUID is a token";

impl Entropy for RandomEntropy {
    fn draw(&self) -> f64 {
        rand::rng().random()
    }

    fn commit_token(&self) -> CommitToken {
        CommitToken::parse(&id()).expect(VALID)
    }

    fn lease_token(&self) -> LeaseToken {
        LeaseToken::parse(&id()).expect(VALID)
    }

    fn run_id(&self) -> RunId {
        RunId::parse(&id()).expect(VALID)
    }

    fn holder_id(&self) -> HolderId {
        HolderId::parse(&format!("{}-{}", std::process::id(), id())).expect(VALID)
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation::parse(&id()).expect(VALID)
    }
}

/// The id of a ledger in memory, which is another one in each process.
pub(crate) fn ledger_id() -> LedgerId {
    LedgerId::parse(&id()).expect(VALID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_at_least_0_and_less_than_1() {
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&RandomEntropy.draw())));
    }

    #[test]
    fn no_two_ids_are_equal() {
        assert_ne!(RandomEntropy.lease_token(), RandomEntropy.lease_token());
        assert_ne!(RandomEntropy.holder_id(), RandomEntropy.holder_id());
    }
}
