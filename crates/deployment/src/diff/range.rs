//! One range of keys at a time: a page of the sink, then the source up to the end of that page.

use truekeep_core::code::Code;
use truekeep_core::compare::{Compare, Difference, Next, OutOfOrder, Side};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Records, Sink};
use truekeep_core::{Key, Rank, RulesNumber};

/// A listing that neither ends nor goes on.
#[derive(Debug, thiserror::Error)]
#[error("the {0} neither ended nor went on after {1}")]
pub(super) struct Standstill(&'static str, String);

impl Standstill {
    pub(super) fn audit(after: &Key) -> Self {
        Self("audit", after.to_string())
    }

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

/// A comparison under way.
///
/// Each range is a merge of its own that ends with its last key, so no key of the source is read
/// before the sink's listing of its range.
pub(super) struct Merge<'p> {
    sink: &'p dyn Sink,
    records: &'p dyn Records,
    rules: RulesNumber,
    limit: u32,
    range: Option<Range>,
    /// The source is read up to and with it.
    after: Option<Key>,
    ended: bool,
    equal: u64,
    seen: u64,
}

/// A page of the sink, and what of the source belongs to it.
struct Range {
    compare: Compare,
    /// Its last key; none for the last range.
    bound: Option<Key>,
}

impl<'p> Merge<'p> {
    pub fn new(
        sink: &'p dyn Sink,
        records: &'p dyn Records,
        rules: RulesNumber,
        limit: u32,
    ) -> Self {
        let (range, after, ended) = (None, None, false);
        Self { sink, records, rules, limit, range, after, ended, equal: 0, seen: 0 }
    }

    /// Keys that were equal so far.
    pub fn equal(&self) -> u64 {
        self.equal
    }

    /// Keys of the source that were compared so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The next differences, at most a page of them (M2). `None` once both sides have ended.
    pub async fn advance(&mut self) -> Result<Option<Vec<Difference>>, PortError> {
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
                    self.after = range.bound;
                    return Ok(Some(found));
                }
            }
            if found.len() >= self.limit as usize {
                self.range = Some(range);
                return Ok(Some(found));
            }
        }
    }

    /// Lists the next page of the sink.
    async fn open(&mut self) -> Result<Range, PortError> {
        let listing = self.sink.list(self.after.clone(), self.limit).await?;
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
        Ok(Range { compare, bound: last.filter(|_| !listing.end) })
    }

    /// Reads the next page of the source; what lies after the range is read again with its own.
    async fn read(&mut self, range: &mut Range) -> Result<(), PortError> {
        let mut page = self.records.keys(self.after.clone(), self.limit).await?;
        rises(Side::Source, self.after.as_ref(), page.keys.first())?;
        if page.keys.is_empty() && !page.end {
            return Err(Standstill::of("source", self.after.as_ref()).into());
        }
        let mut end = page.end;
        if let Some(bound) = &range.bound {
            let within = page.keys.partition_point(|(key, _)| key <= bound);
            end |= within < page.keys.len();
            page.keys.truncate(within);
        }
        self.seen += page.keys.len() as u64;
        if let Some((last, _)) = page.keys.last() {
            self.after = Some(last.clone());
        }
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
