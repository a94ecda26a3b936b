//! Items: deliveries that did not go straight through.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::failure::PortError;
use crate::guard::{Guard, Lost};
use crate::{Attempt, Key, ScopeId, Timestamp, Version};

/// What a delivery that is not done yet wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The record's document.
    Upsert,
    /// Its absence.
    Delete,
}

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Never tried, or an operator wants it tried again.
    Pending,
    /// Being tried by the holder of a lease.
    Leased,
    /// Waits for its next try.
    Retry,
    /// Needs an operator or newer source data.
    Parked,
}

/// One record's delivery that did not go straight through. It has no rules number of its own: it
/// takes the scope's at delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Of which scope.
    pub scope: ScopeId,
    /// Which record.
    pub key: Key,
    /// The version whose delivery failed.
    pub version: Version,
    /// What it wants.
    pub kind: ItemKind,
    /// Where it is.
    pub state: ItemState,
    /// How often it was tried.
    pub attempts: Attempt,
    /// When it may be tried.
    pub due_at: Timestamp,
    /// Why it is an item.
    pub code: Code,
    /// The reason, bounded.
    pub reason: String,
    /// When it last changed.
    pub changed_at: Timestamp,
}

impl Item {
    /// Whether an operator has given it up. It stays parked, so that nothing is certified that the
    /// sink does not hold.
    pub fn is_discarded(&self) -> bool {
        self.state == ItemState::Parked && self.code == Code::DISCARDED
    }

    /// The code and the reason of the item, given up by this operator: what was wrong stays told.
    pub fn given_up(&self, by: &str) -> (Code, String) {
        (Code::DISCARDED, format!("given up {by}; {}: {}", self.code, self.reason))
    }
}

/// An item to be stored: replaces one of the same key unless that one has a greater version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    /// Which record.
    pub key: Key,
    /// The version whose delivery failed.
    pub version: Version,
    /// What it wants.
    pub kind: ItemKind,
    /// How often it was tried.
    pub attempts: Attempt,
    /// `Some(delay)`: in retry, due that long after the ledger's now. `None`: parked.
    pub retry_in: Option<Duration>,
    /// Why.
    pub code: Code,
    /// The reason; the ledger bounds it.
    pub reason: String,
}

/// A delivery that is done: removes the item of this key at or below this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Which record.
    pub key: Key,
    /// The version that the sink holds now.
    pub version: Version,
}

/// Which items to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFilter {
    /// All of them.
    All,
    /// Those that are parked and not given up.
    Parked,
    /// Those that are parked and given up.
    Discarded,
    /// Those that are pending, leased or in retry.
    Unsettled,
}

/// A place in a listing of items: the last key that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCursor(pub Key);

/// The answer to an operator's wish to try a record again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retried {
    /// It is pending, with no attempt counted; the certificate says so.
    Pending,
    /// It already was pending or in retry with a newer version: nothing changed.
    Unchanged,
    /// It is being tried right now, until then.
    Leased(Timestamp),
    /// There is no such item.
    Unknown,
}

/// Deliveries that did not go straight through.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Items: Debug + Send + Sync {
    /// Claims items that are due, oldest due first, at most `limit`, under the guard's lease, and
    /// counts an attempt for each.
    ///
    /// If an item was left leased by a claim that ended without settling it, such an item is
    /// claimed alone: what kills a worker is found without parking its neighbours.
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError>;

    /// Items of a scope in the byte order of their keys, at most `limit` (1 to 10,000).
    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError>;

    /// One item.
    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError>;

    /// Makes a parked item pending, on an operator's wish. In the same transaction the run's
    /// version moves, so that the worker sees it, and the certificate counts it as unsettled.
    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError>;

    /// Adds a pending item for a record that has none, on an operator's wish, likewise.
    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError>;
}
