//! What a reconcile found and did.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Found, Terms};
use crate::Stamp;

/// Counts of a run, over both rounds where not said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Records that were delivered again before anything was compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scanned: u64,
    /// Entries of the sink, in the first round.
    pub listed: u64,
    /// Live records of the source, in the first round.
    pub live: u64,
    /// Rows whose feed row was absent or a tombstone.
    pub capture_missed: u64,
    /// Of those, how many stood in pages of which more than half were missed: the table was rewritten,
    /// or loaded, past capture.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rewritten: u64,
    /// Live feed rows without a row.
    pub ghosts: u64,
    /// The sink lacked them.
    pub missing: u64,
    /// The sink had an older one.
    pub stale: u64,
    /// The sink had another document at the same rank; none if documents were not compared.
    #[serde(default)]
    pub altered: Option<u64>,
    /// The source had none.
    pub orphans: u64,
    /// The sink had a newer one than the source knows.
    pub ahead: u64,
    /// Entries of the sink that are not the pipeline's, in the first round.
    #[serde(default)]
    pub unmarked: u64,
    /// Records whose document was altered and that were given a number.
    #[serde(default)]
    pub mended: u64,
    /// Orphans that were removed.
    pub deleted: u64,
    /// Orphans that the sink would not let go.
    pub refused: u64,
    /// Entries among them that no key of the source can be.
    pub foreign: u64,
    /// Records that came back as the same difference and were parked.
    pub parked: u64,
    /// Parked records that were gone from both sides, and are parked no more.
    #[serde(default)]
    pub unparked: u64,
    /// Orphans whose removal was an item before anything was removed.
    #[serde(default)]
    pub waiting: u64,
    /// The same afterwards: those that came to it are not deleted yet.
    #[serde(default)]
    pub undone: u64,
    /// Rounds that have ended.
    pub rounds: u32,
    /// Differences of records that were delivered so lately that the listing may not have shown it:
    /// they are judged again in a first round of its own.
    #[serde(default)]
    pub late: u64,
    /// Whether they were.
    #[serde(default)]
    pub retaken: bool,
    /// How often the sink was listed from the beginning, where that is worth counting.
    #[serde(default)]
    pub listings: u32,
    /// The last write that gave numbers: what follow has to reach.
    pub numbered: Stamp,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Report {
    /// The report of a run that begins.
    pub(super) fn of(terms: &Terms) -> Self {
        Self { altered: terms.deep.then_some(0), ..Self::default() }
    }

    pub(super) fn number(&mut self, given: Option<Stamp>) {
        self.numbered = given.map_or(self.numbered, |given| given.max(self.numbered));
    }

    pub(super) fn add(&mut self, found: Found) {
        if self.rounds == 0 && !self.retaken {
            self.listed += found.listed;
            self.live += found.live;
            self.unmarked += found.unmarked;
        }
        self.missing += found.missing;
        self.stale += found.stale;
        self.altered = self.altered.map(|altered| altered + found.altered);
        self.orphans += found.orphans;
        self.ahead += found.ahead;
        self.late += found.late;
        self.unparked += found.unparked;
        let waiting = if self.rounds == 0 { &mut self.waiting } else { &mut self.undone };
        *waiting += found.waiting;
    }

    /// What was not let go is not called deleted.
    pub(super) fn settle_deletions(&mut self) {
        let undone = self.undone.saturating_sub(self.waiting).min(self.deleted);
        self.deleted -= undone;
        self.refused += undone;
    }

    /// Whether anything was given a number or removed.
    pub fn repaired(&self) -> bool {
        self.numbered > Stamp::new(0) || self.deleted > 0
    }

    /// Whether source and sink were equal.
    pub fn clean(&self) -> bool {
        let Self { capture_missed, ghosts, missing, stale, altered, orphans, ahead, .. } = *self;
        let altered = altered.unwrap_or(0);
        capture_missed + ghosts + missing + stale + altered + orphans + ahead == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scanned > 0 {
            write!(f, "{} delivered again; ", self.scanned)?;
        }
        let missed = self.capture_missed + self.ghosts;
        let Self { live, listed, missing, stale, .. } = self;
        write!(f, "{live} live, {listed} listed: {missed} missed by capture, ")?;
        if self.rewritten > 0 {
            write!(f, "{} of them in a rewritten table, ", self.rewritten)?;
        }
        write!(f, "{missing} missing, ")?;
        write!(f, "{stale} stale, ")?;
        if let Some(altered) = self.altered {
            write!(f, "{altered} altered, ")?;
        }
        let Self { orphans, ahead, deleted, refused, parked, .. } = self;
        write!(f, "{orphans} orphans, {ahead} ahead; ")?;
        write!(f, "{deleted} deleted, {refused} refused, {parked} parked")?;
        match self.unmarked {
            0 => Ok(()),
            unmarked => write!(f, ", {unmarked} of others left alone"),
        }
    }
}
