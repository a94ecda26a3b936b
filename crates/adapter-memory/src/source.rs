//! The source in memory: the reference that other sources are held against.
//!
//! Invariants: S1 (documents are read under the lock that versions are given under), S3 (a page
//! names a moment only if it reached the end). S2 is void: memory has nothing to make durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{
    AuditPage, Capture, CaptureReport, CaptureState, Change, ChangePage, Consumer, Feed,
    FillProgress, KeyPage, Loaded, Numbered, Pulsed, Records, Registration, SourceView,
};
use truekeep_core::{Document, Incarnation, Key, Moment, Place, Signature, Stamp, Value, Version};

mod capture;

/// A table of texts with its feed. Clones share it.
#[derive(Debug, Clone)]
pub struct MemorySource {
    state: Arc<Mutex<State>>,
    names: Arc<[Box<str>]>,
}

/// Everything a source holds at one point: what a backup keeps.
#[derive(Debug, Clone)]
pub struct MemoryBackup(State);

#[derive(Debug, Clone, Default)]
struct State {
    rows: BTreeMap<Key, Row>,
    feed: Option<FeedState>,
    commits: u64,
    /// No record has a key that begins with it.
    foreign: Option<Box<str>>,
}

#[derive(Debug, Clone)]
enum Row {
    Text(Box<str>),
    Unloadable(Code, String),
}

/// The feed and what records into it.
#[derive(Debug, Clone)]
struct FeedState {
    incarnation: Incarnation,
    newest: u64,
    pruned: u64,
    rows: BTreeMap<Key, (u64, bool)>,
    order: BTreeMap<u64, Key>,
    consumers: BTreeMap<(String, String), Registration>,
    /// Whether changes are recorded.
    recording: bool,
    /// Counts what was put in place of broken capture: the signature.
    installs: u64,
    trusted: Option<u64>,
    fill: Option<Fill>,
    /// Records that a related row changed and that have no number for it yet.
    marks: BTreeSet<Key>,
}

/// A fill under way: the rows, then the sweep over the feed.
#[derive(Debug, Clone)]
struct Fill {
    first: bool,
    filled: u64,
    sweeping: bool,
    place: Option<Key>,
}

/// Numbers the feeds of the process: each is a life of its own.
static LIVES: AtomicU64 = AtomicU64::new(1);

impl FeedState {
    fn new() -> Self {
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
        }
    }

    fn record(&mut self, key: &Key, deleted: bool) {
        self.newest += 1;
        if let Some((before, _)) = self.rows.insert(key.clone(), (self.newest, deleted)) {
            self.order.remove(&before);
        }
        self.order.insert(self.newest, key.clone());
    }

    fn state(&self) -> CaptureState {
        if self.fill.is_some() {
            CaptureState::Filling
        } else if !self.recording || self.trusted != Some(self.installs) {
            CaptureState::Broken(Code::CAPTURE_CHANGED)
        } else {
            let text = format!("memory-{}", self.installs);
            CaptureState::Trusted(Signature::parse(&text).expect("visible ASCII"))
        }
    }

    fn view(&self, consumer: &Consumer, at: &Place) -> SourceView {
        let newest = Moment::at(Version::new(self.newest));
        SourceView {
            incarnation: self.incarnation.clone(),
            continues: newest.includes(&at.passed),
            newest,
            pruned: Moment::at(Version::new(self.pruned)),
            registration: self.consumers.get(&identity(consumer)).cloned(),
            capture: self.state(),
        }
    }
}

fn after<'a, T>(
    map: &'a BTreeMap<Key, T>,
    place: Option<&Key>,
) -> std::collections::btree_map::Range<'a, Key, T> {
    let low = place.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
    map.range((low, Bound::Unbounded))
}

fn cloned<T>((key, _): (&Key, T)) -> Key {
    key.clone()
}

fn identity(consumer: &Consumer) -> (String, String) {
    (consumer.ledger.as_str().to_owned(), consumer.pipeline.as_str().to_owned())
}

fn missing(operation: &'static str) -> PortError {
    PortError::new(operation, FailureClass::Halted, Code::CAPTURE_MISSING)
}

impl State {
    fn feed(&mut self, operation: &'static str) -> Result<&mut FeedState, PortError> {
        self.feed.as_mut().ok_or_else(|| missing(operation))
    }

    fn is_foreign(&self, key: &Key) -> bool {
        self.foreign.as_ref().is_some_and(|prefix| key.as_str().starts_with(&**prefix))
    }

    /// Gives what was marked its numbers.
    fn expand(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        for key in std::mem::take(&mut feed.marks) {
            feed.record(&key, !self.rows.contains_key(&key));
        }
    }

    fn changed(&mut self, key: &Key) {
        self.commits += 1;
        let deleted = !self.rows.contains_key(key);
        if let Some(feed) = self.feed.as_mut().filter(|feed| feed.recording) {
            feed.record(key, deleted);
        }
    }
}

impl Default for MemorySource {
    fn default() -> Self {
        Self { state: Arc::default(), names: [Box::from("text")].into() }
    }
}

impl MemorySource {
    /// An empty table without capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table whose changes are recorded from the start.
    pub fn captured() -> Self {
        let source = Self::default();
        {
            let mut state = source.lock();
            let mut feed = FeedState::new();
            while !feed.fill(&BTreeMap::new()) {}
            state.feed = Some(feed);
        }
        source
    }

    /// Inserts or updates a row.
    pub fn put(&self, key: &Key, text: &str) {
        let mut state = self.lock();
        state.rows.insert(key.clone(), Row::Text(text.into()));
        state.changed(key);
    }

    /// Inserts or updates a row whose document cannot be made.
    pub fn put_unloadable(&self, key: &Key, code: Code, reason: &str) {
        let mut state = self.lock();
        state.rows.insert(key.clone(), Row::Unloadable(code, reason.to_owned()));
        state.changed(key);
    }

    /// Deletes a row; does nothing if it is not there.
    pub fn delete(&self, key: &Key) {
        let mut state = self.lock();
        if state.rows.remove(key).is_some() {
            state.changed(key);
        }
    }

    /// Updates a row as a change of a related table does: its document is another one at once, and
    /// its number comes when marks are expanded.
    pub fn put_by_relation(&self, key: &Key, text: &str) {
        let mut state = self.lock();
        state.rows.insert(key.clone(), Row::Text(text.into()));
        state.commits += 1;
        if let Some(feed) = state.feed.as_mut().filter(|feed| feed.recording) {
            feed.marks.insert(key.clone());
        }
    }

    /// Declares that no record has a key that begins with this.
    pub fn declare_foreign(&self, prefix: &str) {
        self.lock().foreign = Some(prefix.into());
    }

    /// The text of every row.
    pub fn rows(&self) -> BTreeMap<Key, String> {
        let state = self.lock();
        let text = |row: &Row| match row {
            Row::Text(text) => text.to_string(),
            Row::Unloadable(_, reason) => reason.clone(),
        };
        state.rows.iter().map(|(key, row)| (key.clone(), text(row))).collect()
    }

    /// Stops recording changes, as a dropped trigger does.
    pub fn break_capture(&self) {
        if let Some(feed) = self.lock().feed.as_mut() {
            feed.recording = false;
        }
    }

    /// Copies everything.
    pub fn backup(&self) -> MemoryBackup {
        MemoryBackup(self.lock().clone())
    }

    /// Puts everything back as it was at a backup.
    pub fn restore(&self, backup: &MemoryBackup) {
        let mut state = self.lock();
        let commits = state.commits + 1;
        *state = State { commits, ..backup.0.clone() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    fn loaded(&self, row: Option<&Row>) -> Loaded {
        match row {
            None => Loaded::Absent,
            Some(Row::Unloadable(code, reason)) => Loaded::Unloadable(code.clone(), reason.clone()),
            Some(Row::Text(text)) => {
                Loaded::Live(Document::new(self.names.clone(), vec![Value::Text(text.clone())]))
            }
        }
    }
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
            next: changes.last().map_or_else(|| after.clone(), |last| Place::at(last.version)),
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
        let held = feed.consumers.entry(identity(consumer)).or_insert_with(|| registration.clone());
        held.counter = held.counter.max(registration.counter);
        held.passed = std::mem::take(&mut held.passed).or_later(registration.passed.clone());
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

#[async_trait]
impl Records for MemorySource {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        let state = self.lock();
        let mut all = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let loaded = self.loaded(state.rows.get(key));
            if let Loaded::Live(document) = &loaded {
                bytes += document.bytes();
                if bytes > bytes_max && !all.is_empty() {
                    break;
                }
            }
            all.push(loaded);
        }
        Ok(all)
    }

    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        let state = self.lock();
        Ok(keys.iter().map(|key| !state.is_foreign(key)).collect())
    }

    async fn keys(&self, from: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        let mut state = self.lock();
        let state = &mut *state;
        let feed = state.feed.as_ref().ok_or_else(|| missing("list keys"))?;
        let mut rest = after(&feed.rows, from.as_ref());
        let looked: Vec<_> = rest.by_ref().take(limit.max(1) as usize).collect();
        let next = looked.last().filter(|_| rest.next().is_some()).map(|(key, _)| Key::clone(key));
        let keys = looked
            .into_iter()
            .filter(|(key, (_, deleted))| !deleted && state.rows.contains_key(*key))
            .map(|(key, row)| (key.clone(), Version::new(row.0)))
            .collect();
        Ok(KeyPage { keys, next })
    }
}

#[cfg(test)]
mod tests;
