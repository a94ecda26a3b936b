//! Differences judged: which are drift, and which only what follow has yet to deliver.
//!
//! Invariants: Q3, S1.

use truekeep_core::compare::{Difference, Owns};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Change, ItemState, Settle};
use truekeep_core::{Key, Rank, Stamp};

use super::{Comparison, Drift, Stretch};

impl Comparison<'_> {
    /// Sorts out what follow has not come to yet, or is trying to deliver (Q3). A sink that is
    /// ahead is no question of patience.
    ///
    /// S1: a document that differs may be newer than the version it was compared at. So the feed is
    /// asked once more, for that version and for marks that are not in it yet: the marks first,
    /// since they become versions.
    pub(super) async fn judge(
        &mut self,
        differences: Vec<Difference>,
        stretch: &mut Stretch,
    ) -> Result<(), PortError> {
        let feed = self.sides.feed;
        let marked = differences.iter().any(is_altered) && feed.pending().await?;
        let keys: Vec<Key> = differences.iter().map(|found| found.key().clone()).collect();
        let rows = if keys.is_empty() { Vec::new() } else { feed.find(&keys).await? };
        let foreign = self.foreign(&differences, &rows).await?;
        for ((difference, row), foreign) in differences.into_iter().zip(rows).zip(foreign) {
            let item = self.pending.state(difference.key()).await?;
            if foreign && self.sides.owns == Owns::Marked {
                stretch.listed -= 1;
                stretch.unmarked += 1;
                continue;
            }
            let orphan = matches!(difference, Difference::Orphan(..));
            stretch.waiting += u64::from(orphan && item.is_some());
            let rules = self.sides.rules;
            let known = row.as_ref().map(|row| Rank { rules, version: row.version });
            let wanted = match &difference {
                Difference::Missing(_, wanted)
                | Difference::Stale(_, wanted, _)
                | Difference::Ahead(_, wanted, _) => Some(*wanted),
                Difference::Altered(..) | Difference::Orphan(..) => known,
            };
            let moved = matches!(&difference,
                Difference::Altered(_, compared) if known != Some(*compared));
            let stamp = row.map(|row| row.stamp);
            let coming = stamp.is_some_and(|stamp| !self.sides.cursor.covers(stamp));
            let late = self.is_late(difference.key(), stamp, coming);
            let tried =
                matches!(item, Some(ItemState::Pending | ItemState::Leased | ItemState::Retry));
            let ahead = matches!(difference, Difference::Ahead(..));
            if (coming || moved || late || tried) && !ahead {
                stretch.in_flight += 1;
                stretch.late += u64::from(late);
            } else if marked && is_altered(&difference) {
                stretch.undecided.push(difference.key().clone());
            } else {
                let parked = item == Some(ItemState::Parked);
                stretch.drifts.push(Drift { difference, wanted, parked, foreign });
            }
        }
        Ok(())
    }

    /// Whether a record was delivered since the sink was listed.
    fn is_late(&self, key: &Key, stamp: Option<Stamp>, coming: bool) -> bool {
        let Some(since) = &self.sides.since else { return false };
        let passed = stamp.is_some_and(|stamp| since.passed.covers(stamp));
        (coming && passed) || since.redelivered.contains(key)
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

    /// Parked items of the part before that no difference speaks of, and whose row is gone: neither
    /// side has the record, so nothing is left to decide.
    ///
    /// # Errors
    /// Those of the ports.
    pub async fn gone(&mut self) -> Result<Vec<Settle>, PortError> {
        let parked = self.pending.passed_over(self.merge.place.as_ref(), self.merge.ended).await?;
        let keys: Vec<Key> = parked.iter().map(|settle| settle.key.clone()).collect();
        let rows = if keys.is_empty() { Vec::new() } else { self.sides.feed.find(&keys).await? };
        let is_gone = |row: &Option<Change>| {
            row.as_ref().is_none_or(|row| row.deleted && self.sides.cursor.covers(row.stamp))
        };
        let gone = parked.into_iter().zip(rows).filter(|(_, row)| is_gone(row));
        Ok(gone.map(|(settle, _)| settle).collect())
    }
}

fn is_altered(difference: &Difference) -> bool {
    matches!(difference, Difference::Altered(..))
}
