//! The guard against deleting too much, and against writing too much again.

use serde::{Deserialize, Serialize};

use super::Report;

/// How many orphans may be deleted without asking, and how many altered documents written again.
/// Share and number are those of the whole listing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlastGuard {
    /// Up to this many are deleted whatever their share.
    pub orphans_free: u64,
    /// The greatest share of the listing, 0 to 1, above that.
    pub share_max: f64,
    /// Never more than this many.
    pub orphans_max: u64,
}

/// Why the guard refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The source is empty and the sink is not.
    EmptySource,
    /// Everything would go.
    Everything,
    /// Too many of what is listed.
    Share,
    /// Too many.
    Number,
}

impl Default for BlastGuard {
    /// More than 20 orphans that are more than 5 %, or more than 100,000, ask.
    fn default() -> Self {
        Self { orphans_free: 20, share_max: 0.05, orphans_max: 100_000 }
    }
}

impl BlastGuard {
    /// After a source went back: what only the lost future had is an operator's to give up, but for
    /// a few records.
    pub const LOST_FUTURE: Self = Self { orphans_free: 19, share_max: 0.0, orphans_max: 100_000 };

    /// Whether the orphans of a whole comparison may be deleted, and its altered documents written
    /// again: a projection that never gives the same document twice would alter them all, each time.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, report: &Report) -> Result<(), Refusal> {
        let Report { orphans, altered, listed, live, .. } = *report;
        if orphans > 0 && live == 0 {
            return Err(Refusal::EmptySource);
        }
        if orphans > 0 && orphans >= listed {
            return Err(Refusal::Everything);
        }
        self.bounded(orphans, listed)?;
        self.bounded(altered.unwrap_or(0), listed)
    }

    fn bounded(&self, some: u64, all: u64) -> Result<(), Refusal> {
        if some > self.orphans_max {
            return Err(Refusal::Number);
        }
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
        let share = some as f64 / all as f64;
        if some > self.orphans_free && share > self.share_max {
            return Err(Refusal::Share);
        }
        Ok(())
    }
}
