//! The sink's port over a mirror: one connection writes, another reads beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, Entry, Listing, Mark, Memory, Receipt,
    Sink,
};
use truekeep_sqlite::{Access, Database, FileIdentity, Options, Role};

use crate::delivery::{key, rank};
use crate::spec::MirrorSpec;
use crate::statements::Statements;
use crate::structure::Mirror;

/// A mirror in a SQLite file.
#[derive(Debug)]
pub struct SqliteSink {
    path: PathBuf,
    busy: Duration,
    mirror: Arc<Mirror>,
    connections: Mutex<Connections>,
}

/// What is open, and the file that it is open on.
#[derive(Debug, Clone)]
struct Connections {
    file: Option<FileIdentity>,
    writer: Database,
    reader: Database,
}

impl Connections {
    async fn open(path: &Path, busy: Duration) -> Result<Self, PortError> {
        let options = Options { role: Role::Sink, access: Access::Own, busy };
        // The writer first: it makes the file.
        let writer = Database::open(path, options).await?;
        let reader = Database::open(path, Options { access: Access::ReadOnly, ..options }).await?;
        Ok(Self { file: FileIdentity::at(path), writer, reader })
    }
}

impl SqliteSink {
    /// Opens the file, which is made if it is not there; the table is made by
    /// [`Sink::prepare`]. A statement waits for another program's lock for as long as `busy`.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such table can be, and what the file answers.
    pub async fn open(path: &Path, spec: MirrorSpec, busy: Duration) -> Result<Self, PortError> {
        spec.check()?;
        let connections = Mutex::new(Connections::open(path, busy).await?);
        let sql = Statements::of(&spec);
        Ok(Self { path: path.into(), busy, mirror: Arc::new(Mirror { spec, sql }), connections })
    }

    /// Whether the mirror's table is there. Makes nothing in it.
    ///
    /// # Errors
    /// Class Halted with `MIRROR_MISMATCH` if what is there does not fit the rules.
    pub async fn inspect(&self) -> Result<bool, PortError> {
        let mirror = Arc::clone(&self.mirror);
        let reader = self.looked_anew().await?.reader;
        reader.call("inspect the mirror", move |db| mirror.inspect(db)).await
    }

    /// The connections, opened again if the path has another file now. Only for those who look
    /// at the mirror anew: a batch must not go on in a file that may be older.
    async fn looked_anew(&self) -> Result<Connections, PortError> {
        let mut connections = self.connections.lock().await;
        if connections.file != FileIdentity::at(&self.path) {
            *connections = Connections::open(&self.path, self.busy).await?;
        }
        Ok(connections.clone())
    }

    /// The connections, if the path has the file still that they are open on.
    async fn unchanged(&self, operation: &'static str) -> Result<Connections, PortError> {
        let connections = self.connections.lock().await;
        if connections.file == FileIdentity::at(&self.path) {
            return Ok(connections.clone());
        }
        let error = PortError::new(operation, FailureClass::Halted, Code::SINK_WENT_BACK);
        Err(error.detail(format!("{} was replaced or removed", self.path.display())))
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
        let mirror = Arc::clone(&self.mirror);
        let writer = self.looked_anew().await?.writer;
        writer.call("prepare the mirror", move |db| mirror.prepare(db)).await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        let mirror = Arc::clone(&self.mirror);
        let read = move |db: &mut rusqlite::Connection| {
            // One snapshot: the mark and what it counts belong together.
            let snapshot = db.transaction()?;
            Ok(mirror.mark(&snapshot)?.map(|stored| stored.mark))
        };
        self.looked_anew().await?.reader.call("read the mark", read).await
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        let mirror = Arc::clone(&self.mirror);
        const OPERATION: &str = "write a batch";
        let writer = self.unchanged(OPERATION).await?.writer;
        writer.call(OPERATION, move |db| mirror.apply(db, &batch)).await
    }

    /// The commit of [`Sink::apply`] was synced, so only a file that went away loses it.
    async fn confirm(&self, _receipt: &Receipt) -> Result<Confirmation, PortError> {
        self.unchanged("confirm a batch").await?;
        Ok(Confirmation::Confirmed)
    }

    /// A row whose key is not text in UTF-8 is somebody else's: no delivery can name it, and
    /// nothing is said of it.
    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let mirror = Arc::clone(&self.mirror);
        // The least text after a text is that text and a NUL.
        let from = after.map_or_else(String::new, |after| format!("{after}\0"));
        let list = move |db: &mut rusqlite::Connection| {
            let mut list =
                db.prepare_cached(&mirror.sql.list_records).map_err(|e| mirror.broken(e))?;
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
        self.unchanged(OPERATION).await?.reader.call(OPERATION, list).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        let mirror = Arc::clone(&self.mirror);
        let deliveries = deliveries.to_vec();
        const OPERATION: &str = "verify documents";
        let reader = self.unchanged(OPERATION).await?.reader;
        reader.call(OPERATION, move |db| mirror.verify(db, &deliveries)).await
    }
}

#[cfg(test)]
mod tests;
