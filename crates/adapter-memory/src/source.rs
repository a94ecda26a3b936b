//! The source in memory: the reference that other sources are held against.
//!
//! Invariants: S1 (documents are read under the lock that versions are given under), S3 (a page
//! names a moment only if it reached the end). S2 is void: memory has nothing to make durable.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::{Key, Version};

mod capture;
mod feed;
mod records;

use feed::FeedState;

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

    /// Changes a row past capture, as a session with triggers off does; `None` deletes it.
    pub fn pass_by(&self, key: &Key, text: Option<&str>) {
        let mut state = self.lock();
        state.commits += 1;
        match text {
            Some(text) => state.rows.insert(key.clone(), Row::Text(text.into())),
            None => state.rows.remove(key),
        };
    }

    /// The feed: each key's newest version, and whether it is a tombstone.
    pub fn feed(&self) -> BTreeMap<Key, (Version, bool)> {
        let state = self.lock();
        let rows = state.feed.iter().flat_map(|feed| &feed.rows);
        rows.map(|(key, (version, deleted))| (key.clone(), (Version::new(*version), *deleted)))
            .collect()
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
        if let Some(feed) = &mut state.feed {
            feed.futures.insert(feed.newest + 1, commits.to_string());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests;
