//! What a run of follow remembers, and the checks that tell whether it still fits the world.
//!
//! Invariant: F2.

use serde::{Deserialize, Serialize};

use super::{Probe, Terms};
use crate::certificate::Claim;
use crate::code::Code;
use crate::ports::{Consumer, Mark, Registration, SourceView};
use crate::{
    BatchName, Incarnation, MarkNumber, Moment, Place, RegistrationCounter, RulesNumber, Timestamp,
    Version,
};

/// The memory of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// The rules that everything at or below the cursor was delivered under.
    pub rules: RulesNumber,
    /// The life of the feed that the cursor is a place in.
    pub feed: Incarnation,
    /// Every change before it was delivered and confirmed, or is an item.
    pub cursor: Place,
    /// Tombstones of writes that it includes are not missed: they were gone before the first page
    /// was read, or were delivered under earlier rules and may go at any time.
    pub floor: Moment,
    /// The greatest version that was ever delivered.
    pub delivered: Version,
    /// What was last claimed, so that an idle run writes nothing.
    pub claimed: Option<Claim>,
    /// The newest batch that the sink is known to hold.
    pub mark: BatchName,
    /// The newest batch that was ever known to be held; what is sent next has numbers of the turn
    /// after. A sink that lost batches gets none of their numbers again: else a backup of it that
    /// holds the lost ones would pass for one that holds the new ones.
    pub sent: MarkNumber,
    /// The newest acknowledgement that is known to be in the source.
    pub registered: Registration,
    /// When it was written.
    pub registered_at: Timestamp,
    /// Why no moment is claimed although everything is delivered: the sink is known not to hold what
    /// it was given. A reconcile sets it, and takes it away when it has ended well; an operator who
    /// cancels the one that was repairing it leaves it so.
    pub distrust: Option<Code>,
    /// Whether the sink holds records of earlier rules that stand before the cursor: a rebuild delivers
    /// them again. The sink is not trusted until that, or any reconcile, has ended well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
    /// When the source was last numbered anew because it went back.
    pub repaired_at: Option<Timestamp>,
    /// Set while a record that kills workers is looked for.
    pub probe: Option<Probe>,
}

impl Tail {
    /// A tail at the feed's beginning. `before` is the one of earlier rules: an acknowledgement of
    /// its cursor may still be on the way to the source.
    pub(super) fn fresh(
        terms: &Terms,
        before: Option<&Tail>,
        view: &SourceView,
        mark: BatchName,
        now: Timestamp,
    ) -> Self {
        let none = Registration { counter: RegistrationCounter::new(0), passed: Moment::BEGINNING };
        let registered = view.registration.clone().unwrap_or(none);
        let passed = registered.passed.clone();
        let passed = match before.filter(|tail| tail.feed == view.incarnation) {
            Some(tail) => tail.cursor.passed.clone().or_later(tail.floor.clone()).or_later(passed),
            None => passed,
        };
        Self {
            rules: terms.rules,
            feed: view.incarnation.clone(),
            cursor: Place::START,
            floor: view.pruned.clone().or_later(passed),
            delivered: before.map_or(Version::new(0), |tail| tail.delivered),
            claimed: None,
            mark,
            sent: before.map_or(mark.number, |tail| tail.sent.max(mark.number)),
            registered,
            registered_at: now,
            distrust: None,
            outdated: false,
            repaired_at: before.and_then(|tail| tail.repaired_at),
            probe: None,
        }
    }

    /// The tail to go on with under new rules, from where it was: if source, sink and ledger are what
    /// they were, and something was passed under the earlier ones. From here on follow delivers under
    /// the new ones, and a rebuild what it has passed.
    pub(super) fn under(&self, terms: &Terms, view: &SourceView, found: BatchName) -> Option<Self> {
        let fits = self.admit(view).and_then(|()| self.recognise(found)).is_ok();
        (fits && self.cursor.passed != Moment::BEGINNING).then(|| Self {
            rules: terms.rules,
            mark: found,
            sent: found.number.max(self.sent),
            claimed: None,
            distrust: Some(Code::RULES_CHANGED),
            outdated: true,
            ..self.clone()
        })
    }

    /// Whether the source is the one that the cursor is a place in, and has not gone back.
    ///
    /// Checked on the view of every page, before anything of the page is sent.
    ///
    /// # Errors
    /// The code that says what went back.
    pub fn admit(&self, view: &SourceView) -> Result<(), Code> {
        let acknowledged = view.registration.as_ref().map_or(0, |r| r.counter.get());
        let ours = self.registered.counter.get();
        let behind = !view.continues || !view.newest.includes(&self.cursor.passed);
        if view.incarnation != self.feed || acknowledged < ours || behind {
            return Err(Code::SOURCE_WENT_BACK);
        }
        if acknowledged > ours + 1 {
            return Err(Code::LEDGER_WENT_BACK);
        }
        let passed = |by: &Moment| by.includes(&view.pruned);
        if !passed(&self.cursor.passed) && !passed(&self.floor) && !self.at_the_beginning() {
            return Err(Code::TOMBSTONES_PRUNED);
        }
        Ok(())
    }

    /// Whether the doubt is about everything: source, sink or ledger went back.
    pub fn went_back(&self) -> bool {
        self.distrust.as_ref().is_some_and(|code| {
            [
                Code::SINK_INHERITED,
                Code::SINK_WENT_BACK,
                Code::SOURCE_WENT_BACK,
                Code::LEDGER_WENT_BACK,
                Code::TOMBSTONES_PRUNED,
            ]
            .contains(code)
        })
    }

    /// Whether the doubt is about a source that went back.
    pub fn source_went_back(&self) -> bool {
        self.distrust == Some(Code::SOURCE_WENT_BACK)
    }

    /// Whether nothing of the feed was passed yet, so that no deletion can have been missed.
    pub(super) fn at_the_beginning(&self) -> bool {
        self.cursor == Place::START
    }

    /// Whether the sink is the one that was written, and holds what it confirmed.
    ///
    /// Batches of the turn after the last one that is known to be held may have been sent. Those between
    /// what is held and what was ever sent were lost: a sink that has one is another backup.
    pub(super) fn recognise(&self, found: BatchName) -> Result<(), Code> {
        let was_lost = found.number > self.mark.number && found.number <= self.sent;
        if found < self.mark || was_lost {
            return Err(Code::SINK_WENT_BACK);
        }
        if found.number > self.sent.turn_after_last() {
            return Err(Code::LEDGER_WENT_BACK);
        }
        Ok(())
    }
}

/// The newest batch that the sink holds.
pub(super) fn held(terms: &Terms, mark: Option<&Mark>) -> BatchName {
    let Consumer { ledger, pipeline } = &terms.consumer;
    mark.map(|mark| mark.batch_before(ledger, pipeline)).unwrap_or_default()
}

/// Whether the sink is ours at all.
pub(super) fn owned(terms: &Terms, mark: Option<&Mark>) -> Result<(), Code> {
    let Some(mark) = mark else { return Ok(()) };
    match (mark.is_of(&terms.consumer.ledger, &terms.consumer.pipeline), mark.removed) {
        // Whoever removed a pipeline is followed by others only above its rules.
        (false, true) if mark.rules >= terms.rules => Err(Code::SINK_INHERITED),
        (false, true) => Ok(()),
        (false, false) => Err(Code::SINK_OWNED),
        // The ledger knows nothing of its removal.
        (true, true) => Err(Code::LEDGER_WENT_BACK),
        (true, false) if mark.rules > terms.rules => Err(Code::LEDGER_WENT_BACK),
        (true, false) => Ok(()),
    }
}
