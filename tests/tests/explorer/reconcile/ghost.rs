//! What nobody in the world knows: who was spoiled since when, and what was promised about it.

use super::machine::{Memory, Seen, Standing};
use super::source::{ALL, Keys, Source, each, has, only};
use super::worker::Concluding;
use crate::follow::sink::{Batch, Sink};
use crate::follow::source::KEYS;
use crate::search::Broken;

/// What the invariants remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ghost {
    /// Keys that were spoiled and not looked at since: in the feed by a change that capture did not
    /// see, and in the sink.
    pub spoiled: [Keys; 2],
    /// Keys that the present run has looked at and that were not spoiled since: audited, compared.
    pub looked: [Keys; 2],
    /// From which version on the sink is right about a key that is known not to be right; 0 if
    /// nothing is known against it.
    pub known: [u8; KEYS as usize],
    /// Nobody has ever spoiled anything.
    pub sound: bool,
    /// How many runs there were.
    pub runs: u8,
    /// How often the present run has ended.
    pub ended: u8,
    /// Whether an operator said yes to the present run, and to what there is now.
    pub yes: bool,
    /// Keys that the present run has compared in its first round.
    pub counted: Keys,
    /// What the last step broke.
    pub broke: Option<Broken>,
}

const ENDED_TWICE: Broken = "a run ended twice";
const UNLAWFUL: Broken = "G1: a commit landed without the lease, or over another one";
const REMOVED: Broken = "Q2: a record was removed whose row was there all the time";

impl Ghost {
    pub const NEW: Self = Self {
        spoiled: [0; 2],
        looked: [0; 2],
        known: [0; KEYS as usize],
        sound: true,
        runs: 0,
        ended: 0,
        yes: false,
        counted: 0,
        broke: None,
    };

    /// Changes that capture did not see.
    pub fn unseen(&mut self, keys: Keys) {
        self.spoil(0, keys);
        self.forget(keys);
    }

    /// The sink lost entries, or was given foreign ones.
    pub fn spoiled(&mut self, keys: Keys) {
        self.spoil(1, keys);
        self.forget(keys);
    }

    /// The sink says that it holds what it does not.
    pub fn swallowed(&mut self, keys: Keys) {
        self.spoil(1, keys);
    }

    /// Whatever was known of these keys is another thing now.
    fn forget(&mut self, keys: Keys) {
        each(keys).for_each(|key| self.known[usize::from(key)] = 0);
    }

    fn spoil(&mut self, side: usize, keys: Keys) {
        self.spoiled[side] |= keys;
        self.looked[side] &= !keys;
        self.sound = false;
    }

    /// A new run has everything to look at.
    pub fn began(&mut self, yes: bool) {
        self.runs += 1;
        self.looked = [0; 2];
        self.counted = 0;
        self.ended = 0;
        self.yes = yes;
    }

    /// It was noticed that the sink went back: whatever is spoiled is known to be.
    pub fn went_back(&mut self, source: &Source) {
        self.know(self.spoiled[1], source);
        self.yes = false;
    }

    /// Something is known against these keys until the sink holds what the feed says now, or later.
    fn know(&mut self, keys: Keys, source: &Source) {
        for key in each(keys) {
            let version = source.feed(key).map_or(0, |row| row.version);
            self.known[usize::from(key)] = version.max(1);
        }
    }

    /// A batch was carried out.
    pub fn delivered(&mut self, source: &Source, before: &Sink, batch: Batch) {
        let removed = before.document(batch.key).is_some() && batch.document.is_none();
        if removed && !source.was_absent_since(batch.key, batch.version) {
            self.broke = Some(REMOVED);
        }
        // Whoever says to hold what is newer than the repair is believed, until it is looked at.
        let known = &mut self.known[usize::from(batch.key)];
        if batch.version > *known {
            *known = 0;
        }
    }

    /// A commit of the run landed.
    pub fn stored(&mut self, run: &Memory, done: Concluding, lawful: bool) {
        if !lawful {
            self.broke = Some(UNLAWFUL);
        }
        if done.seen == Seen::Looked {
            // It begins, or begins again.
            (self.looked, self.counted) = ([0; 2], 0);
        }
        let evidence = done.evidence;
        for (known, found) in self.known.iter_mut().zip(evidence.known) {
            *known = if found > 0 { found } else { *known };
        }
        for side in 0..2 {
            self.looked[side] |= evidence.fresh[side];
        }
        self.counted |= evidence.counted;
        match run.standing {
            Standing::Active => return,
            Standing::Done => {
                for side in 0..2 {
                    self.spoiled[side] &= !self.looked[side];
                }
            }
            Standing::Failed => {}
        }
        self.ended += 1;
        if self.ended > 1 {
            self.broke = Some(ENDED_TWICE);
        }
    }

    /// What is right again is no longer held against a key.
    pub fn settle(&mut self, source: &Source, sink: &Sink) {
        for key in each(ALL) {
            let place = usize::from(key);
            let held = sink.keys[place];
            let equal = sink.document(key) == source.row(key);
            if self.known[place] > 0 {
                let newer = held.is_some_and(|held| {
                    held.version < super::FOREIGN && held.version >= self.known[place]
                });
                if equal || (newer && self.known[place] > 1) {
                    self.known[place] = 0;
                }
            }
            let told = source.is_told(key);
            if equal && told {
                self.spoiled[0] &= !only(key);
                let rank = source.feed(key).map(|row| row.version);
                if held.map(|held| held.version) == rank || (held.is_none() && !source.live(key)) {
                    self.spoiled[1] &= !only(key);
                }
            }
        }
    }

    /// Whether the feed or the sink may be wrong about a key although nobody could know yet.
    pub fn excuses(&self, key: u8) -> bool {
        has(self.spoiled[0] | self.spoiled[1], key)
    }
}
