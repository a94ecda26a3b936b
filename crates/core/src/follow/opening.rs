//! Opening: do source, sink and ledger still belong together?
//!
//! Invariant: F2.

use serde::{Deserialize, Serialize};

use super::tail::{held, owned};
use super::{Phase, Probe, Repairing, Suspect, Tail, Tailing, Terms};
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

    /// `suspect` is what the source was seen as when it made the run halt.
    pub(super) fn opened(
        self,
        terms: &Terms,
        seen: &Opened,
        suspect: Option<&Suspect>,
        now: Timestamp,
    ) -> Step<Phase> {
        match self.continued(terms, seen, now) {
            Ok(tail) => {
                let claim = tail.distrust.clone().map_or(Claim::Begun, Claim::Broken);
                Step {
                    next: Phase::Tailing(Tailing { tail }),
                    writes: vec![LedgerWrite::Certify(claim)],
                }
            }
            Err(code) => Repairing::or_halt(terms, self.before, code, (&seen.view, suspect), now),
        }
    }

    fn continued(&self, terms: &Terms, seen: &Opened, now: Timestamp) -> Result<Tail, Code> {
        owned(terms, seen.mark.as_ref())?;
        match &self.before {
            Some(tail) if tail.rules == terms.rules => tail.resumed(terms, seen),
            before => begun(terms, before.as_ref(), seen, now),
        }
    }
}

/// A tail under new rules, or the first one.
///
/// Where source, sink and ledger are what they were, follow goes on, and a rebuild delivers again what
/// it has passed. Else it begins at the feed's beginning: everything is delivered again, under a rules
/// number that beats whatever the sink holds. So a source, sink or ledger that went back is repaired
/// by it, but for records that only the sink has: until a reconcile has removed those, under its
/// guard, the sink is not trusted. An earlier doubt is looked into again.
fn begun(
    terms: &Terms,
    before: Option<&Tail>,
    seen: &Opened,
    now: Timestamp,
) -> Result<Tail, Code> {
    let Opened { view, mark } = seen;
    let found = held(terms, mark.as_ref());
    let known = before.map_or(MarkNumber::new(0), |tail| tail.sent);
    let unknown = mark.as_ref().is_some_and(|mark| mark.rules == terms.rules);
    if unknown && found.number > known.turn_after_last() {
        return Err(Code::LEDGER_WENT_BACK);
    }
    let inherited = mark.as_ref().is_some_and(|mark| mark.removed);
    let goes_on = before.filter(|_| !inherited).and_then(|tail| tail.under(terms, view, found));
    if let Some(tail) = goes_on {
        return Ok(tail);
    }
    let acknowledged = view.registration.as_ref().map_or(0, |held| held.counter.get());
    let distrust = match before {
        // What the removed pipeline left may be more than what this one has.
        _ if inherited => Some(Code::SINK_INHERITED),
        Some(tail) => {
            let fits = tail.admit(view).and_then(|()| tail.recognise(found));
            fits.err().or_else(|| tail.distrust.clone().map(|_| Code::DRIFT_FOUND))
        }
        None if found.number > MarkNumber::new(0).turn_after_last() || acknowledged > 1 => {
            Some(Code::LEDGER_WENT_BACK)
        }
        None => None,
    };
    Ok(Tail { distrust, ..Tail::fresh(terms, before, view, found, now) })
}

impl Tail {
    /// The tail to go on with under the same rules. A sink that lost what it had confirmed is gone
    /// on with from what it has, and not trusted until a reconcile has found what it lacks.
    fn resumed(&self, terms: &Terms, seen: &Opened) -> Result<Tail, Code> {
        self.admit(&seen.view)?;
        let mark = seen.mark.as_ref();
        let found = held(terms, mark);
        // Numbers go on from the greater of what is held and what was ever sent.
        let sent = found.number.max(self.sent);
        let tail = Tail { mark: found, sent, claimed: None, ..self.clone() };
        if mark.is_some_and(|mark| mark.removed) {
            return Ok(Tail { distrust: Some(Code::SINK_INHERITED), ..tail });
        }
        match self.recognise(found) {
            // The certificate may have gone stale since the last claim, so that is made anew.
            Ok(()) => Ok(tail),
            Err(code) if code == Code::SINK_WENT_BACK => Ok(Tail { distrust: Some(code), ..tail }),
            Err(code) => Err(code),
        }
    }
}
