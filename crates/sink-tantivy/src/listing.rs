//! A listing: one merge of the dictionaries of the live keys, in the order of their bytes.
//!
//! Whoever goes on where the last page ended goes on further: each beginning costs a look into every
//! segment, so that some pages are read at once and handed out one by one, until the index changes.
//! Memory is those and one term of each segment, however many keys there are.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermStreamer;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Entry, Listing};
use truekeep_core::{Key, Rank};

use crate::failure::Failure;
use crate::held::Segment;

/// A segment's dictionary on its way, at a term.
struct Lane<'s> {
    segment: &'s Segment,
    terms: TermStreamer<'s>,
    postings: Option<BlockSegmentPostings>,
}

/// What a term of a segment stands for.
enum Found {
    /// No live record.
    Nothing,
    /// One, with its rank if it has one of ours.
    Live(Option<Rank>),
}

impl<'s> Lane<'s> {
    /// The lane at the first term after `after`; none if there is none.
    fn begin(segment: &'s Segment, after: Option<&Key>) -> Result<Option<Self>, Failure> {
        let range = segment.live.terms().range();
        let range = match after {
            Some(after) => range.gt(after.as_str()),
            None => range,
        };
        let mut lane = Self { segment, terms: range.into_stream()?, postings: None };
        Ok(lane.terms.advance().then_some(lane))
    }

    fn found(&mut self) -> Result<Found, Failure> {
        let (index, term) = (&self.segment.live, self.terms.value());
        let postings = match &mut self.postings {
            Some(postings) => {
                index.reset_block_postings_from_terminfo(term, postings)?;
                postings
            }
            none => none
                .insert(index.read_block_postings_from_terminfo(term, IndexRecordOption::Basic)?),
        };
        let mut found = Found::Nothing;
        while !postings.docs().is_empty() {
            for doc in postings.docs().iter().filter(|doc| self.segment.is_alive(**doc)) {
                let rank = self.segment.rank(*doc);
                found = match found {
                    Found::Nothing => Found::Live(rank),
                    Found::Live(other) => Found::Live(other.max(rank)),
                };
            }
            postings.advance();
        }
        Ok(found)
    }
}

/// Pages that are read at once.
const PAGES_AHEAD: usize = 16;
/// Entries that are read at once: about a megabyte of short keys.
const ENTRIES_AHEAD_MAX: usize = 16_384;

/// A listing under way over an index as it is.
#[derive(Default)]
pub(crate) struct Listed {
    /// The last key that was handed out.
    after: Option<Key>,
    /// What was read beyond it.
    ahead: VecDeque<Entry>,
    /// Whether nothing comes after that.
    end: bool,
}

impl Listed {
    /// At most `limit` entries after `after`.
    pub(crate) fn page(
        &mut self,
        segments: &[Segment],
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Listing, Failure> {
        let limit = limit as usize;
        let goes_on = after.is_some() && self.after.as_ref() == after;
        if !goes_on || (self.ahead.is_empty() && !self.end) {
            let ahead = limit.saturating_mul(PAGES_AHEAD).min(ENTRIES_AHEAD_MAX).max(limit);
            // Emptied first: should this fail, nothing is handed out that was not read after it.
            *self = Self::default();
            let read = read(segments, after, if goes_on { ahead } else { limit })?;
            (self.ahead, self.end) = (read.entries.into(), read.end);
        }
        let count = limit.min(self.ahead.len());
        let entries: Vec<Entry> = self.ahead.drain(..count).collect();
        self.after = entries.last().map(|entry| entry.key.clone());
        Ok(Listing { entries, end: self.end && self.ahead.is_empty() })
    }
}

fn read(segments: &[Segment], after: Option<&Key>, limit: usize) -> Result<Listing, Failure> {
    let mut lanes = Vec::with_capacity(segments.len());
    for segment in segments {
        lanes.extend(Lane::begin(segment, after)?);
    }
    // The least key on top; of one key, any segment first.
    let mut next: BinaryHeap<Reverse<(Vec<u8>, usize)>> = lanes
        .iter()
        .enumerate()
        .map(|(lane, at)| Reverse((at.terms.key().to_vec(), lane)))
        .collect();
    let mut entries: Vec<Entry> = Vec::with_capacity(limit.min(ENTRIES_AHEAD_MAX));
    while let Some(mut top) = next.peek_mut() {
        let Reverse((key, place)) = &mut *top;
        let lane = &mut lanes[*place];
        if let Found::Live(rank) = lane.found()? {
            let full = entries.len() == limit;
            match entries.last_mut() {
                // Somebody else wrote it twice.
                Some(last) if last.key.as_str().as_bytes() == &**key => {
                    last.rank = last.rank.max(rank);
                }
                _ if full => return Ok(Listing { entries, end: false }),
                _ => entries.push(Entry { key: text(key)?, rank }),
            }
        }
        if lane.terms.advance() {
            key.clear();
            key.extend_from_slice(lane.terms.key());
        } else {
            PeekMut::pop(top);
        }
    }
    Ok(Listing { entries, end: true })
}

fn text(key: &[u8]) -> Result<Key, PortError> {
    let text = std::str::from_utf8(key).map_err(|error| {
        PortError::new("list the index", FailureClass::Halted, Code::INDEX_CORRUPT).caused_by(error)
    })?;
    Ok(Key::new(text))
}
