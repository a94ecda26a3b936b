//! One scope on its way: takes the lease, turns, waits, gives the lease back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use truekeep_core::certificate::Tally;
use truekeep_core::code::Code;
use truekeep_core::follow::{Observation, Phase, Terms};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{Clock, Item, ProcedureKind, Pulsed, Registration, RunHealth};
use truekeep_core::{
    Attempt, BatchName, Key, LeaseToken, MarkNumber, Place, RunId, RunVersion, ScopeId, Timestamp,
};

use crate::keeper::{Grip, Keeper};
use crate::observer::{Happening, Observer};
use crate::perform::Performed;
use crate::pipeline::{Pipeline, Ports, Settings};
use crate::read_ahead::ReadAhead;
use crate::reconcile::{Beside, Differing, Pass, Scanner};
use crate::stop::Stop;
use crate::turn::Turn;

/// What is known while the lease is ours.
#[derive(Debug)]
pub(crate) struct Held {
    pub scope: ScopeId,
    pub procedure: ProcedureKind,
    pub lease: Lease,
    pub grip: Grip,
    /// What the run is to be told first: that the lease is ours, and whether the holder before
    /// died. Nothing else is due before it is told.
    pub took_over: Option<bool>,
    pub run: RunId,
    pub version: RunVersion,
    pub terms: Terms,
    pub phase: Phase,
    pub health: RunHealth,
    pub tally: Tally,
    /// When the ledger last said what time it is: its time, and ours.
    pub said: (Timestamp, Duration),
    pub reader: Option<ReadAhead>,
    pub batches: Batches,
    /// Rows of the next page: adapts to how long pages take.
    pub rows: u32,
    /// When the next item is due, if that was looked up since items last moved.
    pub items_checked: Option<Option<Timestamp>>,
    /// Whether the feed may hold what nobody needs.
    pub littered: bool,
    /// Records that were delivered since the feed was last pruned.
    pub unpruned: u64,
    /// Items that were claimed and of which nothing is known yet. Whatever is committed next gives
    /// them back uncounted, unless it says what became of them.
    pub claimed: Vec<Item>,
    /// The run of reconcile beside follow.
    pub beside: Option<Beside>,
    /// Whether the holder before died, until the run that is found beside follow was told.
    pub untold: Option<bool>,
    /// What that run delivers again by.
    pub scanner: Scanner,
    /// What that run compares by, where the sink lists in no order or late.
    pub pass: Option<Pass>,
    /// Records whose repair that run waits for, since its delivery is being tried.
    pub awaited: BTreeSet<Key>,
    /// What that run's first comparison did not find equal, as far as it is known.
    pub differing: Option<Differing>,
    /// Whether the next turn is the feed's even if items are due.
    pub feeds_turn: bool,
}

/// What this holder knows of the batches that the sink was sent, between two checkpoints.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batches {
    /// The newest number that was given to one.
    pub sent: MarkNumber,
    /// The newest that the sink is known to hold.
    pub taken: BatchName,
}

impl Batches {
    /// The number of the next batch, after a checkpoint at `confirmed`: no number is given twice,
    /// and none is of a later turn than the next, or else who takes over takes it for a ledger that
    /// went back. A sink that went back has its turns counted from what it holds.
    pub fn number(&mut self, confirmed: MarkNumber) -> MarkNumber {
        let first = confirmed.turn_after();
        let next = self.sent.next();
        self.sent = if next > confirmed.turn_after_last() { first } else { next.max(first) };
        self.sent
    }
}

impl Held {
    /// The ledger's time, as far as our own clock can tell.
    pub fn now(&self, clock: &dyn Clock) -> Timestamp {
        let (then, at) = self.said;
        then.plus(clock.monotonic().saturating_sub(at))
    }

    /// Whether items are due, as far as is known.
    pub fn items_due(&self, now: Timestamp) -> bool {
        let next = self.items_checked;
        self.tally.unsettled > 0 && next.is_none_or(|next| next.is_some_and(|due| due <= now))
    }

    /// What a port said, or else what the code means: a halt is never told without a reason.
    pub fn why_halted(&self, code: &Code) -> String {
        let said = &self.health.text;
        let meaning = || code.entry().map_or("", |entry| entry.meaning).to_owned();
        if said.is_empty() { meaning() } else { said.clone() }
    }

    pub fn cursor(&self) -> Option<&Place> {
        self.phase.tail().map(|tail| &tail.cursor)
    }
}

/// Why a scope stopped turning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Somebody asked to stop; the lease was given back.
    Stopped,
    /// Nothing was due any more (only when asked to end then).
    Drained,
    /// Somebody else has the lease (only when asked to end then).
    Held(truekeep_core::HolderId, Timestamp),
    /// An operator is needed (only when asked to end then).
    Halted(Code, String),
}

/// Drives one scope.
#[derive(Debug)]
pub(crate) struct Runner {
    pub ports: Ports,
    pub pipeline: Pipeline,
    pub settings: Arc<Settings>,
    pub keeper: Arc<Keeper>,
    pub observer: Arc<dyn Observer>,
    pub turns: Arc<Semaphore>,
    pub held: Option<Held>,
    /// The token that the lease was asked for with, and when, while no answer came.
    pub asked: Option<(LeaseToken, Duration)>,
    /// Failures since there was progress.
    pub failures: Attempt,
    /// The key of the run beside that was last opened by itself.
    pub opened: Option<String>,
    /// The source's change counter before the last turn.
    pub pulsed: Option<Pulsed>,
    /// When that counter was last seen to have moved.
    pub moved_at: Duration,
}

/// When a runner ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Somebody asks to stop.
    Stopped,
    /// Nothing is due, or nothing can be done.
    Drained,
}

impl Runner {
    /// Turns until it is time to end. The lease is given back at the end, also when the future is
    /// asked to stop in the middle of a wait.
    pub async fn run(mut self, until: Until, stop: Stop) -> Ending {
        let turns = Arc::clone(&self.turns);
        let ending = loop {
            let permit = tokio::select! {
                biased;
                () = stop.wait() => break Ending::Stopped,
                permit = turns.acquire() => permit,
            };
            let turn = self.guarded_turn().await;
            drop(permit);
            let given_up = self.failures >= self.settings.trouble.attempts_max;
            if until == Until::Drained
                && let Some(ending) = drained(&turn, given_up)
            {
                break ending;
            }
            self.wait(&turn, &stop).await;
        };
        self.give_back().await;
        ending
    }

    /// A turn that ends when the lease is lost. A lost lease is given back all the same: if only
    /// a race was lost and it is still ours, nobody has to wait for its end.
    async fn guarded_turn(&mut self) -> Turn {
        let Some(token) = self.held.as_ref().map(|held| held.lease.token.clone()) else {
            return self.acquire().await;
        };
        let keeper = Arc::clone(&self.keeper);
        let turn = keeper.while_ours(&token, self.turn()).await.unwrap_or(Turn::ClaimLost);
        if turn == Turn::ClaimLost {
            self.held = None;
            self.happened(&Happening::Lost);
            self.release(&token).await;
        }
        if let Turn::Inactive(code) = &turn {
            self.give_back().await;
            self.happened(&Happening::Inactive(code.clone()));
        }
        turn
    }

    pub(crate) fn happened(&self, what: &Happening) {
        self.observer.happened(&self.pipeline.scope, what);
    }

    /// Gives the lease back, if there is one.
    pub(crate) async fn give_back(&mut self) {
        if let Some(mut held) = self.held.take() {
            let token = held.lease.token.clone();
            let keeper = Arc::clone(&self.keeper);
            keeper.while_ours(&token, self.acknowledge(&mut held)).await;
            drop(held);
            self.release(&token).await;
            self.happened(&Happening::Released);
        }
    }

    /// Tells the source how far we are, so that a backup of it that is taken next is recognised
    /// when it comes back (F2). What fails here is told with the next acknowledgement.
    async fn acknowledge(&self, held: &mut Held) {
        let Phase::Tailing(tailing) = &held.phase else { return };
        let tail = &tailing.tail;
        if tail.registered.passed.includes(&tail.cursor.passed) || held.took_over.is_some() {
            return;
        }
        let counter = tail.registered.counter.next();
        let registration = Registration { counter, passed: tail.cursor.passed.clone() };
        if self.pipeline.feed.register(&held.terms.consumer, &registration).await.is_ok() {
            let told = Performed::fact(Observation::Registered(registration));
            if let Err(error) = self.conclude(held, told.ailing(held.health.clone())).await {
                tracing::warn!(code = %error.code, error = error.chain(), "acknowledge");
            }
        }
    }

    pub(crate) async fn release(&self, token: &LeaseToken) {
        if let Err(error) = self.ports.leases.release(&self.pipeline.scope, token).await {
            // It ends by itself.
            tracing::warn!(code = %error.code, error = error.chain(), "release");
        }
    }

    /// Waits as long as the turn says, and less if something stirs.
    async fn wait(&mut self, turn: &Turn, stop: &Stop) {
        let length = match turn {
            Turn::Advanced => return,
            Turn::ClaimLost | Turn::Deferred => self.settings.poll_every,
            Turn::Inactive(_) => self.settings.idle_every,
            Turn::HeldBy(_, _, left) => (*left).min(self.settings.idle_every),
            Turn::NotDue => return self.wait_for_change(stop).await,
            // Whoever has the lease looks meanwhile what an operator wants.
            Turn::Halted(_, _, left) if self.held.is_some() => {
                (*left).min(self.settings.idle_every)
            }
            Turn::Halted(_, _, left) => *left,
            Turn::Retry { again_in, .. } => return self.wait_for_next_try(*again_in, stop).await,
        };
        self.wait_or_stop(length, stop).await;
    }

    /// Whether it waited to the end.
    async fn wait_or_stop(&self, length: Duration, stop: &Stop) -> bool {
        tokio::select! {
            biased;
            () = stop.wait() => false,
            () = self.lease_lost() => false,
            () = self.ports.clock.sleep(length) => true,
        }
    }

    /// A next try may be minutes away; an operator is not kept waiting for it.
    async fn wait_for_next_try(&self, length: Duration, stop: &Stop) {
        let began = self.ports.clock.monotonic();
        loop {
            let waited = self.ports.clock.monotonic().saturating_sub(began);
            let left = length.saturating_sub(waited).min(self.settings.idle_every);
            let over = left.is_zero() || !self.wait_or_stop(left, stop).await;
            if over || self.wanted().await {
                return;
            }
        }
    }

    /// Whether an operator wants something of a scope that waits. A ledger in trouble says nothing.
    async fn wanted(&self) -> bool {
        let Some(held) = &self.held else { return false };
        match self.ports.ledger.pulse(&held.scope, held.procedure).await {
            Ok(Some(pulse)) => {
                let same = (pulse.run_version, pulse.rules) == (held.version, held.terms.rules);
                pulse.paused || !same
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }

    async fn lease_lost(&self) {
        match &self.held {
            Some(held) => self.keeper.lost(&held.lease.token).await,
            None => std::future::pending().await,
        }
    }

    /// An idle scope looks at the source's change counter often, and at everything now and then.
    /// The counter is read before the turn that follows, so that what commits during the turn is
    /// seen after it. What a burst left behind in the feed goes while nothing comes, a call at a time.
    async fn wait_for_change(&mut self, stop: &Stop) {
        let began = self.ports.clock.monotonic();
        let mut tidies = true;
        let feed = Arc::clone(&self.pipeline.feed);
        let mut stirred = feed.stirred();
        loop {
            let pulsed = feed.pulse().await.ok();
            let changed = pulsed != self.pulsed;
            self.pulsed = pulsed;
            let now = self.ports.clock.monotonic();
            if changed {
                self.moved_at = now;
            }
            if changed || now.saturating_sub(began) >= self.settings.idle_every {
                return;
            }
            let pause = self.settings.look_again_in(now.saturating_sub(self.moved_at));
            if tidies && pause == self.settings.poll_every {
                tidies = self.tidy(stop).await;
            }
            tokio::select! {
                biased;
                () = stop.wait() => return,
                () = self.lease_lost() => return,
                () = &mut stirred => stirred = feed.stirred(),
                () = self.ports.clock.sleep(pause) => {}
            }
        }
    }

    /// Prunes a little, if there may be something; whether that went well.
    async fn tidy(&mut self, stop: &Stop) -> bool {
        let Some(held) = &self.held else { return false };
        if !held.littered || !matches!(held.phase, Phase::Tailing(_)) {
            return false;
        }
        let left = tokio::select! {
            biased;
            () = stop.wait() => return false,
            () = self.lease_lost() => return false,
            left = self.prune_once() => left,
        };
        if let (Some(held), Some(left)) = (&mut self.held, left) {
            held.littered = left;
        }
        left.is_some()
    }
}

/// Whether a turn ends a runner that was asked to end when nothing is due.
fn drained(turn: &Turn, given_up: bool) -> Option<Ending> {
    match turn {
        Turn::NotDue => Some(Ending::Drained),
        Turn::HeldBy(holder, until, _) => Some(Ending::Held(holder.clone(), *until)),
        Turn::Halted(code, text, _) => Some(Ending::Halted(code.clone(), text.clone())),
        Turn::Inactive(code) => Some(Ending::Halted(code.clone(), String::new())),
        Turn::Retry { code, text, .. } if given_up => {
            Some(Ending::Halted(code.clone(), text.clone()))
        }
        Turn::Advanced | Turn::Deferred | Turn::ClaimLost | Turn::Retry { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F2: a batch of a turn that the ledger does not expect looks like a ledger that went back.
    #[test]
    fn batches_are_of_the_turn_after_the_last_checkpoint_even_once_the_sink_went_back() {
        let start = MarkNumber::new(0);
        let (mut batches, mut confirmed) = (Batches::default(), start);
        for _ in 0..3 {
            let first = batches.number(confirmed);
            let second = batches.number(confirmed);
            assert_eq!((first, second), (confirmed.turn_after(), first.next()));
            confirmed = second;
        }
        assert_eq!(batches.number(start), start.turn_after(), "the sink was emptied");
    }
}
