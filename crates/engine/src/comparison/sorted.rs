//! The listing of a sink that lists in no order: put aside on disk in sorted runs, and merged.
//!
//! Invariants: M1, M2 (one buffer while it is listed; then windows that take no more together).

use std::collections::VecDeque;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Entry, Listing, Sink, Spill, SpillFile};
use truekeep_core::sort::{self, Corrupt, Merged, RunBuffer, RunMerge};
use truekeep_core::{Key, Rank};

use super::listing::{REPEATS_MAX, standstill};

/// The least that is worth reading of a run at once. So the memory of a sort bounds how many runs
/// are merged at once.
const WINDOW_MIN: usize = 4 << 10;

/// The most that is written at once.
const PIECE: usize = 256 << 10;

/// A run in the file.
#[derive(Debug, Clone, Copy)]
struct Run {
    at: u64,
    end: u64,
}

/// A listing on its way to be sorted.
#[derive(Debug)]
pub struct Sorting {
    file: Box<dyn SpillFile>,
    written: u64,
    runs: VecDeque<Run>,
    buffer: RunBuffer,
    room: usize,
    /// What was compared before and is passed over.
    skip: Option<Key>,
    place: Lap,
    limit: u32,
}

/// Where an unordered listing is. It goes round if it comes to one place again and again: a place
/// is kept, and another one after twice as many steps (Brent, 1980).
#[derive(Debug, Default)]
struct Lap {
    after: Option<Key>,
    kept: Option<Key>,
    steps: u64,
    met: u32,
}

impl Lap {
    /// Goes on to a place; whether that gets anywhere.
    fn goes_on(&mut self, after: Option<Key>) -> bool {
        let after = after.or(self.after.take());
        self.met += u32::from(after == self.kept);
        let goes_on = self.met < REPEATS_MAX;
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.kept.clone_from(&after);
            self.met = 0;
        }
        self.after = after;
        goes_on
    }
}

impl Sorting {
    /// Begins in a file of its own, with so many bytes of memory and pages of so many entries.
    ///
    /// # Errors
    /// `SPILL_FAILED` if there is no place for the file.
    pub async fn begin(
        spill: &dyn Spill,
        room: usize,
        skip: Option<Key>,
        limit: u32,
    ) -> Result<Self, PortError> {
        let file = spill.file().await?;
        let (runs, buffer, place) = (VecDeque::new(), RunBuffer::new(room), Lap::default());
        Ok(Self { file, written: 0, runs, buffer, room, skip, place, limit })
    }

    /// Lists on by so many pages, until a run is full, or to the end; whether it has ended.
    ///
    /// # Errors
    /// Those of the sink, after which it can be tried again; those of the file, and
    /// `SINK_DISORDERED` if the listing goes round.
    pub async fn advance(&mut self, sink: &dyn Sink, pages: u32) -> Result<bool, PortError> {
        for _ in 0..pages {
            let Listing { entries, end } = sink.list(self.place.after.clone(), self.limit).await?;
            let last = entries.last().map(|entry| entry.key.clone());
            if !end && !self.place.goes_on(last) {
                return Err(standstill(self.place.after.as_ref()));
            }
            let mut full = false;
            for Entry { key, rank } in &entries {
                if self.skip.as_ref().is_some_and(|skip| key <= skip) {
                    continue;
                }
                if !self.buffer.push(key, *rank) {
                    full = true;
                    self.write().await?;
                    self.buffer.push(key, *rank);
                }
            }
            if full || end {
                return Ok(end);
            }
        }
        Ok(false)
    }

    async fn write(&mut self) -> Result<(), PortError> {
        let at = self.written;
        self.buffer.sort();
        while !self.buffer.is_empty() {
            let piece = self.buffer.piece(PIECE.min(self.room.max(1)));
            self.written += piece.len() as u64;
            self.file.append(piece).await?;
        }
        self.runs.push_back(Run { at, end: self.written });
        Ok(())
    }

    /// What was listed, in the order of keys.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn sorted(mut self) -> Result<Sorted, PortError> {
        if !self.buffer.is_empty() {
            self.write().await?;
        }
        let Self { mut file, mut written, mut runs, room, .. } = self;
        // More runs than can be merged at once become fewer and longer ones.
        let at_once = (room / WINDOW_MIN).max(2);
        while runs.len() > at_once {
            let some: Vec<Run> = runs.drain(..at_once).collect();
            let (at, mut merging, mut piece) = (written, Merging::of(some, room), Vec::new());
            loop {
                let entry = merging.next(file.as_ref()).await?;
                if let Some(entry) = &entry {
                    sort::append(&mut piece, entry);
                }
                if entry.is_none() || piece.len() >= PIECE.min(room) {
                    written += piece.len() as u64;
                    file.append(std::mem::take(&mut piece)).await?;
                }
                if entry.is_none() {
                    break;
                }
            }
            runs.push_back(Run { at, end: written });
        }
        let merging = Merging::of(runs.into(), room);
        Ok(Sorted { file, merging, front: VecDeque::new(), ended: false })
    }
}

/// A merge of runs in a file.
#[derive(Debug)]
struct Merging {
    runs: Vec<Run>,
    merge: RunMerge,
    window: usize,
}

impl Merging {
    fn of(runs: Vec<Run>, room: usize) -> Self {
        let (merge, window) = (RunMerge::new(runs.len()), room / runs.len().max(1));
        Self { runs, merge, window: window.max(WINDOW_MIN) }
    }

    async fn next(
        &mut self,
        file: &dyn SpillFile,
    ) -> Result<Option<(Key, Option<Rank>)>, PortError> {
        loop {
            match self.merge.advance().map_err(corrupt)? {
                Merged::Entry(entry) => return Ok(Some(entry)),
                Merged::End => return Ok(None),
                Merged::Need(at) => {
                    let run = &mut self.runs[at];
                    let left = usize::try_from(run.end - run.at).unwrap_or(usize::MAX);
                    let bytes = match left.min(self.window) {
                        0 => Vec::new(),
                        length => file.read(run.at, length).await?,
                    };
                    if bytes.is_empty() && left > 0 {
                        return Err(corrupt(Corrupt));
                    }
                    run.at += bytes.len() as u64;
                    self.merge.feed(at, &bytes);
                }
            }
        }
    }
}

/// A sorted listing. It is read from front to back; what is not yet released can be read again.
#[derive(Debug)]
pub struct Sorted {
    file: Box<dyn SpillFile>,
    merging: Merging,
    front: VecDeque<Entry>,
    ended: bool,
}

impl Sorted {
    /// Lists and sorts a sink as a whole.
    ///
    /// # Errors
    /// Those of `Sorting`.
    pub async fn of(
        sink: &dyn Sink,
        spill: &dyn Spill,
        room: usize,
        limit: u32,
    ) -> Result<Self, PortError> {
        let mut sorting = Sorting::begin(spill, room, None, limit).await?;
        while !sorting.advance(sink, u32::MAX).await? {}
        sorting.sorted().await
    }

    /// Forgets everything up to and with this key.
    pub(crate) fn release(&mut self, key: &Key) {
        while self.front.front().is_some_and(|entry| entry.key <= *key) {
            self.front.pop_front();
        }
    }

    /// As [`Sink::list`], in the order of keys.
    pub(super) async fn list(
        &mut self,
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Listing, PortError> {
        let passed = after.map_or(0, |after| self.front.partition_point(|e| e.key <= *after));
        let wanted = passed + limit as usize;
        while self.front.len() <= wanted && !self.ended {
            match self.merging.next(self.file.as_ref()).await? {
                Some((key, rank)) => self.front.push_back(Entry { key, rank }),
                None => self.ended = true,
            }
        }
        let end = self.front.len() <= wanted;
        let entries = self.front.iter().skip(passed).take(limit as usize).cloned().collect();
        Ok(Listing { entries, end })
    }
}

fn corrupt(cause: Corrupt) -> PortError {
    PortError::new("sort a listing", FailureClass::Halted, Code::SPILL_FAILED).caused_by(cause)
}

#[cfg(test)]
mod tests;
