//! A sink with the abilities it is told to have: with and without fences, memory of deletions, marks
//! and order, with listings and confirmations that come late.
//!
//! Invariant: P3. What it refuses it refuses by what a record's text says of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Applied, Batch, Body, Confirmation, Delivery, Listing, Mark, Memory, Outcome, Receipt, Verdict,
};
use truekeep_core::{Document, Key, Rank, Value};
use truekeep_sink_memory::{Elapsed, Manner, Recent};

use crate::plan::{Poison, SinkPlan};
use crate::poison;
use crate::seed::Stream;
use crate::time::Time;

/// A live record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// None if somebody else wrote it.
    pub rank: Option<Rank>,
    pub text: String,
    /// The rules' fingerprint it was made under.
    pub made_by: String,
}

impl Record {
    pub fn of(rank: Rank, document: &Document) -> Self {
        let value = |index: usize| match document.values().get(index) {
            Some(Value::Text(text)) => text.to_string(),
            other => format!("{other:?}"),
        };
        Self { rank: Some(rank), text: value(0), made_by: value(1) }
    }
}

/// Everything a sink holds; a clone is a backup.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub live: BTreeMap<Key, Record>,
    /// Deletions that are remembered, and when they were made.
    pub tombstones: BTreeMap<Key, (Rank, Duration)>,
    pub mark: Option<Mark>,
}

#[derive(Debug)]
struct State {
    now: Contents,
    /// What survives a crash.
    durable: Contents,
    /// Batches that are not confirmed yet, and what the sink was after each.
    waiting: VecDeque<(u64, Duration, Contents)>,
    receipts: u64,
    /// Batches up to this receipt that are not waiting any more were confirmed, or lost.
    lost: Vec<u64>,
    /// What does not show yet in a listing.
    recent: Recent,
    draws: Stream,
}

/// A sink.
#[derive(Debug)]
pub(crate) struct ModelSink {
    pub plan: SinkPlan,
    time: Time,
    manner: Manner,
    /// Until when records that are put off are.
    healthy_from: Mutex<Option<Duration>>,
    state: Mutex<State>,
}

impl ModelSink {
    pub fn new(plan: SinkPlan, time: Time, draws: Stream) -> Self {
        let state = State {
            now: Contents::default(),
            durable: Contents::default(),
            waiting: VecDeque::new(),
            receipts: 0,
            lost: Vec::new(),
            recent: Recent::new(),
            draws,
        };
        let clock = time.clone();
        let lag = Some(plan.able.listing_lag).filter(|lag| !lag.is_zero());
        let manner = Manner {
            scattered: !plan.able.ordered_listing,
            repeats: plan.repeats,
            lag: lag.map(|lag| (lag, Arc::new(move || clock.now()) as Elapsed)),
        };
        Self { plan, time, manner, healthy_from: Mutex::default(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.time.now();
        while state.waiting.front().is_some_and(|(_, due, _)| *due <= now) {
            if let Some((_, _, contents)) = state.waiting.pop_front() {
                state.durable = contents;
            }
        }
        state
    }

    /// What readers of the sink see.
    pub fn contents(&self) -> Contents {
        self.state().now.clone()
    }

    /// From now on nothing is put off any more.
    pub fn heal(&self) {
        *self.healthy_from.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.time.now());
    }

    fn puts_off(&self) -> bool {
        self.healthy_from.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Puts contents in place of what it holds: a backup, or what somebody else wrote.
    pub fn replace(&self, contents: Contents) {
        let mut state = self.state();
        let lost: Vec<u64> = state.waiting.drain(..).map(|(receipt, _, _)| receipt).collect();
        state.lost.extend(lost);
        state.recent.clear();
        state.now = contents.clone();
        state.durable = contents;
    }

    /// Somebody else's program writes or deletes.
    pub fn meddle(&self, key: &Key, record: Option<Record>) {
        let mut state = self.state();
        let State { now, durable, waiting, recent, .. } = &mut *state;
        self.manner.note(recent, key, now.live.get(key).map(|record| record.rank));
        let all = [now, durable].into_iter().chain(waiting.iter_mut().map(|(_, _, c)| c));
        for contents in all {
            match &record {
                Some(record) => contents.live.insert(key.clone(), record.clone()),
                None => contents.live.remove(key),
            };
        }
    }

    /// Stops at once and starts again: what was not confirmed is lost.
    pub fn crash(&self) -> usize {
        let durable = self.state().durable.clone();
        let waiting = self.state().waiting.len();
        self.replace(durable);
        waiting
    }

    pub fn mark(&self) -> Option<Mark> {
        self.state().durable.mark.clone().filter(|_| self.plan.able.marked)
    }

    pub fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        let puts_off = self.puts_off();
        let now = self.time.now();
        let mut state = self.state();
        let held = state.now.mark.as_ref();
        let fence = held.map_or(batch.mark.fence, |held| held.fence.max(batch.mark.fence));
        // A sink without fences takes whatever comes, and keeps the greatest that came.
        let sent = match self.plan.able.fenced_writes {
            true => batch.mark.clone(),
            false => Mark { fence, ..batch.mark.clone() },
        };
        let mark = Mark::after(held, &sent, batch.follows)?;
        if batch.deliveries.iter().any(|one| poisoned(one) == Some(Poison::RefusesBatch)) {
            let error = PortError::new("write", FailureClass::Terminal, Code::SINK_REFUSED);
            return Err(error.detail("a record of the batch"));
        }
        state.now.mark = Some(mark);
        let remembers = self.plan.able.remembers_deletes;
        let outcomes = batch.deliveries.into_iter();
        let outcomes = outcomes.map(|one| match poisoned(&one) {
            Some(Poison::Refused) => Outcome::Refused(Code::SINK_REFUSED, "poisoned".into()),
            Some(Poison::PutOff) if puts_off => {
                Outcome::Retry(Code::SINK_UNAVAILABLE, "not now".into())
            }
            _ => {
                let (key, State { now: contents, recent, .. }) = (one.key.clone(), &mut *state);
                let before = contents.live.get(&key).map(|record| record.rank);
                let outcome = contents.deliver(one, remembers, now);
                if outcome == Outcome::Applied {
                    self.manner.note(recent, &key, before);
                }
                outcome
            }
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        Ok(Applied { outcomes, receipt: Receipt(self.receipt(&mut state)) })
    }

    fn receipt(&self, state: &mut State) -> u64 {
        state.receipts += 1;
        let after = match self.plan.confirms_ms_max {
            0 => Duration::ZERO,
            most => state.draws.ms(0, most),
        };
        // Batches become durable in their order.
        let last = state.waiting.back().map_or(Duration::ZERO, |(_, due, _)| *due);
        let due = (self.time.now() + after).max(last);
        let contents = state.now.clone();
        if after.is_zero() && state.waiting.is_empty() {
            state.durable = contents;
        } else {
            let receipt = state.receipts;
            state.waiting.push_back((receipt, due, contents));
        }
        state.receipts
    }

    pub fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError> {
        let state = self.state();
        if state.lost.contains(&receipt.0) {
            let error = PortError::new("confirm", FailureClass::Retry, Code::SINK_UNAVAILABLE);
            return Err(error.detail("the batch was lost"));
        }
        let waits = state.waiting.iter().any(|(waiting, _, _)| *waiting == receipt.0);
        Ok(if waits { Confirmation::Pending } else { Confirmation::Confirmed })
    }

    pub fn verify(&self, deliveries: &[Delivery]) -> Vec<bool> {
        let state = self.state();
        let holds = |one: &Delivery| match &one.body {
            Body::Upsert(document) => {
                state.now.live.get(&one.key) == Some(&Record::of(one.rank, document))
            }
            Body::Delete => !state.now.live.contains_key(&one.key),
        };
        deliveries.iter().map(holds).collect()
    }

    pub fn list(&self, after: Option<&Key>, limit: u32) -> Listing {
        let state = self.state();
        let live = state.now.live.iter().map(|(key, record)| (key.clone(), record.rank));
        self.manner.list(live, &state.recent, after, limit)
    }
}

impl Contents {
    fn deliver(&mut self, delivery: Delivery, remembers: Memory, now: Duration) -> Outcome {
        let Delivery { key, rank, body } = delivery;
        let live = self.live.get(&key).and_then(|record| record.rank);
        let deleted = self.tombstones.get(&key).filter(|(_, at)| match remembers {
            Memory::Forever => true,
            Memory::For(length) => now.saturating_sub(*at) <= length,
            Memory::None => false,
        });
        let verdict = Verdict::of(rank, live.max(deleted.map(|(rank, _)| *rank)));
        match (verdict, body) {
            (Verdict::Keep(_), _) => {}
            (Verdict::Write | Verdict::Rewrite, Body::Upsert(document)) => {
                self.tombstones.remove(&key);
                self.live.insert(key, Record::of(rank, &document));
            }
            (Verdict::Write | Verdict::Rewrite, Body::Delete) => {
                self.live.remove(&key);
                self.tombstones.insert(key, (rank, now));
            }
        }
        verdict.outcome()
    }
}

/// What is wrong with a delivery, by its text.
pub(crate) fn poisoned(delivery: &Delivery) -> Option<Poison> {
    match &delivery.body {
        Body::Upsert(document) => match document.values().first() {
            Some(Value::Text(text)) => poison::of(text),
            _ => None,
        },
        Body::Delete => None,
    }
}
