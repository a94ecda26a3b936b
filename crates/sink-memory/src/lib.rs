//! The reference sink, in memory: what every other sink is held against.
//!
//! Invariant: P3. Tombstones are kept for ever, and a batch, its tombstones and its mark are one
//! change under one lock.

mod generations;
mod manner;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Applied, Batch, Body, Capabilities, Confirmation, Delivery, Entry, Listing, Mark, Memory,
    Outcome, Receipt, Sink, Verdict,
};
use truekeep_core::{Document, Key, Rank, Value, same_json};

pub use generations::MemoryGenerations;
pub use manner::{Elapsed, Manner, Recent};

/// A live record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its rank; `None` if somebody else wrote it.
    pub rank: Option<Rank>,
    /// Its document.
    pub document: Arc<Document>,
}

#[derive(Debug, Clone, Default)]
struct State {
    live: BTreeMap<Key, Held>,
    tombstones: BTreeMap<Key, Rank>,
    mark: Option<Mark>,
    recent: Recent,
}

/// A sink that forgets nothing while it lives.
#[derive(Debug, Default)]
pub struct MemorySink {
    state: Mutex<State>,
    manner: Manner,
}

impl MemorySink {
    /// An empty sink that nobody has written.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty sink that lists like this.
    pub fn listing(manner: Manner) -> Self {
        Self { manner, ..Self::default() }
    }

    /// The live records.
    pub fn contents(&self) -> BTreeMap<Key, Held> {
        self.state().live.clone()
    }

    /// The deletions it remembers.
    pub fn tombstones(&self) -> BTreeMap<Key, Rank> {
        self.state().tombstones.clone()
    }

    /// Puts a record there past the port, as somebody else's program or a fault would.
    pub fn plant(&self, key: Key, held: Held) {
        self.state().live.insert(key, held);
    }

    /// Loses a record past the port, without a tombstone.
    pub fn lose(&self, key: &Key) {
        self.state().live.remove(key);
    }

    /// A sink of its own that holds the same, as a backup does.
    pub fn backup(&self) -> Self {
        Self { state: Mutex::new(self.state().clone()), manner: self.manner.clone() }
    }

    /// Puts everything back to what the backup holds, mark included, under whoever has it open.
    pub fn restore(&self, backup: &Self) {
        let state = backup.state().clone();
        *self.state() = state;
    }

    /// A change is made whole or panics before it begins, so a poisoned lock guards a sound state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two documents say the same.
fn same(one: &Document, other: &Document) -> bool {
    let same = |(one, other): (&Value, &Value)| match (one, other) {
        (Value::Json(one), Value::Json(other)) => same_json(one.as_bytes(), other.as_bytes()),
        _ => one == other,
    };
    one.names() == other.names() && one.values().iter().zip(other.values()).all(same)
}

impl State {
    fn holds(&self, delivery: &Delivery) -> bool {
        match (&delivery.body, self.live.get(&delivery.key)) {
            (Body::Delete, held) => held.is_none(),
            (Body::Upsert(_), None) => false,
            (Body::Upsert(document), Some(held)) => {
                held.rank == Some(delivery.rank) && same(&held.document, document)
            }
        }
    }

    fn deliver(&mut self, delivery: Delivery, manner: &Manner) -> Outcome {
        let Delivery { key, rank, body } = delivery;
        let live = self.live.get(&key).map(|held| held.rank);
        let held = live.flatten().max(self.tombstones.get(&key).copied());
        let verdict = Verdict::of(rank, held);
        if !matches!(verdict, Verdict::Keep(_)) {
            manner.note(&mut self.recent, &key, live);
        }
        match (verdict, body) {
            (Verdict::Keep(_), _) => {}
            (Verdict::Write | Verdict::Rewrite, Body::Upsert(document)) => {
                self.tombstones.remove(&key);
                self.live.insert(key, Held { rank: Some(rank), document });
            }
            (Verdict::Write | Verdict::Rewrite, Body::Delete) => {
                self.live.remove(&key);
                self.tombstones.insert(key, rank);
            }
        }
        verdict.outcome()
    }
}

#[async_trait]
impl Sink for MemorySink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            versioned_writes: true,
            versioned_deletes: true,
            remembers_deletes: Memory::Forever,
            fenced_writes: true,
            ordered_listing: !self.manner.scattered,
            marked: true,
            listing_lag: self.manner.lag(),
            verifies: true,
        }
    }

    async fn prepare(&self) -> Result<(), PortError> {
        Ok(())
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        Ok(self.state().mark.clone())
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        let mut state = self.state();
        let mark = Mark::after(state.mark.as_ref(), &batch.mark, batch.follows)?;
        let (receipt, removed) = (Receipt(mark.number.get()), mark.removed);
        state.mark = Some(mark);
        let outcomes = batch
            .deliveries
            .into_iter()
            .map(|delivery| state.deliver(delivery, &self.manner))
            .collect();
        if removed {
            state.tombstones.clear();
        }
        Ok(Applied { outcomes, receipt })
    }

    async fn confirm(&self, _receipt: &Receipt) -> Result<Confirmation, PortError> {
        Ok(Confirmation::Confirmed)
    }

    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let state = self.state();
        if !self.manner.is_plain() {
            let live = state.live.iter().map(|(key, held)| (key.clone(), held.rank));
            return Ok(self.manner.list(live, &state.recent, after.as_ref(), limit));
        }
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = state.live.range((from, Bound::Unbounded));
        let entries: Vec<Entry> = rest
            .by_ref()
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .map(|(key, held)| Entry { key: key.clone(), rank: held.rank })
            .collect();
        Ok(Listing { end: rest.next().is_none(), entries })
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        let state = self.state();
        Ok(deliveries.iter().map(|delivery| state.holds(delivery)).collect())
    }
}
