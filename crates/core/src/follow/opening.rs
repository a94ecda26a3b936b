//! Opening: do source, sink and ledger still belong together?
//!
//! Invariant: F2.

use serde::{Deserialize, Serialize};

use super::tail::owned;
use super::{Halted, Phase, Probe, Tail, Tailing, Terms};
use crate::certificate::Claim;
use crate::code::Code;
use crate::ports::{LedgerWrite, Mark, SourceView};
use crate::procedure::Step;
use crate::{MarkNumber, Timestamp};

/// Nothing is known about the world yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// What the run remembers.
    pub before: Option<Tail>,
}

/// The world, before anything is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The source.
    pub view: SourceView,
    /// The sink's mark.
    pub mark: Option<Mark>,
}

impl Opening {
    pub(super) fn took_over(terms: &Terms, before: Option<Tail>, after_crash: bool) -> Step<Phase> {
        let before = before.map(|tail| Tail {
            probe: Probe::after_take_over(tail.probe, after_crash, terms.page_rows),
            ..tail
        });
        Step { next: Phase::Opening(Self { before }), writes: Vec::new() }
    }

    pub(super) fn opened(self, terms: &Terms, seen: &Opened, now: Timestamp) -> Step<Phase> {
        match self.continued(terms, seen, now) {
            Ok(tail) => Step {
                next: Phase::Tailing(Tailing { tail }),
                writes: vec![LedgerWrite::Certify(Claim::Begun)],
            },
            Err(code) => Halted::enter(self.before, code, now),
        }
    }

    /// The tail to go on with. New rules begin at the feed's start; what they cannot do is remove
    /// what a source or a sink that went back has left behind, so that needs an empty sink.
    fn continued(&self, terms: &Terms, seen: &Opened, now: Timestamp) -> Result<Tail, Code> {
        let mark = seen.mark.as_ref();
        owned(terms, mark)?;
        let found = mark.map_or(MarkNumber::new(0), |mark| mark.number);
        let fresh = || Tail::fresh(terms, self.before.as_ref(), &seen.view, found, now);
        let Some(tail) = &self.before else {
            let strange = found > MarkNumber::new(1)
                || seen.view.registration.is_some_and(|r| r.counter.get() > 1);
            return if strange { Err(Code::LEDGER_WENT_BACK) } else { Ok(fresh()) };
        };
        let new_rules = tail.rules != terms.rules;
        if new_rules && mark.is_none() {
            return Ok(fresh());
        }
        tail.admit(&seen.view)?;
        tail.recognise(mark)?;
        // The certificate may have gone stale since the last claim, so that is made anew.
        let again = || Tail { mark: found.max(tail.mark), claimed: None, ..tail.clone() };
        Ok(if new_rules { fresh() } else { again() })
    }
}
