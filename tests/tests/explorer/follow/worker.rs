//! A worker: what it believes, what it has in hand, and where in the engine's order it stands.

use super::machine::{Doubt, PhaseId, number, small_number};
use super::sink::{Batch, Name, SinkMark};
use super::source::{Acknowledged, Page, Row, View};

/// The lease that a worker believes to hold, and the rules it works under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holding {
    pub fence: u8,
    pub rules: u8,
}

/// What a writer tells the guard. Versions of a run only grow, so it is enough to know whether
/// the one that was read last is still the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Belief {
    pub lease: Holding,
    pub current: bool,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    Done,
    Refused,
    Again,
    Ahead,
}

/// A delivery that has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Done {
    pub key: u8,
    pub version: u8,
    pub deleted: bool,
    pub attempts: u8,
    /// Its batch, if it was sent.
    pub sent: Option<Name>,
    pub fate: Fate,
}

/// An observation of small numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    TookOver { after_crash: bool },
    Opened { view: View, mark: Option<SinkMark> },
    Registered(Acknowledged),
    Armed,
    Page { next: u8, moment: Option<u8>, view: View, done: Option<Done> },
    Redelivered(Done),
    Isolated { next: u8, view: View, row: Option<Done> },
    SinkWentBack,
    Judged(Option<Doubt>),
}

/// What the holder of a lease knows of the batches that the sink was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Batches {
    /// The newest number that was given to one.
    pub sent: u8,
    /// The newest that the sink is known to hold.
    pub taken: Name,
}

impl Batches {
    /// The number of the next batch: of the turn after the last that is known to be confirmed, and
    /// one that was not given before.
    pub fn next(self, confirmed: u8) -> u8 {
        let confirmed = number(confirmed);
        let (first, last) = (confirmed.turn_after(), confirmed.turn_after_last());
        let next = number(self.sent).next();
        small_number(if next > last { first } else { next.max(first) })
    }
}

/// What a worker has loaded or stored last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    pub belief: Belief,
    pub phase: PhaseId,
    /// The next page, if it was read while this one was on its way, and the place it begins after.
    pub ahead: Option<(u8, Page)>,
    pub batches: Batches,
}

impl Turn {
    /// The same, without what was read ahead.
    pub fn anew(self) -> Self {
        Self { ahead: None, ..self }
    }
}

/// What is being delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    Page(Page, Row),
    Item { key: u8, version: u8, attempts: u8 },
}

/// Where a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worker {
    /// Holds nothing and remembers nothing.
    Down,
    /// Holds a lease and is about to load the run; the take-over is committed if there was one.
    Loading { lease: Holding, after_crash: Option<bool>, batches: Batches },
    /// Is about to see what is due.
    Ready(Turn),
    /// Has work in hand, without documents.
    Holds(Turn, Work),
    /// Its batch is on the way.
    Sent(Turn, Work, Batch),
    /// Commits; `landed`: it did already, and the run still carries this commit's token.
    Committing { turn: Turn, seen: Seen, landed: bool },
}

impl Worker {
    pub fn lease(self) -> Option<Holding> {
        match self {
            Self::Down => None,
            Self::Loading { lease, .. } => Some(lease),
            Self::Ready(turn)
            | Self::Holds(turn, _)
            | Self::Sent(turn, _, _)
            | Self::Committing { turn, .. } => Some(turn.belief.lease),
        }
    }

    pub fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Down | Self::Loading { .. } => None,
            Self::Ready(turn)
            | Self::Holds(turn, _)
            | Self::Sent(turn, _, _)
            | Self::Committing { turn, .. } => Some(turn),
        }
    }
}
