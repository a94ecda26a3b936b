//! The merge of the listings, one range of keys at a time.
//!
//! Invariants: M1, M2.

use truekeep_core::code::Code;
use truekeep_core::compare::{Compare, Difference, Next, OutOfOrder, Side};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Listing, Records, Sink};
use truekeep_core::{Key, Rank, RulesNumber};

/// A listing that neither ends nor goes on.
#[derive(Debug, thiserror::Error)]
#[error("the {0} neither ended nor went on after {1}")]
pub(super) struct Standstill(&'static str, String);

impl Standstill {
    pub fn of(listing: &'static str, after: Option<&Key>) -> Self {
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
pub(super) struct Merge<'p> {
    sink: &'p dyn Sink,
    records: &'p dyn Records,
    rules: RulesNumber,
    /// Whether what is equal is given too.
    deep: bool,
    limit: u32,
    range: Option<Range>,
    /// The source is read up to and with it.
    after: Option<Key>,
    /// Everything up to and with it was merged.
    pub place: Option<Key>,
    /// The sink's page after this range.
    ahead: Option<Listing>,
    /// How many ranges were begun.
    ranges: u32,
    pub ended: bool,
}

/// A part of the merge.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// In the order of keys.
    pub differences: Vec<Difference>,
    /// How many are equal by rank.
    pub equal: u64,
    /// Which ones they are, if that is asked for.
    pub same: Vec<(Key, Rank)>,
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
    pub fn new(
        sink: &'p dyn Sink,
        records: &'p dyn Records,
        rules: RulesNumber,
        deep: bool,
        after: Option<Key>,
        limit: u32,
    ) -> Self {
        let place = after.clone();
        let (range, ahead, ranges, ended) = (None, None, 0, false);
        Self { sink, records, rules, deep, limit, range, after, place, ahead, ranges, ended }
    }

    /// The next differences, at most a page of them (M2). `None` once both sides have ended.
    pub async fn advance(&mut self) -> Result<Option<Merged>, PortError> {
        if self.ended {
            return Ok(None);
        }
        let mut range = match self.range.take() {
            Some(range) => range,
            None => self.open().await?,
        };
        let (mut merged, before) = (Merged::default(), range.compare.equal());
        loop {
            match range.compare.advance() {
                Next::Found(difference) => merged.differences.push(difference),
                Next::Need(Side::Sink) => unreachable!("the sink's page was fed as its end"),
                Next::Need(Side::Source) => self.read(&mut range).await?,
                Next::Done => break,
            }
            if merged.differences.len() >= self.limit as usize {
                break;
            }
        }
        merged.equal = range.compare.equal() - before;
        merged.same = range.compare.take_equal();
        match merged.differences.last() {
            Some(last) if merged.differences.len() >= self.limit as usize => {
                self.place = Some(last.key().clone());
                self.range = Some(range);
            }
            Some(_) | None => {
                self.ended = range.bound.is_none();
                self.place.clone_from(&range.bound);
                self.after = range.bound;
            }
        }
        Ok(Some(merged))
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
        let mut compare = if self.deep { Compare::keeping_equal() } else { Compare::default() };
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
