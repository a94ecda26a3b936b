//! The sink's port over a mirror: one connection writes, another reads beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use truekeep_core::Key;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, Entry, Listing, Mark, Memory, Receipt,
    Served, Sink,
};

use crate::connections::MirrorFile;
use crate::delivery::{key, rank};
use crate::generations::Placed;
use crate::spec::MirrorSpec;

/// A mirror in a SQLite file, or one generation of it.
#[derive(Debug)]
pub struct SqliteSink {
    file: Arc<MirrorFile>,
    placed: Arc<Placed>,
}

impl SqliteSink {
    /// Opens the file, which is made if it is not there; the table is made by
    /// [`Sink::prepare`]. A statement waits for another program's lock for as long as `busy`.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such table can be, and what the file answers.
    pub async fn open(path: &Path, spec: MirrorSpec, busy: Duration) -> Result<Self, PortError> {
        spec.check()?;
        let file = Arc::new(MirrorFile::open(path, busy).await?);
        Ok(Self::over(file, Placed::new(spec, Served::FIRST.generation)))
    }

    pub(crate) fn over(file: Arc<MirrorFile>, placed: Placed) -> Self {
        Self { file, placed: Arc::new(placed) }
    }

    /// Whether the mirror's table is there. Makes nothing in it.
    ///
    /// # Errors
    /// Class Halted with `MIRROR_MISMATCH` if what is there does not fit the rules.
    pub async fn inspect(&self) -> Result<bool, PortError> {
        let placed = Arc::clone(&self.placed);
        let inspect = move |db: &mut Connection| {
            let snapshot = db.transaction()?;
            placed.mirror(&snapshot)?.inspect(&snapshot)
        };
        self.file.looked_anew().await?.reader.call("inspect the mirror", inspect).await
    }
}

#[async_trait]
impl Sink for SqliteSink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            versioned_writes: true,
            versioned_deletes: true,
            remembers_deletes: Memory::Forever,
            fenced_writes: true,
            ordered_listing: true,
            marked: true,
            listing_lag: Duration::ZERO,
            verifies: true,
        }
    }

    async fn prepare(&self) -> Result<(), PortError> {
        let placed = Arc::clone(&self.placed);
        let writer = self.file.looked_anew().await?.writer;
        writer.call("prepare the mirror", move |db| placed.prepare(db)).await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        let placed = Arc::clone(&self.placed);
        let read = move |db: &mut Connection| {
            // One snapshot: the mark and what it counts belong together.
            let snapshot = db.transaction()?;
            Ok(placed.mirror(&snapshot)?.mark(&snapshot)?.map(|stored| stored.mark))
        };
        self.file.looked_anew().await?.reader.call("read the mark", read).await
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        let placed = Arc::clone(&self.placed);
        const OPERATION: &str = "write a batch";
        let writer = self.file.unchanged(OPERATION).await?.writer;
        writer.call(OPERATION, move |db| placed.apply(db, &batch)).await
    }

    /// The commit of [`Sink::apply`] was synced, so only a file that went away loses it.
    async fn confirm(&self, _receipt: &Receipt) -> Result<Confirmation, PortError> {
        self.file.unchanged("confirm a batch").await?;
        Ok(Confirmation::Confirmed)
    }

    /// A row whose key is not text in UTF-8 is somebody else's: no delivery can name it, and
    /// nothing is said of it.
    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let placed = Arc::clone(&self.placed);
        // The least text after a text is that text and a NUL.
        let from = after.map_or_else(String::new, |after| format!("{after}\0"));
        let list = move |db: &mut Connection| {
            let snapshot = db.transaction()?;
            let mirror = placed.mirror(&snapshot)?;
            let mut list =
                snapshot.prepare_cached(&mirror.sql.list_records).map_err(|e| mirror.broken(e))?;
            let entries = list.query_and_then([from], |row| {
                let rank = rank(row, 1)?;
                Ok(key(row, 0)?.map(|key| Entry { key, rank }))
            })?;
            // Rows are read as they are taken. One more than asked for tells the end.
            let mut entries = entries
                .filter_map(Result::transpose)
                .take((limit as usize).saturating_add(1))
                .collect::<rusqlite::Result<Vec<Entry>>>()
                .map_err(|error| mirror.broken(error))?;
            let end = entries.len() <= limit as usize;
            entries.truncate(limit as usize);
            Ok(Listing { entries, end })
        };
        const OPERATION: &str = "list the mirror";
        self.file.unchanged(OPERATION).await?.reader.call(OPERATION, list).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        let placed = Arc::clone(&self.placed);
        let deliveries = deliveries.to_vec();
        const OPERATION: &str = "verify documents";
        let verify = move |db: &mut Connection| {
            let snapshot = db.transaction()?;
            placed.mirror(&snapshot)?.verify(&snapshot, &deliveries)
        };
        self.file.unchanged(OPERATION).await?.reader.call(OPERATION, verify).await
    }
}

#[cfg(test)]
mod tests;
