//! The merge of the listings, one range of keys at a time.
//!
//! Invariants: M1, M2.

use truekeep_core::code::Code;
use truekeep_core::compare::{Compare, Difference, Next, OutOfOrder, Side};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::Records;
use truekeep_core::{Key, Rank, RulesNumber};

use super::listing::{Listed, Page};

fn standstill(after: Option<&Key>) -> PortError {
    let after = after.map_or("the beginning", Key::as_str);
    PortError::new("compare", FailureClass::Terminal, Code::UNEXPECTED)
        .detail(format!("the source neither ended nor went on after {after}"))
}

fn disordered(error: OutOfOrder) -> PortError {
    PortError::new("compare", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
}

/// A page of the source is larger than one of the sink by this part of it.
const SLACK: u32 = 128;

/// The merge of the listings.
///
/// Each range is a merge of its own that ends with its last key, so no key of the source is read
/// before the sink's listing of its range.
#[derive(Debug)]
pub(super) struct Merge<'p> {
    listed: Listed<'p>,
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
    ahead: Option<Page>,
    /// How many ranges were begun.
    ranges: u32,
    /// Entries of the sink that are not the pipeline's, in the ranges of the next part.
    unmarked: u64,
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
    /// Entries of the sink that are not the pipeline's.
    pub unmarked: u64,
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
        listed: Listed<'p>,
        records: &'p dyn Records,
        rules: RulesNumber,
        deep: bool,
        after: Option<Key>,
        limit: u32,
    ) -> Self {
        Self {
            listed,
            records,
            rules,
            deep,
            limit,
            range: None,
            place: after.clone(),
            after,
            ahead: None,
            ranges: 0,
            unmarked: 0,
            ended: false,
        }
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
        merged.unmarked = std::mem::take(&mut self.unmarked);
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
        let page = match self.ahead.take() {
            Some(page) => page,
            None => self.listed.page(self.after.as_ref()).await?,
        };
        self.ranges += 1;
        self.unmarked += page.unmarked;
        let mut compare = if self.deep { Compare::keeping_equal() } else { Compare::default() };
        compare.feed(Side::Sink, page.entries, true).map_err(disordered)?;
        Ok(Range { compare, bound: page.bound, begun: false })
    }

    /// Reads the next page of the source; what lies after the range is read again with its own.
    async fn read(&mut self, range: &mut Range) -> Result<(), PortError> {
        // A first page reaches a little beyond as many keys as the sink has, so that a few that are
        // missing there take no second one. What that leaves of a range is little, and what lies
        // after a range is read in vain.
        let rest = range.begun && range.bound.is_some();
        let limit = if rest { (self.limit / 8).max(1) } else { self.limit + self.limit / SLACK };
        range.begun = true;
        // The next page of the sink is listed meanwhile, once it is clear that more than one range
        // is compared.
        let next = range.bound.clone().filter(|_| self.ahead.is_none() && self.ranges > 1);
        let Self { listed, records, after, .. } = &mut *self;
        let listing = async {
            match next {
                Some(bound) => listed.page(Some(&bound)).await.map(Some),
                None => Ok(None),
            }
        };
        let (page, listing) = tokio::join!(records.keys(after.clone(), limit), listing);
        let mut page = page?;
        self.ahead = listing?.or(self.ahead.take());
        rises(self.after.as_ref(), page.keys.first())?;
        if page.next.is_some() && page.next <= self.after {
            return Err(standstill(self.after.as_ref()));
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

/// Checks that a page of the source goes on where the one before ended; inside a page the merge
/// checks (M1).
fn rises<T>(before: Option<&Key>, first: Option<&(Key, T)>) -> Result<(), PortError> {
    match (before, first) {
        (Some(before), Some((first, _))) if first <= before => {
            let (before, after) = (before.clone(), first.clone());
            Err(disordered(OutOfOrder { side: Side::Source, before, after }))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
