//! The comparison of source and sink, one range of keys at a time: a page of the sink, then the
//! source up to the end of that page. Both `diff` and reconcile judge by it.
//!
//! Invariants: M1, M2, Q3.

mod pending;

use truekeep_core::code::Code;
use truekeep_core::compare::{Compare, Difference, Next, OutOfOrder, Side};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Feed, ItemState, Items, Listing, Records, Sink};
use truekeep_core::{Key, Place, Rank, RulesNumber, ScopeId};

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
}

/// What a part of a range held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Differences, in the order of keys.
    pub drifts: Vec<Drift>,
    /// Differences that follow is about to deliver, or is trying to.
    pub in_flight: u64,
    /// Entries of the sink.
    pub listed: u64,
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
        let merge = Merge::new(sides.sink, sides.records, sides.rules, after, limit);
        Self { sides, merge, pending }
    }

    /// The next part; `None` once both sides have ended.
    ///
    /// # Errors
    /// Those of the ports; class Terminal with `UNEXPECTED` if a side does not list in the byte
    /// order of keys, or stands still.
    pub async fn advance(&mut self) -> Result<Option<Stretch>, PortError> {
        let before = self.merge.equal();
        let Some(differences) = self.merge.advance().await? else { return Ok(None) };
        let equal = self.merge.equal() - before;
        let count = |one: fn(&Difference) -> bool| differences.iter().filter(|d| one(d)).count();
        let mut stretch = Stretch {
            equal,
            listed: equal + count(|d| !matches!(d, Difference::Missing(..))) as u64,
            live: equal + count(|d| !matches!(d, Difference::Orphan(..))) as u64,
            ..Stretch::default()
        };
        self.judge(differences, &mut stretch).await?;
        Ok(Some(stretch))
    }

    /// The key after which the next part begins; `None` after the last.
    pub fn place(&self) -> Option<&Key> {
        self.merge.place.as_ref().filter(|_| !self.merge.ended)
    }

    /// Sorts out what follow has not come to yet, or is trying to deliver (Q3). A sink that is
    /// ahead is no question of patience.
    async fn judge(
        &mut self,
        differences: Vec<Difference>,
        stretch: &mut Stretch,
    ) -> Result<(), PortError> {
        let sides = &self.sides;
        let keys: Vec<Key> = differences.iter().map(|found| found.key().clone()).collect();
        let rows = if keys.is_empty() { Vec::new() } else { sides.feed.find(&keys).await? };
        let mut rows = rows.into_iter();
        for difference in differences {
            let row = rows.next().flatten();
            let wanted = match &difference {
                Difference::Missing(_, wanted)
                | Difference::Stale(_, wanted, _)
                | Difference::Ahead(_, wanted, _) => Some(*wanted),
                Difference::Orphan(..) => {
                    row.as_ref().map(|row| Rank { rules: sides.rules, version: row.version })
                }
            };
            let ahead = matches!(difference, Difference::Ahead(..));
            if row.is_some_and(|row| !sides.cursor.covers(row.stamp)) && !ahead {
                stretch.in_flight += 1;
                continue;
            }
            match self.pending.state(difference.key()).await? {
                Some(ItemState::Pending | ItemState::Leased | ItemState::Retry) if !ahead => {
                    stretch.in_flight += 1;
                }
                state => {
                    let parked = state == Some(ItemState::Parked);
                    stretch.drifts.push(Drift { difference, wanted, parked });
                }
            }
        }
        Ok(())
    }
}

/// A listing that neither ends nor goes on.
#[derive(Debug, thiserror::Error)]
#[error("the {0} neither ended nor went on after {1}")]
struct Standstill(&'static str, String);

impl Standstill {
    fn of(listing: &'static str, after: Option<&Key>) -> Self {
        Self(listing, after.map_or_else(|| "the beginning".to_owned(), Key::to_string))
    }
}

impl From<Standstill> for PortError {
    fn from(error: Standstill) -> Self {
        let class = FailureClass::Terminal;
        PortError::new("compare", class, Code::UNEXPECTED).caused_by(error)
    }
}

fn disordered(error: OutOfOrder) -> PortError {
    PortError::new("compare", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
}

/// The merge of the listings.
///
/// Each range is a merge of its own that ends with its last key, so no key of the source is read
/// before the sink's listing of its range.
#[derive(Debug)]
struct Merge<'p> {
    sink: &'p dyn Sink,
    records: &'p dyn Records,
    rules: RulesNumber,
    limit: u32,
    range: Option<Range>,
    /// The source is read up to and with it.
    after: Option<Key>,
    /// Everything up to and with it was merged.
    place: Option<Key>,
    /// The sink's page after this range.
    ahead: Option<Listing>,
    /// How many ranges were begun.
    ranges: u32,
    ended: bool,
    equal: u64,
}

/// A page of the sink, and what of the source belongs to it.
#[derive(Debug)]
struct Range {
    compare: Compare,
    /// Its last key; none for the last range.
    bound: Option<Key>,
    /// Whether the source was read for it.
    begun: bool,
}

impl<'p> Merge<'p> {
    fn new(
        sink: &'p dyn Sink,
        records: &'p dyn Records,
        rules: RulesNumber,
        after: Option<Key>,
        limit: u32,
    ) -> Self {
        let place = after.clone();
        let (range, ahead, ranges, ended, equal) = (None, None, 0, false, 0);
        Self { sink, records, rules, limit, range, after, place, ahead, ranges, ended, equal }
    }

    /// Keys that were equal so far.
    fn equal(&self) -> u64 {
        self.equal + self.range.as_ref().map_or(0, |range| range.compare.equal())
    }

    /// The next differences, at most a page of them (M2). `None` once both sides have ended.
    async fn advance(&mut self) -> Result<Option<Vec<Difference>>, PortError> {
        if self.ended {
            return Ok(None);
        }
        let mut range = match self.range.take() {
            Some(range) => range,
            None => self.open().await?,
        };
        let mut found = Vec::new();
        loop {
            match range.compare.advance() {
                Next::Found(difference) => found.push(difference),
                Next::Need(Side::Sink) => unreachable!("the sink's page was fed as its end"),
                Next::Need(Side::Source) => self.read(&mut range).await?,
                Next::Done => {
                    self.equal += range.compare.equal();
                    self.ended = range.bound.is_none();
                    self.place.clone_from(&range.bound);
                    self.after = range.bound;
                    return Ok(Some(found));
                }
            }
            if found.len() >= self.limit as usize {
                self.place = found.last().map(|difference| difference.key().clone());
                self.range = Some(range);
                return Ok(Some(found));
            }
        }
    }

    /// Lists the next page of the sink.
    async fn open(&mut self) -> Result<Range, PortError> {
        let listing = match self.ahead.take() {
            Some(listing) => listing,
            None => self.sink.list(self.after.clone(), self.limit).await?,
        };
        self.ranges += 1;
        // An entry without a rank of ours is as old as can be.
        let entries: Vec<(Key, Rank)> = listing
            .entries
            .into_iter()
            .map(|entry| (entry.key, entry.rank.unwrap_or_default()))
            .collect();
        rises(Side::Sink, self.after.as_ref(), entries.first())?;
        if entries.is_empty() && !listing.end {
            return Err(Standstill::of("sink", self.after.as_ref()).into());
        }
        let last = entries.last().map(|(key, _)| key.clone());
        let mut compare = Compare::default();
        compare.feed(Side::Sink, entries, true).map_err(disordered)?;
        Ok(Range { compare, bound: last.filter(|_| !listing.end), begun: false })
    }

    /// Reads the next page of the source; what lies after the range is read again with its own.
    async fn read(&mut self, range: &mut Range) -> Result<(), PortError> {
        // What a first page leaves of a range is little, and what lies after it is read in vain.
        let rest = range.begun && range.bound.is_some();
        let limit = if rest { (self.limit / 8).max(1) } else { self.limit };
        range.begun = true;
        // The next page of the sink is listed meanwhile, once it is clear that more than one range
        // is compared.
        let next = range.bound.clone().filter(|_| self.ahead.is_none() && self.ranges > 1);
        let listing = async {
            match next {
                Some(bound) => self.sink.list(Some(bound), self.limit).await.map(Some),
                None => Ok(None),
            }
        };
        let (page, listing) = tokio::join!(self.records.keys(self.after.clone(), limit), listing);
        let mut page = page?;
        self.ahead = listing?.or(self.ahead.take());
        rises(Side::Source, self.after.as_ref(), page.keys.first())?;
        if page.next.is_some() && page.next <= self.after {
            return Err(Standstill::of("source", self.after.as_ref()).into());
        }
        let next = page.next.filter(|next| range.bound.as_ref().is_none_or(|bound| next < bound));
        if let Some(bound) = &range.bound {
            page.keys.truncate(page.keys.partition_point(|(key, _)| key <= bound));
        }
        let end = next.is_none();
        self.after = next.or(self.after.take());
        let rules = self.rules;
        let keys = page.keys.into_iter().map(|(key, version)| (key, Rank { rules, version }));
        range.compare.feed(Side::Source, keys, end).map_err(disordered)
    }
}

/// Checks that a page goes on where the one before ended; inside a page the merge checks (M1).
fn rises<T>(side: Side, before: Option<&Key>, first: Option<&(Key, T)>) -> Result<(), PortError> {
    match (before, first) {
        (Some(before), Some((first, _))) if first <= before => {
            let (before, after) = (before.clone(), first.clone());
            Err(disordered(OutOfOrder { side, before, after }))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
