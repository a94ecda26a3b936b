//! A worker: what it has loaded, what it has in hand of a look, and what it is about to store.

use super::machine::{Counts, Parked, Seen};
use super::source::Keys;
use super::world::Beside;
use crate::follow::machine::PhaseId;
use crate::follow::source::KEYS;
use crate::follow::worker::{Batches, Belief, Holding};

/// What a worker has loaded or stored last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    pub belief: Belief,
    pub phase: PhaseId,
    pub batches: Batches,
    pub beside: Option<Beside>,
}

/// A range of keys: the sink's page and what of the source belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    pub keys: Keys,
    /// The key after which the next range begins; none after the last.
    pub next: Option<u8>,
    /// The sink's entry, with its version.
    pub entry: Option<(u8, u8)>,
    /// The feed as it was when the sink was listed, for who asks too early.
    pub feed: [u8; KEYS as usize],
}

/// What of a range differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Judged {
    pub next: Option<u8>,
    pub counts: Counts,
    /// Missing or stale.
    pub repairs: Keys,
    pub orphans: Keys,
    pub park: Parked,
    /// The feed's versions of what differs, from 1; 0 of the others.
    pub known: [u8; KEYS as usize],
}

/// How far a look is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Audited { missed: Keys, ghosts: Keys, numbers: Keys },
    Listed(Range),
    Read(Range, [Option<u8>; KEYS as usize]),
    Judged(Judged),
}

/// What a look rests on: keys that were looked at and not spoiled since, audited or compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Evidence {
    pub fresh: [Keys; 2],
    /// The feed's versions of the keys that were found to differ, once they were numbered, from 1;
    /// 0 of the others.
    pub known: [u8; KEYS as usize],
    /// Keys that were compared in the first round.
    pub counted: Keys,
}

impl Evidence {
    pub fn spoil(&mut self, side: usize, keys: Keys) {
        self.fresh[side] &= !keys;
    }
}

/// What was seen, and is about to be told and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concluding {
    pub seen: Seen,
    pub evidence: Evidence,
}

/// Where a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worker {
    /// Holds nothing and remembers nothing.
    Down,
    /// Holds a lease and is about to load the run.
    Loading(Holding),
    /// Is about to see what is due: follow's turn, or the run's.
    Ready(Turn),
    /// Looks, one call after the other.
    Looking(Turn, Evidence, Stage),
    /// Is about to tell follow what it has found.
    Telling(Turn, Concluding),
    /// Commits; `landed`: it did already, and the run still carries this commit's token.
    Storing { turn: Turn, concluding: Concluding, landed: bool },
}

impl Worker {
    pub fn lease(&self) -> Option<Holding> {
        match self {
            Self::Down => None,
            Self::Loading(lease) => Some(*lease),
            Self::Ready(turn)
            | Self::Looking(turn, ..)
            | Self::Telling(turn, _)
            | Self::Storing { turn, .. } => Some(turn.belief.lease),
        }
    }

    pub fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Down | Self::Loading(_) => None,
            Self::Ready(turn)
            | Self::Looking(turn, ..)
            | Self::Telling(turn, _)
            | Self::Storing { turn, .. } => Some(turn),
        }
    }

    /// What it has in hand says nothing of these keys any more.
    pub fn spoil(&mut self, side: usize, keys: Keys) {
        match self {
            Self::Looking(_, evidence, _) => evidence.spoil(side, keys),
            Self::Telling(_, concluding) | Self::Storing { concluding, .. } => {
                concluding.evidence.spoil(side, keys);
            }
            Self::Down | Self::Loading(_) | Self::Ready(_) => {}
        }
    }
}
