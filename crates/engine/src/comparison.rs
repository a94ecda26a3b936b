//! The comparison of source and sink, one range of keys at a time: a page of the sink, then the
//! source up to the end of that page. Both `diff` and reconcile judge by it.
//!
//! Invariants: M1, M2, Q3.

mod deep;
mod listing;
mod merge;
mod pending;

use truekeep_core::compare::{Difference, Owns};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Change, Feed, ItemState, Items, Records, Sink};
use truekeep_core::{Key, Place, Rank, RulesNumber, ScopeId};

use listing::Listed;
use merge::{Merge, Merged};
use pending::Pending;

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
    /// Documents that differ and may only be newer than their versions, since marks of related
    /// tables wait in the source.
    pub undecided: Vec<Key>,
    /// Differences that follow is about to deliver, or is trying to.
    pub in_flight: u64,
    /// Entries of the sink that are the pipeline's.
    pub listed: u64,
    /// Entries of the sink that are not, and are left alone.
    pub unmarked: u64,
    /// Live records of the source.
    pub live: u64,
    /// Keys that are equal.
    pub equal: u64,
}

/// A comparison under way.
#[derive(Debug)]
pub struct Comparison<'p> {
    sides: Sides<'p>,
    merge: Merge<'p>,
    pending: Pending<'p>,
}

impl<'p> Comparison<'p> {
    /// Begins after a key, with at most `limit` keys of either side in hand.
    pub fn begin(sides: Sides<'p>, after: Option<Key>, limit: u32) -> Self {
        let pending = Pending::new(sides.items, sides.scope.clone(), after.clone(), limit);
        let listed = Listed::new(sides.sink, sides.owns, limit);
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
        if self.sides.deep {
            self.sides.sink.capabilities().verifying()?;
        }
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
        self.judge(differences, &mut stretch).await?;
        Ok(Some(stretch))
    }

    /// The key after which the next part begins; `None` after the last.
    pub fn place(&self) -> Option<&Key> {
        self.merge.place.as_ref().filter(|_| !self.merge.ended)
    }

    /// Sorts out what follow has not come to yet, or is trying to deliver (Q3). A sink that is
    /// ahead is no question of patience.
    ///
    /// S1: a document that differs may be newer than the version it was compared at. So the feed is
    /// asked once more, for that version and for marks that are not in it yet: the marks first,
    /// since they become versions.
    async fn judge(
        &mut self,
        differences: Vec<Difference>,
        stretch: &mut Stretch,
    ) -> Result<(), PortError> {
        let feed = self.sides.feed;
        let is_altered = |d: &Difference| matches!(d, Difference::Altered(..));
        let marked = differences.iter().any(is_altered) && feed.pending().await?;
        let keys: Vec<Key> = differences.iter().map(|found| found.key().clone()).collect();
        let rows = if keys.is_empty() { Vec::new() } else { feed.find(&keys).await? };
        let mut foreign = self.foreign(&differences, &rows).await?.into_iter();
        let mut rows = rows.into_iter();
        for difference in differences {
            let row = rows.next().flatten();
            let foreign = foreign.next().unwrap_or(false);
            if foreign && self.sides.owns == Owns::Marked {
                stretch.listed -= 1;
                stretch.unmarked += 1;
                continue;
            }
            let known =
                row.as_ref().map(|row| Rank { rules: self.sides.rules, version: row.version });
            let wanted = match &difference {
                Difference::Missing(_, wanted)
                | Difference::Stale(_, wanted, _)
                | Difference::Ahead(_, wanted, _) => Some(*wanted),
                Difference::Altered(..) | Difference::Orphan(..) => known,
            };
            let moved = matches!(&difference,
                Difference::Altered(_, compared) if known != Some(*compared));
            let ahead = matches!(difference, Difference::Ahead(..));
            let coming = row.is_some_and(|row| !self.sides.cursor.covers(row.stamp));
            if (coming || moved) && !ahead {
                stretch.in_flight += 1;
                continue;
            }
            match self.pending.state(difference.key()).await? {
                Some(ItemState::Pending | ItemState::Leased | ItemState::Retry) if !ahead => {
                    stretch.in_flight += 1;
                }
                _ if marked && is_altered(&difference) => {
                    stretch.undecided.push(difference.key().clone());
                }
                state => {
                    let parked = state == Some(ItemState::Parked);
                    stretch.drifts.push(Drift { difference, wanted, parked, foreign });
                }
            }
        }
        Ok(())
    }

    /// Which differences are orphans under a key that no record can have. What the feed knows is
    /// none.
    async fn foreign(
        &self,
        differences: &[Difference],
        rows: &[Option<Change>],
    ) -> Result<Vec<bool>, PortError> {
        let unknown = |(difference, row): (&Difference, &Option<Change>)| {
            row.is_none() && matches!(difference, Difference::Orphan(..))
        };
        let mut foreign: Vec<bool> = differences.iter().zip(rows).map(unknown).collect();
        let keys: Vec<Key> = differences
            .iter()
            .zip(&foreign)
            .filter(|(_, unknown)| **unknown)
            .map(|(difference, _)| difference.key().clone())
            .collect();
        if !keys.is_empty() {
            let mut canonical = self.sides.records.canonical(&keys).await?.into_iter();
            for unknown in foreign.iter_mut().filter(|unknown| **unknown) {
                *unknown = canonical.next() == Some(false);
            }
        }
        Ok(foreign)
    }
}

#[cfg(test)]
mod tests;
