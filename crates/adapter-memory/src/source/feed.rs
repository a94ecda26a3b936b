//! The feed of a source in memory: each key's newest number, and who reads it.
//!
//! Invariant: S3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{
    CaptureState, Change, ChangePage, Consumer, Feed, Pulsed, Registration, SourceView,
};
use truekeep_core::{Incarnation, Key, Moment, Place, Signature, Stamp, Version};

use super::MemorySource;

/// The feed and what records into it.
#[derive(Debug, Clone)]
pub(super) struct FeedState {
    pub(super) incarnation: Incarnation,
    pub(super) newest: u64,
    pub(super) pruned: u64,
    pub(super) rows: BTreeMap<Key, (u64, bool)>,
    pub(super) order: BTreeMap<u64, Key>,
    pub(super) consumers: BTreeMap<(String, String), Registration>,
    /// Whether changes are recorded.
    pub(super) recording: bool,
    /// Counts what was put in place of broken capture: the signature.
    pub(super) installs: u64,
    pub(super) trusted: Option<u64>,
    pub(super) fill: Option<Fill>,
    /// Records that a related row changed and that have no number for it yet.
    pub(super) marks: BTreeSet<Key>,
    /// By the first number that was drawn after a restore: what tells its numbers from those of the
    /// future that was lost.
    pub(super) futures: BTreeMap<u64, String>,
}

/// A fill under way: the rows, then the sweep over the feed.
#[derive(Debug, Clone)]
pub(super) struct Fill {
    pub(super) first: bool,
    pub(super) filled: u64,
    pub(super) sweeping: bool,
    pub(super) place: Option<Key>,
}

/// Numbers the feeds of the process: each is a life of its own.
static LIVES: AtomicU64 = AtomicU64::new(1);

impl FeedState {
    pub(super) fn new() -> Self {
        let life = LIVES.fetch_add(1, Ordering::Relaxed);
        Self {
            incarnation: Incarnation::parse(&format!("memory-{life}")).expect("visible ASCII"),
            newest: 0,
            pruned: 0,
            rows: BTreeMap::new(),
            order: BTreeMap::new(),
            consumers: BTreeMap::new(),
            recording: true,
            installs: 1,
            trusted: None,
            fill: Some(Fill { first: true, filled: 0, sweeping: false, place: None }),
            marks: BTreeSet::new(),
            futures: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, key: &Key, deleted: bool) {
        self.newest += 1;
        if let Some((before, _)) = self.rows.insert(key.clone(), (self.newest, deleted)) {
            self.order.remove(&before);
        }
        self.order.insert(self.newest, key.clone());
    }

    pub(super) fn state(&self) -> CaptureState {
        if self.fill.is_some() {
            CaptureState::Filling
        } else if !self.recording || self.trusted != Some(self.installs) {
            CaptureState::Broken(Code::CAPTURE_CHANGED)
        } else {
            let text = format!("memory-{}", self.installs);
            CaptureState::Trusted(Signature::parse(&text).expect("visible ASCII"))
        }
    }

    /// The place after a number.
    pub(super) fn place(&self, number: Version) -> Place {
        let future = self.futures.range(..=number.get()).next_back();
        let rest = future.map_or_else(String::new, |(_, future)| future.clone());
        Place { passed: Moment::at(number), rest }
    }

    pub(super) fn view(&self, consumer: &Consumer, at: &Place) -> SourceView {
        let newest = Moment::at(Version::new(self.newest));
        SourceView {
            incarnation: self.incarnation.clone(),
            continues: newest.includes(&at.passed) && self.place(at.passed.newest()) == *at,
            repairable: true,
            newest,
            pruned: Moment::at(Version::new(self.pruned)),
            registration: self.consumers.get(&identity(consumer)).cloned(),
            capture: self.state(),
        }
    }
}

fn identity(consumer: &Consumer) -> (String, String) {
    (consumer.ledger.as_str().to_owned(), consumer.pipeline.as_str().to_owned())
}

#[async_trait]
impl Feed for MemorySource {
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError> {
        Ok(self.lock().feed("look at the feed")?.view(consumer, at))
    }

    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        let mut state = self.lock();
        state.expand();
        let feed = state.feed("read the feed")?;
        let mut rows = feed.order.range(after.passed.next().max(1)..);
        let changes: Vec<Change> = rows
            .by_ref()
            .take(limit.max(1) as usize)
            .map(|(version, key)| Change {
                key: key.clone(),
                version: Version::new(*version),
                stamp: Stamp::new(*version),
                deleted: feed.rows[key].1,
            })
            .collect();
        let end = rows.next().is_none();
        let view = feed.view(consumer, after);
        Ok(ChangePage {
            next: changes.last().map_or_else(|| after.clone(), |last| feed.place(last.version)),
            moment: end.then(|| view.newest.clone()),
            changes,
            end,
            view,
        })
    }

    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        let mut state = self.lock();
        let feed = state.feed("look into the feed")?;
        let change = |key: &Key| {
            feed.rows.get(key).map(|&(version, deleted)| Change {
                key: key.clone(),
                version: Version::new(version),
                stamp: Stamp::new(version),
                deleted,
            })
        };
        Ok(keys.iter().map(change).collect())
    }

    async fn pending(&self) -> Result<bool, PortError> {
        Ok(!self.lock().feed("look into the feed")?.marks.is_empty())
    }

    async fn register(
        &self,
        consumer: &Consumer,
        registration: &Registration,
    ) -> Result<(), PortError> {
        let mut state = self.lock();
        let feed = state.feed("register a consumer")?;
        let who = identity(consumer);
        let next = Registration::after(feed.consumers.get(&who), registration)?;
        feed.consumers.insert(who, next);
        Ok(())
    }

    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError> {
        if let Some(feed) = self.lock().feed.as_mut() {
            feed.consumers.remove(&identity(consumer));
        }
        Ok(())
    }

    async fn prune(&self) -> Result<u64, PortError> {
        let mut state = self.lock();
        let feed = state.feed("prune the feed")?;
        let Some(passed) = feed.consumers.values().map(|r| r.passed.newest().get()).min() else {
            return Ok(0);
        };
        // Documents may be newer than a tombstone: what nothing recorded is told by it alone.
        if !matches!(feed.state(), CaptureState::Trusted(_)) {
            return Ok(0);
        }
        let tombstones: Vec<(u64, Key)> = feed
            .order
            .range(..=passed)
            .filter(|(_, key)| feed.rows[*key].1)
            .take(SOURCE_WRITE_ROWS_MAX as usize)
            .map(|(version, key)| (*version, key.clone()))
            .collect();
        for (version, key) in &tombstones {
            feed.order.remove(version);
            feed.rows.remove(key);
            feed.pruned = feed.pruned.max(*version);
        }
        Ok(tombstones.len() as u64)
    }

    async fn pulse(&self) -> Result<Pulsed, PortError> {
        Ok(Pulsed(self.lock().commits))
    }
}
