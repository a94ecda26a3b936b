//! What happens in a step, and how it is told.

use std::fmt;

use truekeep_core::guard::Lost;

use super::machine::Machine;
use super::sink::Batch;
use super::source::Row;
use super::worker::Fate;
use super::world::World;

/// One thing that happens. The first number is a worker, or else a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Put(u8),
    Delete(u8),
    Prune,
    Announce,
    Restore,
    Retry(u8),
    Acquire(u8),
    Load(u8),
    Notice(u8),
    GiveBack(u8),
    Open(u8),
    Register(u8),
    RegisterUnanswered(u8),
    Arm(u8),
    Isolate(u8),
    Claim(u8, u8),
    ClaimUnanswered(u8, u8),
    ClaimLost(u8),
    Read(u8, Row),
    ReadEnd(u8),
    ReadAhead(u8),
    Send(u8, Batch),
    Arrive(u8),
    ArriveUnanswered(u8),
    Trouble(u8, Fate),
    Delay(u8),
    LateBatch(Batch),
    Commit(u8),
    CommitUnanswered(u8),
    CommitDelayed(u8),
    CommitLost(u8, Lost),
    FoundLanded(u8),
    NothingToCommit(u8),
    LateCommit { lands: bool },
    Crash(u8),
    ExpireSlow,
    ExpireDead,
}

impl Action {
    /// The worker that does it, or that it is done to.
    pub fn worker(self) -> Option<u8> {
        match self {
            Self::Acquire(w)
            | Self::Load(w)
            | Self::Notice(w)
            | Self::GiveBack(w)
            | Self::Open(w)
            | Self::Register(w)
            | Self::RegisterUnanswered(w)
            | Self::Arm(w)
            | Self::Isolate(w)
            | Self::Claim(w, _)
            | Self::ClaimUnanswered(w, _)
            | Self::ClaimLost(w)
            | Self::Read(w, _)
            | Self::ReadEnd(w)
            | Self::ReadAhead(w)
            | Self::Send(w, _)
            | Self::Arrive(w)
            | Self::ArriveUnanswered(w)
            | Self::Trouble(w, _)
            | Self::Delay(w)
            | Self::Commit(w)
            | Self::CommitUnanswered(w)
            | Self::CommitDelayed(w)
            | Self::CommitLost(w, _)
            | Self::FoundLanded(w)
            | Self::NothingToCommit(w)
            | Self::Crash(w) => Some(w),
            Self::Put(_)
            | Self::Delete(_)
            | Self::Prune
            | Self::Announce
            | Self::Restore
            | Self::Retry(_)
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
        Some(document) => format!("{name} at version {version} (row of version {document})"),
        None => format!("the absence of {name} at version {version}"),
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(w) = self.worker() {
            write!(f, "worker {} ", ["one", "two"][usize::from(w)])?;
        }
        match *self {
            Self::Put(k) => write!(f, "the application writes {}", key(k)),
            Self::Delete(k) => write!(f, "the application deletes {}", key(k)),
            Self::Prune => write!(f, "tombstones that were acknowledged are pruned"),
            Self::Announce => write!(f, "an operator announces new rules"),
            Self::Restore => write!(f, "somebody restores the sink as it was at first"),
            Self::Retry(k) => write!(f, "an operator wants {} tried again", key(k)),
            Self::Acquire(_) => write!(f, "takes the lease"),
            Self::Load(_) => write!(f, "loads the run"),
            Self::Notice(_) => write!(f, "notices that the run was changed"),
            Self::GiveBack(_) => write!(f, "hands its lease back"),
            Self::Open(_) => write!(f, "looks at the source and the sink's mark"),
            Self::Register(_) => write!(f, "acknowledges in the source"),
            Self::RegisterUnanswered(_) => write!(f, "acknowledges in the source, unanswered"),
            Self::Arm(_) => write!(f, "is about to announce a page that may kill"),
            Self::Isolate(_) => write!(f, "reads a row that kills and does not send it"),
            Self::Claim(_, k) => write!(f, "claims the item of {}", key(k)),
            Self::ClaimUnanswered(_, k) => write!(f, "claims the item of {}, unanswered", key(k)),
            Self::ClaimLost(_) => write!(f, "may not claim"),
            Self::Read(_, row) => write!(f, "reads {} at version {}", key(row.key), row.version),
            Self::ReadEnd(_) => write!(f, "reads the end of the feed"),
            Self::ReadAhead(_) => write!(f, "reads the page after it"),
            Self::Send(_, batch) => write!(f, "loads and sends {}", content(batch)),
            Self::Arrive(_) => write!(f, "has its batch answered"),
            Self::ArriveUnanswered(_) => write!(f, "has its batch carried out, unanswered"),
            Self::Trouble(_, fate) => write!(f, "has its record answered: {fate:?}"),
            Self::Delay(_) => write!(f, "stops waiting for its batch, which is still on the way"),
            Self::LateBatch(batch) => write!(f, "a late batch arrives: {}", content(batch)),
            Self::Commit(_) => write!(f, "commits"),
            Self::CommitUnanswered(_) => write!(f, "commits, unanswered"),
            Self::CommitDelayed(_) => write!(f, "repeats a commit that is still on the way"),
            Self::CommitLost(_, lost) => write!(f, "may not commit: {lost:?}"),
            Self::FoundLanded(_) => write!(f, "finds that its commit had landed"),
            Self::NothingToCommit(_) => write!(f, "has nothing to commit"),
            Self::LateCommit { lands } => {
                write!(f, "a late commit {}", if lands { "lands" } else { "is refused" })
            }
            Self::Crash(_) => write!(f, "dies"),
            Self::ExpireSlow => write!(f, "the lease ends although its holder lives"),
            Self::ExpireDead => write!(f, "the lease of the dead holder ends"),
        }
    }
}

/// What a world looks like at the end of a story.
pub fn tell(world: &World, machine: &Machine) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let World { source, sink, ledger, .. } = world;
    for k in 0..super::source::KEYS {
        let held = sink.keys[usize::from(k)].map(|held| (held.rank(), held.document));
        let item = ledger.items[usize::from(k)];
        let (name, row, feed) = (key(k), source.document(k), source.find(k));
        _ = writeln!(text, "  {name}: row {row:?}; feed {feed:?}; sink {held:?}; item {item:?}");
    }
    _ = writeln!(text, "  certificate: {:?}", ledger.certificate);
    _ = writeln!(text, "  run: {:?}", machine.memory(ledger.run));
    _ = writeln!(text, "  source: {:?}; mark: {:?}", source.view(), sink.mark);
    text
}
