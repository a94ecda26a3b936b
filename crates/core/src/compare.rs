//! The streaming comparison of a source and a sink: one merge of two ordered listings.
//!
//! Invariants: M1 (both sides rise strictly in the byte order of the key, and that is checked),
//! M2 (memory is the caller's two pages, never the table).

use serde::{Deserialize, Serialize};

use crate::{Key, Rank};

/// Which entries of a sink a pipeline answers for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owns {
    /// All: one without a rank of ours is as old as can be, and one under a key that no record can
    /// have is too much.
    #[default]
    All,
    /// Those with a rank of ours under a key that a record can have; the others are somebody
    /// else's, left alone and counted.
    Marked,
}

/// How one key differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The source has it, the sink has not.
    Missing(Key, Rank),
    /// The sink has an older one.
    Stale(Key, Rank, Rank),
    /// The sink has it at this rank, with another document. Only a deep comparison tells.
    Altered(Key, Rank),
    /// The sink has it, the source has not.
    Orphan(Key, Rank),
    /// The sink has a newer one than the source knows.
    Ahead(Key, Rank, Rank),
}

impl Difference {
    /// The key that differs.
    pub fn key(&self) -> &Key {
        match self {
            Self::Missing(key, _)
            | Self::Stale(key, _, _)
            | Self::Altered(key, _)
            | Self::Orphan(key, _)
            | Self::Ahead(key, _, _) => key,
        }
    }
}

/// Which listing broke its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Source,
    /// The sink.
    Sink,
}

/// A listing whose keys do not rise strictly in byte order: it cannot be compared in one pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {side:?} listed {after} after {before}, which is not the byte order of keys")]
pub struct OutOfOrder {
    /// The side that did.
    pub side: Side,
    /// The key before.
    pub before: Key,
    /// The key that should have come earlier.
    pub after: Key,
}

/// A merge under way: fed with entries of both sides, it says which side it needs next.
#[derive(Debug, Default)]
pub struct Compare {
    source: Lane,
    sink: Lane,
    equal: u64,
    /// Records that are equal by rank, if they are asked for.
    kept: Option<Vec<(Key, Rank)>>,
}

#[derive(Debug, Default)]
struct Lane {
    entries: std::collections::VecDeque<(Key, Rank)>,
    last: Option<Key>,
    ended: bool,
}

impl Lane {
    fn feed(
        &mut self,
        side: Side,
        entries: impl IntoIterator<Item = (Key, Rank)>,
        end: bool,
    ) -> Result<(), OutOfOrder> {
        for (key, rank) in entries {
            if let Some(before) = self.last.take_if(|last| *last >= key) {
                return Err(OutOfOrder { side, before, after: key });
            }
            self.last = Some(key.clone());
            self.entries.push_back((key, rank));
        }
        self.ended |= end;
        Ok(())
    }

    fn hungry(&self) -> bool {
        self.entries.is_empty() && !self.ended
    }
}

/// What a merge needs or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A difference.
    Found(Difference),
    /// Entries of this side.
    Need(Side),
    /// Both sides have ended.
    Done,
}

impl Compare {
    /// A merge that keeps what is equal by rank, for [`Self::take_equal`].
    pub fn keeping_equal() -> Self {
        Self { kept: Some(Vec::new()), ..Self::default() }
    }

    /// What was equal by rank since this was last called; nothing unless it is kept.
    pub fn take_equal(&mut self) -> Vec<(Key, Rank)> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds a page of one side; `end` says that it was the last.
    ///
    /// # Errors
    /// [`OutOfOrder`] if a key does not rise strictly (M1).
    pub fn feed(
        &mut self,
        side: Side,
        entries: impl IntoIterator<Item = (Key, Rank)>,
        end: bool,
    ) -> Result<(), OutOfOrder> {
        match side {
            Side::Source => self.source.feed(side, entries, end),
            Side::Sink => self.sink.feed(side, entries, end),
        }
    }

    /// Keys that were equal so far.
    pub fn equal(&self) -> u64 {
        self.equal
    }

    /// Merges on to the next difference, or says what it needs.
    pub fn advance(&mut self) -> Next {
        loop {
            if self.sink.hungry() {
                return Next::Need(Side::Sink);
            }
            if self.source.hungry() {
                return Next::Need(Side::Source);
            }
            let (source, sink) = (self.source.entries.front(), self.sink.entries.front());
            let order = match (source, sink) {
                (None, None) => return Next::Done,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let source = order.is_le().then(|| self.source.entries.pop_front()).flatten();
            let sink = order.is_ge().then(|| self.sink.entries.pop_front()).flatten();
            match (source, sink) {
                (Some((key, wanted)), None) => {
                    return Next::Found(Difference::Missing(key, wanted));
                }
                (None, Some((key, held))) => return Next::Found(Difference::Orphan(key, held)),
                (Some((key, wanted)), Some((_, held))) if held < wanted => {
                    return Next::Found(Difference::Stale(key, wanted, held));
                }
                (Some((key, wanted)), Some((_, held))) if held > wanted => {
                    return Next::Found(Difference::Ahead(key, wanted, held));
                }
                (Some(same), Some(_)) => {
                    self.equal += 1;
                    if let Some(kept) = &mut self.kept {
                        kept.push(same);
                    }
                }
                (None, None) => return Next::Done,
            }
        }
    }
}

#[cfg(test)]
mod tests;
