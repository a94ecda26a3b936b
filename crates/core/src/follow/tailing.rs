//! Tailing: pages and items go to the sink, and the cursor and the certificate follow.
//!
//! Invariants: F1, F3, S3.

use serde::{Deserialize, Serialize};

use super::{Command, Halted, Phase, Repairing, Tail, Terms, exhausted};
use crate::certificate::Claim;
use crate::code::Code;
use crate::ports::{
    CaptureState, ItemKind, LedgerWrite, NewItem, Registration, Settle, SourceView,
};
use crate::procedure::{Due, Step};
use crate::{Attempt, BatchName, Key, Moment, Place, Timestamp, Version};

/// Delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tailing {
    /// What the run remembers.
    pub tail: Tail,
}

/// A delivery that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// Which record.
    pub key: Key,
    /// Which version.
    pub version: Version,
    /// What it was to become.
    pub kind: ItemKind,
    /// How often it was tried, this try included.
    pub attempts: Attempt,
    /// Whether trying again may help.
    pub retryable: bool,
    /// Why.
    pub code: Code,
    /// The reason.
    pub reason: String,
    /// A draw for the delay, uniform in [0, 1).
    pub draw: f64,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delivered {
    /// Deliveries that are done and had, or may have had, an item.
    pub settled: Vec<Settle>,
    /// Deliveries that failed.
    pub failed: Vec<Failed>,
    /// The newest batch that the sink took; none if it took none.
    pub mark: Option<BatchName>,
    /// A key of which the sink holds a newer version than the feed, if there is one.
    pub ahead: Option<Key>,
}

/// A page that was delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct PageSeen {
    /// The place after it.
    pub next: Place,
    /// The greatest version in it; none if it is empty.
    pub newest: Option<Version>,
    /// The moment that is reached with it.
    pub moment: Option<Moment>,
    /// The source as seen in the page's snapshot.
    pub view: SourceView,
    /// What became of it.
    pub delivered: Delivered,
}

impl Tailing {
    pub(super) fn due(&self, terms: &Terms, now: Timestamp) -> Due<Command> {
        let tail = &self.tail;
        let registered = &tail.registered;
        let moved = !registered.passed.includes(&tail.cursor.passed);
        let long_ago = now.is_after(tail.registered_at, terms.register_every);
        if registered.counter.get() == 0 || (moved && long_ago) {
            let counter = registered.counter.next();
            return Due::Now(Command::Register(Registration {
                counter,
                passed: tail.cursor.passed.clone(),
            }));
        }
        Due::Now(match tail.probe {
            Some(probe) if exhausted(&terms.delivery, probe.lone_deaths) => {
                Command::Isolate { after: tail.cursor.clone() }
            }
            Some(probe) if !probe.armed => Command::Arm,
            Some(probe) => Command::Deliver { after: tail.cursor.clone(), rows_max: probe.rows },
            None => Command::Deliver { after: tail.cursor.clone(), rows_max: terms.page_rows },
        })
    }

    pub(super) fn registered(mut self, registration: Registration, now: Timestamp) -> Step<Phase> {
        self.tail.registered = registration;
        self.tail.registered_at = now;
        self.stay(Vec::new())
    }

    pub(super) fn judged(mut self, distrust: Option<Code>) -> Step<Phase> {
        if self.tail.distrust == distrust {
            return self.stay(Vec::new());
        }
        self.tail.outdated &= distrust.is_some();
        self.tail.distrust.clone_from(&distrust);
        let claim = distrust.map(Claim::Broken);
        self.tail.claimed.clone_from(&claim);
        self.stay(claim.map(LedgerWrite::Certify).into_iter().collect())
    }

    pub(super) fn renewed(mut self) -> Step<Phase> {
        self.tail.outdated = false;
        self.stay(Vec::new())
    }

    pub(super) fn armed(mut self) -> Step<Phase> {
        self.tail.probe = self.tail.probe.map(|probe| super::Probe { armed: true, ..probe });
        self.stay(Vec::new())
    }

    pub(super) fn page(mut self, terms: &Terms, page: PageSeen, now: Timestamp) -> Step<Phase> {
        if let Err(code) = self.tail.admit(&page.view) {
            return Repairing::or_halt(terms, Some(self.tail), code, (&page.view, None), now);
        }
        if self.tail.at_the_beginning() {
            // Until we had registered, others may have had more of them removed.
            let floor = std::mem::take(&mut self.tail.floor);
            self.tail.floor = floor.or_later(page.view.pruned.clone());
        }
        let moved = page.next != self.tail.cursor;
        let writes = match self.delivered(terms, page.delivered, now) {
            Ok(writes) => writes,
            Err(halted) => return *halted,
        };
        self.tail.cursor = page.next;
        self.tail.delivered = page.newest.unwrap_or_default().max(self.tail.delivered);
        if moved || page.moment.is_some() {
            let probe = self.tail.probe.take();
            self.tail.probe = probe.and_then(|probe| probe.after_progress(terms.page_rows));
        }
        // A source's moments may go on without a change of the table, by our own commits where the ledger
        // is on its server: to claim each of them would never end. What was claimed of all that was
        // delivered holds.
        let claims = match &self.tail.claimed {
            Some(Claim::UpTo(held)) => !held.includes(&self.tail.cursor.passed),
            Some(Claim::Begun | Claim::Broken(_)) | None => true,
        };
        self.claim(&page.view.capture, page.moment.filter(|_| claims), writes)
    }

    pub(super) fn redelivered(
        mut self,
        terms: &Terms,
        delivered: Delivered,
        now: Timestamp,
    ) -> Step<Phase> {
        match self.delivered(terms, delivered, now) {
            Ok(writes) => self.stay(writes),
            Err(halted) => *halted,
        }
    }

    /// A page like any other, but for what is looked for next: nothing.
    pub(super) fn isolated(self, terms: &Terms, page: PageSeen, now: Timestamp) -> Step<Phase> {
        let mut step = self.page(terms, page, now);
        if let Phase::Tailing(tailing) = &mut step.next {
            tailing.tail.probe = None;
        }
        step
    }

    /// The writes of a delivery. A later claim is made anew if items moved.
    fn delivered(
        &mut self,
        terms: &Terms,
        delivered: Delivered,
        now: Timestamp,
    ) -> Result<Vec<LedgerWrite>, Box<Step<Phase>>> {
        let taken = delivered.mark.map_or(self.tail.mark, |taken| taken.max(self.tail.mark));
        self.tail.mark = taken;
        self.tail.sent = taken.number.max(self.tail.sent);
        if delivered.ahead.is_some() {
            let tail = Some(self.tail.clone());
            return Err(Box::new(Halted::enter(tail, Code::SINK_AHEAD, None, now)));
        }
        let mut writes = Vec::new();
        if !delivered.settled.is_empty() {
            writes.push(LedgerWrite::Settle(delivered.settled));
        }
        if !delivered.failed.is_empty() {
            let items = delivered.failed.into_iter().map(|failed| item(terms, failed)).collect();
            writes.push(LedgerWrite::Enqueue(items));
        }
        if !writes.is_empty() {
            self.tail.claimed = None;
        }
        Ok(writes)
    }

    /// Claims what the page allows: a moment only from the end of a feed that records everything.
    fn claim(
        mut self,
        capture: &CaptureState,
        moment: Option<Moment>,
        mut writes: Vec<LedgerWrite>,
    ) -> Step<Phase> {
        let claim = match capture {
            CaptureState::Trusted(_) if self.tail.distrust.is_some() => {
                self.tail.distrust.clone().map(Claim::Broken)
            }
            CaptureState::Trusted(_) => moment.map(Claim::UpTo),
            CaptureState::Filling => Some(Claim::Broken(Code::CAPTURE_FILLING)),
            CaptureState::Broken(code) => Some(Claim::Broken(code.clone())),
        };
        if let Some(claim) = claim.filter(|claim| self.tail.claimed.as_ref() != Some(claim)) {
            self.tail.claimed = Some(claim.clone());
            writes.push(LedgerWrite::Certify(claim));
        }
        self.stay(writes)
    }

    fn stay(self, writes: Vec<LedgerWrite>) -> Step<Phase> {
        Step { next: Phase::Tailing(self), writes }
    }
}

fn item(terms: &Terms, failed: Failed) -> NewItem {
    let again = failed.retryable && !exhausted(&terms.delivery, failed.attempts);
    NewItem {
        retry_in: again
            .then(|| terms.delivery.delay(failed.attempts.saturating_sub(1), failed.draw)),
        key: failed.key,
        version: failed.version,
        kind: failed.kind,
        attempts: failed.attempts,
        code: failed.code,
        reason: failed.reason,
    }
}
