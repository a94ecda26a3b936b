//! What an index holds of a key: the greatest rank, live or remembered as deleted.

use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED};
use truekeep_core::{Key, Rank, RulesNumber, Version};

use crate::schema::{Layout, RULES, VERSION};

/// One segment, as far as keys and ranks go.
pub(crate) struct Segment {
    pub live: Arc<InvertedIndexReader>,
    buried: Arc<InvertedIndexReader>,
    rules: Option<Column<u64>>,
    version: Option<Column<u64>>,
    alive: Option<AliveBitSet>,
}

/// What is held of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The greatest rank of all that is held; none if nothing is, or nothing of ours.
    pub rank: Option<Rank>,
    /// Whether a live record is.
    pub live: bool,
    /// Whether a tombstone is.
    pub buried: bool,
}

impl Segment {
    /// The segments of a searcher.
    pub(crate) fn of(searcher: &Searcher, layout: &Layout) -> tantivy::Result<Vec<Self>> {
        searcher.segment_readers().iter().map(|reader| Self::open(reader, layout)).collect()
    }

    fn open(reader: &SegmentReader, layout: &Layout) -> tantivy::Result<Self> {
        Ok(Self {
            live: reader.inverted_index(layout.key)?,
            buried: reader.inverted_index(layout.buried)?,
            rules: reader.fast_fields().column_opt(RULES)?,
            version: reader.fast_fields().column_opt(VERSION)?,
            alive: reader.alive_bitset().cloned(),
        })
    }

    pub(crate) fn is_alive(&self, doc: DocId) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.is_alive(doc))
    }

    /// The rank of a document; none if it carries none of ours.
    pub(crate) fn rank(&self, doc: DocId) -> Option<Rank> {
        let rules = self.rules.as_ref()?.first(doc)?;
        let version = self.version.as_ref()?.first(doc)?;
        Some(Rank { rules: RulesNumber::new(rules), version: Version::new(version) })
    }

    /// The documents of a key that were not deleted.
    fn each(
        &self,
        index: &InvertedIndexReader,
        key: &Key,
        mut found: impl FnMut(DocId),
    ) -> tantivy::Result<()> {
        let Some(term) = index.terms().get(key.as_str())? else { return Ok(()) };
        let mut postings = index.read_postings_from_terminfo(&term, IndexRecordOption::Basic)?;
        debug_assert!(postings.term_freq() >= 1);
        while postings.doc() != TERMINATED {
            if self.is_alive(postings.doc()) {
                found(postings.doc());
            }
            postings.advance();
        }
        Ok(())
    }

    /// The live records of a key: one, unless somebody else wrote another.
    pub(crate) fn each_live(&self, key: &Key, found: impl FnMut(DocId)) -> tantivy::Result<()> {
        self.each(&self.live, key, found)
    }

    fn look_up(&self, key: &Key, held: &mut Held) -> tantivy::Result<()> {
        let Held { rank, live, buried } = held;
        self.each(&self.live, key, |doc| {
            *live = true;
            *rank = (*rank).max(self.rank(doc));
        })?;
        self.each(&self.buried, key, |doc| {
            *buried = true;
            *rank = (*rank).max(self.rank(doc));
        })
    }
}

/// What is held of each key, in the order of the keys.
pub(crate) fn look_up<'k>(
    segments: &[Segment],
    keys: impl Iterator<Item = &'k Key>,
) -> tantivy::Result<Vec<Held>> {
    let mut sorted: Vec<(&Key, Held, usize)> =
        keys.enumerate().map(|(place, key)| (key, Held::default(), place)).collect();
    // Neighbours stand together in a dictionary, whose pages are then read once.
    sorted.sort_unstable_by_key(|(key, _, _)| *key);
    for segment in segments {
        for (key, held, _) in &mut sorted {
            segment.look_up(key, held)?;
        }
    }
    sorted.sort_unstable_by_key(|(_, _, place)| *place);
    Ok(sorted.into_iter().map(|(_, held, _)| held).collect())
}
