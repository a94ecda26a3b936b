//! What a reconcile found and did.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Found;
use crate::Stamp;

/// Counts of a run, over both rounds where not said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Entries of the sink, in the first round.
    pub listed: u64,
    /// Live records of the source, in the first round.
    pub live: u64,
    /// Rows whose feed row was absent or a tombstone.
    pub capture_missed: u64,
    /// Live feed rows without a row.
    pub ghosts: u64,
    /// The sink lacked them.
    pub missing: u64,
    /// The sink had an older one.
    pub stale: u64,
    /// The source had none.
    pub orphans: u64,
    /// The sink had a newer one than the source knows.
    pub ahead: u64,
    /// Orphans that were removed.
    pub deleted: u64,
    /// Orphans that the sink would not let go.
    pub refused: u64,
    /// Entries among them that no key of the source can be.
    pub foreign: u64,
    /// Records that came back as the same difference and were parked.
    pub parked: u64,
    /// Rounds that have ended.
    pub rounds: u32,
    /// The last write that gave numbers: what follow has to reach.
    pub numbered: Stamp,
}

impl Report {
    pub(super) fn number(&mut self, given: Option<Stamp>) {
        self.numbered = given.map_or(self.numbered, |given| given.max(self.numbered));
    }

    pub(super) fn add(&mut self, found: Found) {
        if self.rounds == 0 {
            self.listed += found.listed;
            self.live += found.live;
        }
        self.missing += found.missing;
        self.stale += found.stale;
        self.orphans += found.orphans;
        self.ahead += found.ahead;
    }

    /// Whether anything was given a number or removed.
    pub fn repaired(&self) -> bool {
        self.numbered > Stamp::new(0) || self.deleted > 0
    }

    /// Whether source and sink were equal.
    pub fn clean(&self) -> bool {
        self.capture_missed + self.ghosts + self.missing + self.stale + self.orphans + self.ahead
            == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} live, {} listed: {} missed by capture, {} missing, {} stale, {} orphans, \
             {} ahead; {} deleted, {} refused, {} parked",
            self.live,
            self.listed,
            self.capture_missed + self.ghosts,
            self.missing,
            self.stale,
            self.orphans,
            self.ahead,
            self.deleted,
            self.refused,
            self.parked
        )
    }
}
