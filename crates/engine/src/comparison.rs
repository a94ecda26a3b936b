//! The comparison of source and sink, one range of keys at a time: a page of the sink, then the
//! source up to the end of that page. Both `diff` and reconcile judge by it.
//!
//! Invariants: M1, M2, Q3.

mod deep;
mod judge;
mod listing;
mod merge;
mod pending;
mod sorted;

use std::collections::BTreeSet;

use truekeep_core::compare::{Difference, Owns};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Feed, Items, Records, Settle, Sink};
use truekeep_core::{Key, Place, Rank, RulesNumber, ScopeId};

use listing::{Listed, Origin};
use merge::{Merge, Merged};
use pending::Pending;
pub use sorted::Sorted;
pub(crate) use sorted::Sorting;

/// Differences that are judged at once, and what a page may add.
const GATHERED: usize = 100;

/// What is compared.
#[derive(Debug, Clone)]
pub struct Sides<'p> {
    /// The part of a pipeline.
    pub scope: ScopeId,
    /// The rules in force.
    pub rules: RulesNumber,
    /// Every change before it was delivered under these rules, or is an item. Read before the
    /// comparison begins.
    pub cursor: Place,
    /// What was delivered since the sink was listed; none if it is listed as it is compared.
    pub since: Option<Since<'p>>,
    /// Whether documents are compared where ranks are equal.
    pub deep: bool,
    /// Which entries of the sink are the pipeline's.
    pub owns: Owns,
    /// The feed.
    pub feed: &'p dyn Feed,
    /// The records.
    pub records: &'p dyn Records,
    /// The derived store.
    pub sink: &'p dyn Sink,
    /// Deliveries that are not done.
    pub items: &'p dyn Items,
}

/// What was delivered since the sink was listed, and may not show in the listing.
#[derive(Debug, Clone)]
pub struct Since<'p> {
    /// Every change before it was delivered by now.
    pub passed: Place,
    /// Items that were delivered meanwhile.
    pub redelivered: &'p BTreeSet<Key>,
}

/// A difference that follow is not about to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// What differs, and how.
    pub difference: Difference,
    /// What the source wants, as far as the feed knows: an orphan's is its tombstone's.
    pub wanted: Option<Rank>,
    /// Whether the record is parked.
    pub parked: bool,
    /// Whether no record can have its key: an entry of the sink that is too much.
    pub foreign: bool,
}

/// What a part of a range held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Differences, in the order of keys.
    pub drifts: Vec<Drift>,
    /// Keys that are not equal, whatever comes of it, in the order they were found.
    pub differing: Vec<Key>,
    /// Documents that differ and may only be newer than their versions, since marks of related
    /// tables wait in the source.
    pub undecided: Vec<Key>,
    /// Differences that follow is about to deliver, or is trying to.
    pub in_flight: u64,
    /// Of those, how many were delivered since the sink was listed.
    pub late: u64,
    /// Orphans whose removal is an item: it is tried, or waits for an operator.
    pub waiting: u64,
    /// Parked items of records that neither side has any more; found by [`Comparison::gone`].
    pub gone: Vec<Settle>,
    /// Entries of the sink that are the pipeline's.
    pub listed: u64,
    /// Entries of the sink that are not, and are left alone.
    pub unmarked: u64,
    /// Live records of the source.
    pub live: u64,
    /// Keys that are equal.
    pub equal: u64,
}

impl Stretch {
    /// What follows this part is added to it.
    pub(crate) fn extend(&mut self, next: Self) {
        let Self { drifts, differing, undecided, gone, .. } = next;
        self.drifts.extend(drifts);
        self.differing.extend(differing);
        self.undecided.extend(undecided);
        self.gone.extend(gone);
        self.in_flight += next.in_flight;
        self.late += next.late;
        self.waiting += next.waiting;
        self.listed += next.listed;
        self.unmarked += next.unmarked;
        self.live += next.live;
        self.equal += next.equal;
    }

    /// Whether at least so many keys are in hand.
    pub(crate) fn is_full(&self, keys: usize) -> bool {
        self.differing.len() + self.gone.len() >= keys
    }
}

/// A comparison under way.
#[derive(Debug)]
pub struct Comparison<'p> {
    sides: Sides<'p>,
    merge: Merge<'p>,
    pending: Pending<'p>,
}

impl<'p> Comparison<'p> {
    /// Begins after a key, with at most `limit` keys of either side in hand, over a sink that lists
    /// in the order of keys.
    pub fn begin(sides: Sides<'p>, after: Option<Key>, limit: u32) -> Self {
        let origin = Origin::Sink(sides.sink);
        Self::of(sides, origin, after, limit)
    }

    /// As [`Self::begin`], over a listing that was sorted. It was taken before the source is read
    /// here, and the cursor of the sides before it.
    pub fn over(sides: Sides<'p>, sorted: &'p mut Sorted, after: Option<Key>, limit: u32) -> Self {
        Self::of(sides, Origin::Sorted(sorted), after, limit)
    }

    fn of(sides: Sides<'p>, origin: Origin<'p>, after: Option<Key>, limit: u32) -> Self {
        let pending = Pending::new(sides.items, sides.scope.clone(), after.clone(), limit);
        let listed = Listed::new(origin, sides.owns, limit);
        let merge = Merge::new(listed, sides.records, sides.rules, sides.deep, after, limit);
        Self { sides, merge, pending }
    }

    /// The next part; `None` once both sides have ended.
    ///
    /// # Errors
    /// Those of the ports; class Terminal with `SINK_DISORDERED` or `UNEXPECTED` if the sink or the
    /// source does not list in the byte order of keys, or stands still, and with
    /// `SINK_UNVERIFIABLE` if the sink cannot say whether it holds a document.
    pub async fn advance(&mut self) -> Result<Option<Stretch>, PortError> {
        self.advance_by(1).await
    }

    /// As [`Self::advance`], by so many ranges at most, by fewer once a hundred keys differ, and by one
    /// where documents are compared. The feed
    /// and the items are asked about all differences at once. Q3 bears that they are asked later: what the
    /// feed says then is newer than both listings, and more of it is still to be delivered.
    ///
    /// # Errors
    /// Those of [`Self::advance`].
    pub async fn advance_by(&mut self, ranges: u32) -> Result<Option<Stretch>, PortError> {
        if self.sides.deep {
            self.sides.sink.capabilities().verifying()?;
        }
        let (mut seen, mut differences) = (None, Vec::new());
        for _ in 0..if self.sides.deep { 1 } else { ranges } {
            let Some((stretch, differing)) = self.look().await? else { break };
            seen.get_or_insert_with(Stretch::default).extend(stretch);
            differences.extend(differing);
            if differences.len() >= GATHERED {
                break;
            }
        }
        if let Some(seen) = &mut seen {
            self.judge(differences, seen).await?;
        }
        Ok(seen)
    }

    /// One part, of which nothing is judged yet.
    async fn look(&mut self) -> Result<Option<(Stretch, Vec<Difference>)>, PortError> {
        let Some(merged) = self.merge.advance().await? else { return Ok(None) };
        let Merged { mut differences, equal, same, unmarked } = merged;
        let count = |one: fn(&Difference) -> bool| differences.iter().filter(|d| one(d)).count();
        let mut stretch = Stretch {
            equal,
            unmarked,
            listed: equal + count(|d| !matches!(d, Difference::Missing(..))) as u64,
            live: equal + count(|d| !matches!(d, Difference::Orphan(..))) as u64,
            ..Stretch::default()
        };
        let altered = deep::altered(&self.sides, same).await?;
        if !altered.is_empty() {
            stretch.equal -= altered.len() as u64;
            differences.extend(altered);
            differences.sort_by(|one, other| one.key().cmp(other.key()));
        }
        stretch.differing = differences.iter().map(|found| found.key().clone()).collect();
        Ok(Some((stretch, differences)))
    }

    /// The key after which the next part begins; `None` after the last.
    pub fn place(&self) -> Option<&Key> {
        self.merge.place.as_ref().filter(|_| !self.merge.ended)
    }
}

#[cfg(test)]
mod tests;
