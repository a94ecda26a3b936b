//! A sink that keeps ranks, tombstones and a mark, and checks the fence in the same step.

use truekeep_core::ports::{Denied, Mark, Verdict};
use truekeep_core::{BatchName, Fence, Rank, RulesNumber, Version};

use super::Breaks;
use super::machine::{batch_name, sink_mark, small_mark};
use super::source::KEYS;

/// What is held for a key, live or remembered as deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    pub rules: u8,
    pub version: u8,
    /// The version of the row that the document was made from.
    pub document: Option<u8>,
}

/// Who wrote last, and which batch that was: its turn, and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SinkMark {
    pub rules: u8,
    pub fence: u8,
    pub number: u8,
}

/// Which batch, and whose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub fence: u8,
    pub number: u8,
}

impl SinkMark {
    pub fn name(self) -> Name {
        Name { fence: self.fence, number: self.number }
    }
}

/// How many numbers a turn has.
pub const TURN: u8 = 8;

/// A batch of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    pub mark: SinkMark,
    /// The newest batch that its sender knows to be held.
    pub follows: Name,
    pub key: u8,
    pub version: u8,
    pub document: Option<u8>,
}

/// The answer to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Held,
    Outdone { rules: u8, version: u8 },
    Fenced,
    WentBack,
}

/// The sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sink {
    pub keys: [Option<Held>; KEYS as usize],
    pub mark: Option<SinkMark>,
}

impl Batch {
    /// Stands for any batch.
    pub const NONE: Self = Self {
        mark: SinkMark { rules: 0, fence: 0, number: 0 },
        follows: Name { fence: 0, number: 0 },
        key: 0,
        version: 0,
        document: None,
    };
}

impl Held {
    pub fn rank(self) -> Rank {
        rank(self.rules, self.version)
    }
}

/// A rank of small numbers.
pub fn rank(rules: u8, version: u8) -> Rank {
    Rank { rules: RulesNumber::new(rules.into()), version: Version::new(version.into()) }
}

impl Sink {
    pub const EMPTY: Self = Self { keys: [None; KEYS as usize], mark: None };

    /// Takes the mark of a batch, if it may be written.
    fn admits(&mut self, batch: Batch, breaks: Breaks) -> Option<Answer> {
        let sent = sink_mark(batch.mark);
        let mut held = self.mark.map(sink_mark);
        let mut follows = batch_name(batch.follows);
        if let Some(held) = held.as_mut().filter(|_| breaks.sink_has_no_order) {
            held.fence = held.fence.min(sent.fence);
        }
        if breaks.batches_name_no_batch_before {
            follows = BatchName::default();
        }
        if breaks.batches_are_nobodys {
            follows.fence = Fence::default();
        }
        match Mark::after(held.as_ref(), &sent, follows) {
            Ok(mark) => self.mark = Some(small_mark(&mark)),
            Err(Denied::Fenced(_)) => return Some(Answer::Fenced),
            Err(Denied::WentBack(_)) => return Some(Answer::WentBack),
            Err(Denied::Owned(..) | Denied::Removed | Denied::Inherited(_)) => {
                unreachable!("nobody else writes, and nothing is removed")
            }
        }
        None
    }

    /// A batch whose record is refused: only the mark is written.
    pub fn refuse(&mut self, batch: Batch, breaks: Breaks) -> Option<Answer> {
        self.admits(batch, breaks)
    }

    /// Writes a batch; durable once it answers.
    pub fn apply(&mut self, batch: Batch, breaks: Breaks) -> Answer {
        if let Some(denied) = self.admits(batch, breaks) {
            return denied;
        }
        let place = &mut self.keys[usize::from(batch.key)];
        let incoming = rank(batch.mark.rules, batch.version);
        let known = place.filter(|_| !breaks.sink_has_no_order);
        match (Verdict::of(incoming, known.map(Held::rank)), *place) {
            (Verdict::Keep(_), Some(held)) => {
                return Answer::Outdone { rules: held.rules, version: held.version };
            }
            (Verdict::Write | Verdict::Rewrite | Verdict::Keep(_), _) => {}
        }
        let forget = batch.document.is_none() && breaks.sink_forgets_deletes;
        *place = (!forget).then_some(Held {
            rules: batch.mark.rules,
            version: batch.version,
            document: batch.document,
        });
        Answer::Held
    }

    pub fn document(&self, key: u8) -> Option<u8> {
        self.keys[usize::from(key)].and_then(|held| held.document)
    }

    pub fn newest(&self) -> Name {
        self.mark.map(SinkMark::name).unwrap_or_default()
    }
}
