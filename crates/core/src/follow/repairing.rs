//! Repairing: a source that went back is numbered anew, above all that anybody has seen of it, and
//! followed from its beginning.
//!
//! Invariant: F2. Nothing of it is delivered before it is numbered, and the sink is not trusted until
//! a reconcile has removed what only the lost future had.

use serde::{Deserialize, Serialize};

use super::tail::{held, owned};
use super::{Command, Halted, Opened, Phase, Tail, Tailing, Terms};
use crate::certificate::Claim;
use crate::code::Code;
use crate::limits::REPAIR_GAP;
use crate::ports::{Event, LedgerWrite, Registration, SourceView};
use crate::procedure::{Due, Step};
use crate::{Incarnation, Moment, Place, RegistrationCounter, Timestamp, Version};

/// What to do about a source that went back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceWentBack {
    /// An operator decides.
    #[default]
    Halt,
    /// It is numbered anew, if it is an earlier state of the same feed, says so twice a while
    /// apart, and was not repaired a short time ago.
    Repair,
}

/// A source that seems to have gone back, as it was seen: the same is to be seen twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    feed: Incarnation,
    registration: Option<Registration>,
}

impl Suspect {
    /// Only an earlier state of the same feed can be repaired; another feed is another database, and one
    /// beside the real one is left alone (X54).
    pub(super) fn of(before: Option<&Tail>, code: &Code, view: &SourceView) -> Option<Self> {
        let same = before.is_some_and(|tail| tail.feed == view.incarnation);
        (same && view.repairable && *code == Code::SOURCE_WENT_BACK).then(|| Self {
            feed: view.incarnation.clone(),
            registration: view.registration.clone(),
        })
    }
}

/// How far a repair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The counter is to go on above this version.
    Above(Version),
    /// Every row gets a number, page by page.
    Numbering(Version),
    /// Done; source and sink are looked at before the first page.
    Looking(Version),
}

/// Numbers a source anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairing {
    /// What the run remembers.
    pub before: Tail,
    /// How far it is.
    pub stage: Stage,
}

impl Repairing {
    /// A source went back: repaired if the policy says so and it may be, or else halted.
    pub(super) fn or_halt(
        terms: &Terms,
        before: Option<Tail>,
        code: Code,
        (view, seen_before): (&SourceView, Option<&Suspect>),
        now: Timestamp,
    ) -> Step<Phase> {
        let suspect = Suspect::of(before.as_ref(), &code, view);
        let twice = suspect.is_some() && suspect.as_ref() == seen_before;
        match before {
            Some(tail) if twice && may_repair(terms, &tail, now) => {
                let seen = tail.delivered.max(view.newest.newest());
                let above = Version::new(seen.get().saturating_add(REPAIR_GAP));
                let before = Tail { distrust: Some(code), repaired_at: Some(now), ..tail };
                let text = format!("every row gets a new number above {above}");
                let event = Event { code: Code::SOURCE_REPAIRED, text };
                Step {
                    next: Phase::Repairing(Self { before, stage: Stage::Above(above) }),
                    writes: vec![LedgerWrite::Record(event)],
                }
            }
            before => Halted::enter(before, code, suspect, now),
        }
    }

    /// A holder that died may have left anything half done: it is all done again.
    pub(super) fn took_over(self) -> Step<Phase> {
        let (Stage::Above(above) | Stage::Numbering(above) | Stage::Looking(above)) = self.stage;
        Self { stage: Stage::Above(above), ..self }.stay()
    }

    pub(super) fn due(&self) -> Due<Command> {
        Due::Now(match self.stage {
            Stage::Above(above) => Command::BeginAgain { above },
            Stage::Numbering(_) => Command::Fill,
            Stage::Looking(_) => Command::Open,
        })
    }

    pub(super) fn begun_again(self) -> Step<Phase> {
        let (Stage::Above(above) | Stage::Numbering(above) | Stage::Looking(above)) = self.stage;
        Self { stage: Stage::Numbering(above), ..self }.stay()
    }

    pub(super) fn filled(self, done: bool) -> Step<Phase> {
        match self.stage {
            Stage::Numbering(above) if done => Self { stage: Stage::Looking(above), ..self }.stay(),
            Stage::Above(_) | Stage::Numbering(_) | Stage::Looking(_) => self.stay(),
        }
    }

    /// The feed is followed from its beginning: every number in it is newer than any delivered one.
    pub(super) fn opened(self, terms: &Terms, seen: &Opened, now: Timestamp) -> Step<Phase> {
        let Opened { view, mark } = seen;
        let found = held(terms, mark.as_ref());
        let ours = owned(terms, mark.as_ref()).and_then(|()| {
            // What a removed pipeline left is numbered by nobody we know of.
            let ours = mark.as_ref().is_some_and(|mark| !mark.removed);
            if ours && found.number > self.before.sent.turn_after_last() {
                return Err(Code::LEDGER_WENT_BACK);
            }
            if view.incarnation != self.before.feed {
                return Err(Code::SOURCE_WENT_BACK);
            }
            Ok(())
        });
        if let Err(code) = ours {
            return Halted::enter(Some(self.before), code, None, now);
        }
        let none = Registration { counter: RegistrationCounter::new(0), passed: Moment::BEGINNING };
        let tail = Tail {
            cursor: Place::START,
            floor: view.pruned.clone(),
            claimed: None,
            mark: found,
            sent: found.number.max(self.before.sent),
            registered: view.registration.clone().unwrap_or(none),
            registered_at: now,
            probe: None,
            ..self.before
        };
        let claim = Claim::Broken(Code::SOURCE_WENT_BACK);
        Step { next: Phase::Tailing(Tailing { tail }), writes: vec![LedgerWrite::Certify(claim)] }
    }

    fn stay(self) -> Step<Phase> {
        Step { next: Phase::Repairing(self), writes: Vec::new() }
    }
}

/// Whether the policy allows it, and the last repair is long enough ago: a source that goes back
/// again and again is somebody's mistake.
fn may_repair(terms: &Terms, tail: &Tail, now: Timestamp) -> bool {
    let rested = |at: Timestamp| now.is_after(at, crate::limits::REPAIR_AGAIN_AFTER);
    terms.source_went_back == SourceWentBack::Repair && tail.repaired_at.is_none_or(rested)
}
