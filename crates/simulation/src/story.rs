//! The story of a world: its last events in words, and a hash of all of them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Events as they happened.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    /// How many events are told.
    length: usize,
    last: VecDeque<String>,
    hash: u64,
    /// How often each kind of event happened, by its first words.
    seen: BTreeMap<&'static str, u64>,
}

impl Story {
    /// A story of which the last so many events are told.
    pub fn of(length: usize) -> Self {
        let (last, seen) = (VecDeque::new(), BTreeMap::new());
        Self { length: length.max(1), last, hash: 0xcbf2_9ce4_8422_2325, seen }
    }

    /// Adds an event of this kind, by somebody.
    pub fn tell(&mut self, at: Duration, kind: &'static str, what: fmt::Arguments<'_>) {
        *self.seen.entry(kind).or_default() += 1;
        let mut line = if self.last.len() < self.length {
            String::new()
        } else {
            let mut old = self.last.pop_front().unwrap_or_default();
            old.clear();
            old
        };
        // Writing to a string does not fail.
        let _ = write!(line, "{:>9.3} {kind:<16} {what}", at.as_secs_f64());
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.last.push_back(line);
    }

    /// Differs as soon as one event does.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How often each kind of event happened.
    pub fn seen(&self) -> &BTreeMap<&'static str, u64> {
        &self.seen
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.last.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
