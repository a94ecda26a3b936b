//! What a reconcile wants done under its terms, and what it may see.

use crate::code::Code;
use crate::ports::{CaptureState, NewItem};
use crate::{Key, Moment, Place, Stamp};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Look whether capture is trusted, and whether the sink can be compared like this.
    Look,
    /// Hold the next page of the feed against the table; number what differs.
    Audit {
        /// The key after which it begins.
        after: Option<Key>,
        /// The most live feed rows without a row that may be given tombstones.
        ghosts_max: u64,
    },
    /// Nothing outside: the next page is to be marked as one that may kill.
    Arm,
    /// Deliver the next page of the feed again.
    Scan {
        /// The place in the feed.
        after: Place,
        /// Where the scan ends; where follow is, if that is not fixed yet.
        until: Option<Moment>,
        /// The most rows of the page; as many as go well if there is no such bound.
        rows_max: Option<u32>,
    },
    /// Read one row of the feed and do not deliver it: it killed too many workers.
    Isolate {
        /// The place in the feed.
        after: Place,
        /// Where the scan ends.
        until: Option<Moment>,
    },
    /// Hold the next range of the sink against the feed; number what is missing or stale.
    Compare {
        /// The key after which it begins.
        after: Option<Key>,
        /// In the second round what still differs does not converge: it is parked.
        park: bool,
    },
    /// Judge the orphans of the next range again and write their tombstones; number its altered
    /// documents.
    Purge {
        /// The key after which it begins.
        after: Option<Key>,
        /// The most orphans that may be removed: what the guard has let pass, and no more.
        orphans_max: u64,
        /// The most altered documents that may be numbered; none if there are none to look for.
        altered_max: Option<u64>,
    },
    /// Look whether follow has delivered this write.
    Await {
        /// The last write that gave numbers.
        numbered: Stamp,
    },
}

/// What was seen. Counts are of the page or range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The source's capture.
    Looked(CaptureState),
    /// A page of the audit.
    Audited {
        /// Where the next page begins; none after the last.
        next: Option<Key>,
        /// What it held.
        found: Audited,
        /// The last write that gave numbers.
        numbered: Option<Stamp>,
    },
    /// The lease is ours since a moment ago.
    TookOver {
        /// Whether the holder before died.
        after_crash: bool,
        /// The rows of a page while nobody dies of it.
        page_rows: u32,
    },
    /// The next page is marked.
    Armed,
    /// A page was delivered again, or is items.
    Scanned {
        /// The place after it.
        next: Place,
        /// Where the scan ends.
        until: Moment,
        /// Whether that was reached.
        end: bool,
        /// Records that were sent.
        delivered: u64,
        /// Records of which the sink holds a newer version than the source knows.
        ahead: u64,
    },
    /// The sink is listed anew, from the beginning.
    Listing,
    /// A range of the comparison.
    Compared {
        /// Where the next range begins; none after the last.
        next: Option<Key>,
        /// What it held and what differed.
        found: Found,
        /// What differs although it was repaired.
        park: Vec<NewItem>,
        /// The last write that gave numbers.
        numbered: Option<Stamp>,
    },
    /// A range of the purge.
    Purged {
        /// Where the next range begins; none after the last.
        next: Option<Key>,
        /// Orphans that have a tombstone now.
        buried: u64,
        /// Altered documents that have a number now.
        mended: u64,
        /// Entries that no key of the source can be, removed by their listed rank.
        foreign: u64,
        /// Orphans that the sink would not let go.
        refused: u64,
        /// Whether there was more than allowed; then nothing was removed or numbered.
        exceeded: bool,
        /// The last write that gave numbers.
        numbered: Option<Stamp>,
    },
    /// A port needs an operator.
    Refused(Code),
    /// How far follow is.
    Awaited {
        /// Whether it was delivered.
        reached: bool,
    },
}

/// What a page of the audit held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Audited {
    /// Rows that the feed did not have, all numbered.
    pub missed: u64,
    /// Of those, how many stood in pages of which more than half were missed: the table was rewritten,
    /// or loaded, past capture.
    pub rewritten: u64,
    /// Live feed rows without a row; numbered unless they were more than allowed.
    pub ghosts: u64,
}

/// What a range held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Entries of the sink.
    pub listed: u64,
    /// Live records of the source.
    pub live: u64,
    /// The sink lacks them.
    pub missing: u64,
    /// The sink has an older one.
    pub stale: u64,
    /// The sink has another document at the same rank.
    pub altered: u64,
    /// The source has none.
    pub orphans: u64,
    /// The sink has a newer one than the source knows.
    pub ahead: u64,
    /// Entries of the sink that are not the pipeline's and were left alone.
    pub unmarked: u64,
    /// Orphans whose removal is an item: it is tried, or waits for an operator.
    pub waiting: u64,
    /// Parked records that were gone from both sides, and are settled.
    pub unparked: u64,
    /// Differences of records that were delivered so lately that the listing may not show it.
    pub late: u64,
}

impl Observation {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Looked(_) => "looked",
            Self::Audited { .. } => "audited",
            Self::TookOver { .. } => "took_over",
            Self::Armed => "armed",
            Self::Scanned { .. } => "scanned",
            Self::Listing => "listing",
            Self::Compared { .. } => "compared",
            Self::Purged { .. } => "purged",
            Self::Refused(_) => "refused",
            Self::Awaited { .. } => "awaited",
        }
    }
}
