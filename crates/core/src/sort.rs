//! Sorting a listing that does not fit in memory: sorted runs of bytes, and one merge of them.
//!
//! Where the runs are kept is the caller's business; nothing is read or written here.
//!
//! Invariants: M1 (what the merge gives rises strictly), M2 (one buffer, or a window of each run).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Key, Rank, RulesNumber, Version};

/// The bytes of an entry beside its key: the key's length, whether it has a rank, and the rank.
const FRAME: usize = 4 + 1 + 8 + 8;

/// A key, and its rank if it carries one of ours.
pub type Listed = (Key, Option<Rank>);

/// Bytes of a run that are no entries: the run was cut short or altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sorted run does not read as it was written")]
pub struct Corrupt;

fn encode(into: &mut Vec<u8>, key: &Key, rank: Option<Rank>) {
    let text = key.as_str().as_bytes();
    // A longer key would not fit in any batch; its length is cut, and reading it says so.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let known = rank.unwrap_or_default();
    into.extend_from_slice(&length.to_le_bytes());
    into.push(u8::from(rank.is_some()));
    into.extend_from_slice(&known.rules.get().to_le_bytes());
    into.extend_from_slice(&known.version.get().to_le_bytes());
    into.extend_from_slice(text);
}

/// The first entry and how many bytes it has; none if it is not whole.
fn decode(bytes: &[u8]) -> Result<Option<(Listed, usize)>, Corrupt> {
    let Some((frame, rest)) = bytes.split_at_checked(FRAME) else { return Ok(None) };
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| frame[at + n]));
    let length = u32::from_le_bytes(std::array::from_fn(|n| frame[n])) as usize;
    let Some(text) = rest.get(..length) else { return Ok(None) };
    let key = Key::new(str::from_utf8(text).map_err(|_| Corrupt)?);
    let rank = Rank { rules: RulesNumber::new(number(5)), version: Version::new(number(13)) };
    let rank = match frame[4] {
        0 => None,
        1 => Some(rank),
        _ => return Err(Corrupt),
    };
    Ok(Some(((key, rank), FRAME + length)))
}

/// Entries that are sorted in memory.
#[derive(Debug)]
pub struct RunBuffer {
    bytes: Vec<u8>,
    /// Where each entry begins.
    starts: Vec<u32>,
    room: usize,
}

impl RunBuffer {
    /// A buffer of at most so many bytes.
    pub fn new(room: usize) -> Self {
        let room = room.min(u32::MAX as usize);
        Self { bytes: Vec::new(), starts: Vec::new(), room }
    }

    /// Takes an entry unless there is no room left; a first one is always taken.
    pub fn push(&mut self, key: &Key, rank: Option<Rank>) -> bool {
        let starts = (self.starts.len() + 1) * size_of::<u32>();
        let wanted = self.bytes.len() + FRAME + key.as_str().len() + starts;
        let Ok(start) = u32::try_from(self.bytes.len()) else { return false };
        if wanted > self.room && !self.starts.is_empty() {
            return false;
        }
        self.starts.push(start);
        encode(&mut self.bytes, key, rank);
        true
    }

    /// Whether nothing was taken.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Sorts what was taken; the run comes in pieces of about so many bytes, by [`Self::piece`].
    pub fn sort(&mut self) {
        let Self { bytes, starts, .. } = self;
        let key = |start: u32| {
            let start = start as usize;
            let length = u32::from_le_bytes(std::array::from_fn(|n| bytes[start + n])) as usize;
            &bytes[start + FRAME..][..length]
        };
        // Backwards, so that pieces are taken from the end.
        starts.sort_unstable_by(|one, other| key(*other).cmp(key(*one)));
    }

    /// The next piece of the sorted run, of at most so many bytes but one entry at least; empty
    /// after the last, when the buffer can be filled anew.
    pub fn piece(&mut self, bytes_max: usize) -> Vec<u8> {
        let mut piece = Vec::new();
        while let Some(start) = self.starts.last() {
            let entry = &self.bytes[*start as usize..];
            let length = u32::from_le_bytes(std::array::from_fn(|n| entry[n])) as usize;
            let entry = &entry[..FRAME + length];
            if !piece.is_empty() && piece.len() + entry.len() > bytes_max {
                return piece;
            }
            piece.extend_from_slice(entry);
            self.starts.pop();
        }
        self.bytes.clear();
        piece
    }
}

/// A merge of sorted runs: fed with their bytes, it says of which run it needs more.
#[derive(Debug)]
pub struct RunMerge {
    windows: Vec<Window>,
    /// Runs whose next entry is to be read.
    hungry: Vec<usize>,
    heads: BinaryHeap<Reverse<(Key, usize, Option<Rank>)>>,
    /// The entry that is given next, unless its key comes once more.
    last: Option<Listed>,
}

/// What was read of a run and not used.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    used: usize,
    ended: bool,
}

/// What a merge needs or gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The next entry, greater than the one before.
    Entry(Listed),
    /// More bytes of this run.
    Need(usize),
    /// There is no more.
    End,
}

impl RunMerge {
    /// A merge of so many runs.
    pub fn new(runs: usize) -> Self {
        Self {
            windows: std::iter::repeat_with(Window::default).take(runs).collect(),
            hungry: (0..runs).collect(),
            heads: BinaryHeap::with_capacity(runs),
            last: None,
        }
    }

    /// Adds what comes next of a run; nothing, if it has ended.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn feed(&mut self, run: usize, bytes: &[u8]) {
        let window = &mut self.windows[run];
        window.ended = bytes.is_empty();
        window.bytes.drain(..window.used);
        window.used = 0;
        window.bytes.extend_from_slice(bytes);
    }

    /// Merges on to the next entry, or says what it needs. Of equal keys the greatest rank counts,
    /// as a sink's ranks only grow.
    ///
    /// # Errors
    /// [`Corrupt`] if a run does not read as it was written.
    pub fn advance(&mut self) -> Result<Merged, Corrupt> {
        loop {
            while let Some(run) = self.hungry.last().copied() {
                let window = &mut self.windows[run];
                match decode(&window.bytes[window.used..])? {
                    Some(((key, rank), length)) => {
                        window.used += length;
                        self.heads.push(Reverse((key, run, rank)));
                    }
                    None if !window.ended => return Ok(Merged::Need(run)),
                    None if window.used < window.bytes.len() => return Err(Corrupt),
                    None => {}
                }
                self.hungry.pop();
            }
            let Some(Reverse((key, run, rank))) = self.heads.pop() else {
                return Ok(self.last.take().map_or(Merged::End, Merged::Entry));
            };
            self.hungry.push(run);
            match &mut self.last {
                Some((last, greatest)) if *last == key => *greatest = rank.max(*greatest),
                last => {
                    if let Some(before) = last.replace((key, rank)) {
                        return Ok(Merged::Entry(before));
                    }
                }
            }
        }
    }
}

/// An entry as bytes of a run.
pub fn append(run: &mut Vec<u8>, (key, rank): &Listed) {
    encode(run, key, *rank);
}

#[cfg(test)]
mod tests;
