//! Capture in memory: installed, filled, held against the table, removed.
//!
//! Invariant: S3 (a fill under way is told with every page, so no moment is taken for complete).

use std::collections::BTreeMap;

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{AuditPage, Capture, CaptureReport, FillProgress, Numbered};
use truekeep_core::{Key, Stamp, Version};

use super::feed::{FeedState, Fill};
use super::{MemorySource, Row, State, after, cloned, missing};

impl FeedState {
    /// Fills one page; returns whether the fill is complete.
    pub(super) fn fill(&mut self, rows: &BTreeMap<Key, Row>) -> bool {
        let Some(mut fill) = self.fill.take() else { return true };
        let page = SOURCE_WRITE_ROWS_MAX as usize;
        let from = fill.place.take();
        let last = if fill.sweeping {
            let keys: Vec<Key> = after(&self.rows, from.as_ref()).take(page).map(cloned).collect();
            for key in &keys {
                if !(rows.contains_key(key) || fill.first && self.rows[key].1) {
                    self.record(key, true);
                }
            }
            keys.last().cloned()
        } else {
            let keys: Vec<Key> = after(rows, from.as_ref()).take(page).map(cloned).collect();
            for key in &keys {
                if !fill.first || !self.rows.contains_key(key) {
                    self.record(key, false);
                }
            }
            fill.filled += keys.len() as u64;
            keys.last().cloned()
        };
        if last.is_none() && fill.sweeping {
            self.trusted = Some(self.installs);
            return true;
        }
        fill.sweeping |= last.is_none();
        fill.place = last;
        self.fill = Some(fill);
        false
    }
}

impl State {
    fn report(&self) -> CaptureReport {
        let Some(feed) = &self.feed else {
            return CaptureReport::without_feed(vec!["changes are not recorded".to_owned()]);
        };
        let tombstones = feed.rows.values().filter(|(_, deleted)| *deleted).count();
        CaptureReport {
            state: feed.state(),
            differences: if feed.recording {
                Vec::new()
            } else {
                vec!["changes are not recorded".to_owned()]
            },
            feed_rows: feed.rows.len() as u64,
            tombstones: tombstones as u64,
            newest: Version::new(feed.newest),
            consumers: feed.consumers.len() as u64,
        }
    }
}

#[async_trait]
impl Capture for MemorySource {
    async fn install(&self) -> Result<CaptureReport, PortError> {
        let mut state = self.lock();
        let feed = state.feed.get_or_insert_with(FeedState::new);
        if !feed.recording {
            feed.recording = true;
            feed.installs += 1;
            feed.fill = Some(Fill { first: false, filled: 0, sweeping: false, place: None });
        }
        Ok(state.report())
    }

    async fn fill(&self) -> Result<FillProgress, PortError> {
        let mut state = self.lock();
        let state = &mut *state;
        let feed = state.feed.as_mut().ok_or_else(|| missing("fill the feed"))?;
        let total = state.rows.len() as u64;
        let done = feed.fill(&state.rows);
        let filled = feed.fill.as_ref().map_or(total, |fill| fill.filled);
        Ok(FillProgress { filled, total, done })
    }

    async fn verify(&self) -> Result<CaptureReport, PortError> {
        Ok(self.lock().report())
    }

    async fn audit(&self, from: Option<Key>, limit: u32) -> Result<AuditPage, PortError> {
        let mut state = self.lock();
        let state = &mut *state;
        let feed = state.feed.as_ref().ok_or_else(|| missing("audit the feed"))?;
        let limit = limit.max(1) as usize;
        let mut keys: Vec<&Key> = after(&state.rows, from.as_ref())
            .map(|(key, _)| key)
            .take(limit + 1)
            .chain(after(&feed.rows, from.as_ref()).map(|(key, _)| key).take(limit + 1))
            .collect();
        keys.sort();
        keys.dedup();
        let more = keys.len() > limit;
        keys.truncate(limit);
        let mut page = AuditPage::default();
        for &key in &keys {
            let (there, row) = (state.rows.contains_key(key), feed.rows.get(key));
            page.seen += u64::from(there) + u64::from(row.is_some());
            match (there, row.is_some_and(|(_, deleted)| !deleted)) {
                (true, false) => page.missed.push(key.clone()),
                (false, true) => page.ghosts.push(key.clone()),
                _ => {}
            }
        }
        page.next = keys.last().filter(|_| more).map(|key| Key::clone(key));
        Ok(page)
    }

    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError> {
        let mut state = self.lock();
        let (foreign, ours): (Vec<_>, Vec<_>) =
            keys.iter().cloned().partition(|key| state.is_foreign(key));
        let State { rows, feed, commits, .. } = &mut *state;
        let feed = feed.as_mut().ok_or_else(|| missing("number keys"))?;
        for key in &ours {
            feed.record(key, !rows.contains_key(key));
        }
        *commits += 1;
        let newest = (!ours.is_empty()).then(|| Stamp::new(feed.newest));
        Ok(Numbered { newest, foreign })
    }

    async fn begin_again(&self, above: Version) -> Result<(), PortError> {
        let mut state = self.lock();
        let feed = state.feed("begin again")?;
        feed.newest = feed.newest.max(above.get());
        feed.fill = Some(Fill { first: false, filled: 0, sweeping: false, place: None });
        Ok(())
    }

    async fn remove(&self) -> Result<(), PortError> {
        self.lock().feed = None;
        Ok(())
    }
}
