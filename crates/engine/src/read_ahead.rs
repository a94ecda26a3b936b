//! Read-ahead: the next page is read while the sink works on this one.
//!
//! Ordering (S1, S3): a page's changes are read before its documents, and pages are handed out in
//! the order of the feed, so that a page's moment counts only once all before it are delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Change, ChangePage, Consumer, Feed, Loaded, Records};
use truekeep_core::{Key, Place};

/// A part of a page.
#[derive(Debug)]
pub(crate) enum Part {
    /// The page without its changes: its place, end, moment and view.
    Head(Box<ChangePage>),
    /// Records of the page, as many as fit in a batch.
    Rows(Vec<(Change, Loaded)>),
    /// The page is whole.
    Whole,
}

/// What is read, and how much at once.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub feed: Arc<dyn Feed>,
    pub records: Arc<dyn Records>,
    pub consumer: Consumer,
    pub bytes_max: usize,
    /// Whether to read on while a page is worked on; else one page is read.
    pub ahead: bool,
}

impl Reading {
    /// The documents of the first of these keys, as many as fit in a batch, at least one.
    ///
    /// # Errors
    /// Also if the source answers for none.
    pub async fn load(&self, keys: &[Key]) -> Result<Vec<Loaded>, PortError> {
        let loaded = self.records.load(keys, self.bytes_max).await?;
        if loaded.is_empty() || loaded.len() > keys.len() {
            return Err(PortError::new("load documents", FailureClass::Unknown, Code::UNEXPECTED)
                .detail(format!("{} answers for {} records", loaded.len(), keys.len())));
        }
        Ok(loaded)
    }
}

/// A reader on its way through the feed.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    parts: mpsc::Receiver<Result<Part, PortError>>,
    task: JoinHandle<()>,
    rows: Arc<AtomicU32>,
    next: Place,
}

impl ReadAhead {
    /// Begins to read after a place. Reads on by itself until the end of the feed, one batch ahead
    /// of what was taken.
    pub fn begin(reading: Reading, after: Place, rows: u32) -> Self {
        // Two: the end of this page and the head of the next, so that the next is loaded while the
        // sink works.
        let (sender, parts) = mpsc::channel(2);
        let rows = Arc::new(AtomicU32::new(rows));
        let shared = Arc::clone(&rows);
        let next = after.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = read_on(&reading, after, &shared, &sender).await {
                // Nobody listens any more: the reader was dropped.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self { parts, task, rows, next }
    }

    /// Whether the next page begins after this place.
    pub fn continues(&self, after: &Place) -> bool {
        self.next == *after
    }

    /// Changes how many rows the pages that are not read yet have at most.
    pub fn resize(&self, rows: u32) {
        self.rows.store(rows, Ordering::Relaxed);
    }

    /// The next part; `None` after the last page.
    pub async fn part(&mut self) -> Result<Option<Part>, PortError> {
        let part = self.parts.recv().await.transpose()?;
        if let Some(Part::Head(head)) = &part {
            self.next = head.next.clone();
        }
        Ok(part)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_on(
    reading: &Reading,
    mut after: Place,
    rows: &AtomicU32,
    parts: &mpsc::Sender<Result<Part, PortError>>,
) -> Result<(), PortError> {
    loop {
        let limit = rows.load(Ordering::Relaxed);
        let mut page = reading.feed.changes(&reading.consumer, &after, limit).await?;
        let changes = std::mem::take(&mut page.changes);
        let end = page.end || page.next == after;
        after = page.next.clone();
        if parts.send(Ok(Part::Head(Box::new(page)))).await.is_err() {
            return Ok(());
        }
        let mut left = changes.into_iter();
        while !left.as_slice().is_empty() {
            let keys: Vec<_> = left.as_slice().iter().map(|change| change.key.clone()).collect();
            let loaded = reading.load(&keys).await?;
            let batch: Vec<_> = left.by_ref().take(loaded.len()).zip(loaded).collect();
            if parts.send(Ok(Part::Rows(batch))).await.is_err() {
                return Ok(());
            }
        }
        if parts.send(Ok(Part::Whole)).await.is_err() || end || !reading.ahead {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
