//! Halted: an operator is needed; the run looks again now and then whether the cause is gone.

use serde::{Deserialize, Serialize};

use super::{Command, Phase, Suspect, Tail, Terms};
use crate::Timestamp;
use crate::certificate::Claim;
use crate::code::Code;
use crate::ports::{Event, LedgerWrite};
use crate::procedure::{Due, Step};

/// Something needs an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halted {
    /// What.
    pub code: Code,
    /// When it was last seen.
    pub since: Timestamp,
    /// What the run remembers.
    pub before: Option<Tail>,
    /// The source that went back, if it may be repaired once the same is seen again.
    pub suspect: Option<Suspect>,
}

impl Halted {
    pub(super) fn enter(
        before: Option<Tail>,
        code: Code,
        suspect: Option<Suspect>,
        now: Timestamp,
    ) -> Step<Phase> {
        let text = code.entry().map_or("", |entry| entry.meaning).to_owned();
        let event = Event { code: code.clone(), text };
        Step {
            next: Phase::Halted(Self { code: code.clone(), since: now, before, suspect }),
            writes: vec![LedgerWrite::Certify(Claim::Broken(code)), LedgerWrite::Record(event)],
        }
    }

    pub(super) fn due(&self, terms: &Terms, now: Timestamp) -> Due<Command> {
        if now.is_after(self.since, terms.halted_recheck) {
            Due::Now(Command::Open)
        } else {
            Due::At(self.since.plus(terms.halted_recheck))
        }
    }
}
