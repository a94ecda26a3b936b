//! What happens in a step, and how it is told.

use std::fmt;

use super::Laws;
use super::source::{Keys, each};
use super::world::World;
use crate::follow::machine::Doubt;
use crate::follow::sink::Batch;

/// One thing that happens. The first number is a worker, or else a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Put(u8),
    Delete(u8),
    Unseen(u8),
    Lose(u8),
    Plant(u8, u8),
    Restore,
    Wish { confirmed: bool },
    Move,
    Acquire(u8),
    Load(u8),
    Open(u8),
    Register(u8),
    Claim(u8),
    Deliver(u8, Batch),
    DeliverUnanswered(u8, Batch),
    PutOff(u8, Batch),
    Delay(u8, Batch),
    LateBatch(Batch),
    Find(u8),
    Repair(u8),
    Begin(u8),
    Audit(u8),
    List(u8),
    Read(u8),
    Judge(u8),
    Number(u8, Keys),
    NumberUnanswered(u8, Keys),
    Conclude(u8),
    Reach(u8),
    Tell(u8, Option<Doubt>),
    Store(u8),
    StoreUnanswered(u8),
    StoreLost(u8),
    FoundLanded(u8),
    NothingToStore(u8),
    Crash(u8),
    CrashInCommit(u8),
    LateCommit { lands: bool },
    ExpireSlow,
    ExpireDead,
}

impl Action {
    /// The worker that does it, or that it is done to.
    pub fn worker(self) -> Option<u8> {
        match self {
            Self::Acquire(w)
            | Self::Load(w)
            | Self::Open(w)
            | Self::Register(w)
            | Self::Claim(w)
            | Self::Deliver(w, _)
            | Self::DeliverUnanswered(w, _)
            | Self::PutOff(w, _)
            | Self::Delay(w, _)
            | Self::Find(w)
            | Self::Repair(w)
            | Self::Begin(w)
            | Self::Audit(w)
            | Self::List(w)
            | Self::Read(w)
            | Self::Judge(w)
            | Self::Number(w, _)
            | Self::NumberUnanswered(w, _)
            | Self::Conclude(w)
            | Self::Reach(w)
            | Self::Tell(w, _)
            | Self::Store(w)
            | Self::StoreUnanswered(w)
            | Self::StoreLost(w)
            | Self::FoundLanded(w)
            | Self::NothingToStore(w)
            | Self::Crash(w)
            | Self::CrashInCommit(w) => Some(w),
            Self::Put(_)
            | Self::Delete(_)
            | Self::Unseen(_)
            | Self::Lose(_)
            | Self::Plant(..)
            | Self::Restore
            | Self::Wish { .. }
            | Self::Move
            | Self::LateBatch(_)
            | Self::LateCommit { .. }
            | Self::ExpireSlow
            | Self::ExpireDead => None,
        }
    }
}

fn key(key: u8) -> char {
    char::from(b'a' + key)
}

fn content(batch: Batch) -> String {
    let (name, version) = (key(batch.key), batch.version);
    match batch.document {
        Some(document) => format!("{name} at version {version} (row of {document})"),
        None => format!("the absence of {name} at version {version}"),
    }
}

fn names(keys: Keys) -> String {
    each(keys).map(key).collect()
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(w) = self.worker() {
            write!(f, "worker {} ", ["one", "two"][usize::from(w)])?;
        }
        match *self {
            Self::Put(k) => write!(f, "the application writes {}", key(k)),
            Self::Delete(k) => write!(f, "the application deletes {}", key(k)),
            Self::Unseen(k) => write!(f, "a change of {} that capture does not see", key(k)),
            Self::Lose(k) => write!(f, "the sink loses {}", key(k)),
            Self::Plant(k, v) => write!(f, "somebody plants {} at version {v}", key(k)),
            Self::Restore => write!(f, "somebody restores the sink as it was at first"),
            Self::Wish { confirmed: false } => write!(f, "an operator wishes for a reconcile"),
            Self::Wish { confirmed: true } => write!(f, "an operator wishes for one and says yes"),
            Self::Move => write!(f, "an operator moves the run's version"),
            Self::Acquire(_) => write!(f, "takes the lease"),
            Self::Load(_) => write!(f, "loads the run of follow"),
            Self::Open(_) => write!(f, "looks at source and sink"),
            Self::Register(_) => write!(f, "acknowledges in the source"),
            Self::Claim(_) => write!(f, "reads the end of the feed and says how far it is"),
            Self::Deliver(_, batch) => write!(f, "delivers {}", content(batch)),
            Self::DeliverUnanswered(_, batch) => {
                write!(f, "delivers {}, unanswered", content(batch))
            }
            Self::PutOff(_, batch) => write!(f, "has {} put off", content(batch)),
            Self::Delay(_, batch) => write!(f, "stops waiting for {}", content(batch)),
            Self::LateBatch(batch) => write!(f, "a late batch arrives: {}", content(batch)),
            Self::Find(_) => write!(f, "finds the run that is open"),
            Self::Repair(_) => write!(f, "opens a run, since the sink is not trusted"),
            Self::Begin(_) => write!(f, "begins the run"),
            Self::Audit(_) => write!(f, "holds the feed against the table"),
            Self::List(_) => write!(f, "lists the sink"),
            Self::Read(_) => write!(f, "reads the source's keys"),
            Self::Judge(_) => write!(f, "asks the feed what follow has not come to yet"),
            Self::Number(_, keys) => write!(f, "numbers {}", names(keys)),
            Self::NumberUnanswered(_, keys) => write!(f, "numbers {}, unanswered", names(keys)),
            Self::Conclude(_) => write!(f, "has nothing to number"),
            Self::Reach(_) => write!(f, "sees that all was delivered"),
            Self::Tell(_, None) => write!(f, "tells follow that the sink is to be trusted"),
            Self::Tell(_, Some(doubt)) => write!(f, "tells follow of a doubt: {doubt:?}"),
            Self::Store(_) => write!(f, "stores the run"),
            Self::StoreUnanswered(_) => write!(f, "stores the run, unanswered"),
            Self::StoreLost(_) => write!(f, "may not store the run"),
            Self::FoundLanded(_) => write!(f, "finds that the run was stored"),
            Self::NothingToStore(_) => write!(f, "has nothing to store"),
            Self::Crash(_) => write!(f, "dies"),
            Self::CrashInCommit(_) => write!(f, "dies while it stores the run"),
            Self::LateCommit { lands } => {
                write!(f, "a late commit {}", if lands { "lands" } else { "is refused" })
            }
            Self::ExpireSlow => write!(f, "the lease ends although its holder lives"),
            Self::ExpireDead => write!(f, "the lease of the dead holder ends"),
        }
    }
}

/// What a world looks like at the end of a story.
pub fn tell(world: &World, laws: &Laws) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let World { source, sink, ledger, .. } = world;
    for k in 0..crate::follow::source::KEYS {
        let held = sink.keys[usize::from(k)].map(|held| (held.version, held.document));
        let item = ledger.items[usize::from(k)];
        let (name, row, feed) = (key(k), source.row(k), source.feed(k));
        _ = writeln!(text, "  {name}: row {row:?}; feed {feed:?}; sink {held:?}; item {item:?}");
    }
    _ = writeln!(text, "  certificate: {:?}", ledger.certificate);
    _ = writeln!(text, "  follow: {:?}", laws.follow.memory(ledger.run));
    _ = writeln!(text, "  run: {:?}", world.run.map(|run| laws.machine.memory(run)));
    _ = writeln!(text, "  mark: {:?}; {:?}", sink.mark, world.ghost);
    text
}
