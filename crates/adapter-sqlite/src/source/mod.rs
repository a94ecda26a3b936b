//! The source: feed, records and capture in the application's own SQLite file.
//!
//! Invariants: S1, S2 and S3 of the port. Reads go through one connection and writes through
//! another, so a write never moves the count by which the reader tells that others committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Mutex;
use truekeep_core::failure::PortError;
use truekeep_sqlite::{Access, Database, Failure, Options, Role, impatient};

mod audit;
mod capture;
mod conflict;
mod durable;
mod feed;
mod fill;
mod introspect;
mod key;
mod marks;
mod meta;
mod names;
mod projection;
mod prune;
mod records;
mod resolve;
mod signature;
mod statements;
mod table;
mod tokens;
mod triggers;

pub use introspect::{TableShape, introspect};
pub use truekeep_core::relation::{Cause, Column, Projection, RelationSpec, Unindexed, Watch};

use durable::{Durable, Identity, identity};
use marks::Expansion;
use names::FeedNames;
use prune::Sweep;
use resolve::{Kept, Resolved, resolved};

/// The reader's page cache: the inner pages of a large table and its feed stay in it, so that a
/// look-up reads one page.
const READER_CACHE_KIB: i64 = 16 << 10;

/// One relation of a SQLite database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct SqliteSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    spec: Arc<RelationSpec>,
    busy: Duration,
    connections: Mutex<Arc<Connections>>,
    /// What was last seen of the schema.
    seen: std::sync::Mutex<Arc<Resolved>>,
    /// How far outdated numbers were looked for.
    sweep: std::sync::Mutex<Sweep>,
    /// Marks whose rows are being numbered.
    expansion: Mutex<Option<Expansion>>,
}

/// The connections to one file.
#[derive(Debug)]
struct Connections {
    identity: Identity,
    durable: Durable,
    reader: Database,
    reader_kept: Kept,
    writer: Database,
    writer_kept: Kept,
}

impl Connections {
    async fn open(path: &Path, busy: Duration) -> Result<Arc<Self>, PortError> {
        let options = Options { role: Role::Source, access: Access::Guest, busy };
        let writer = Database::open(path, options).await?;
        // What we write survives a power cut in every journal mode; in WAL mode this is FULL.
        writer
            .call("open the source", |connection| {
                Ok(connection.pragma_update(None, "synchronous", "EXTRA")?)
            })
            .await?;
        let reader = Database::open(path, options).await?;
        reader
            .call("open the source", |connection| {
                connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
                Ok(connection.pragma_update(None, "query_only", true)?)
            })
            .await?;
        let identity = identity(path)?;
        Ok(Arc::new(Self {
            identity,
            durable: Durable::of(path, identity),
            reader,
            reader_kept: Kept::default(),
            writer,
            writer_kept: Kept::default(),
        }))
    }
}

impl SqliteSource {
    /// Opens a relation of a database file that is there.
    ///
    /// # Errors
    /// A [`PortError`] that names the path and what is wrong with it; the table and why it cannot
    /// be followed (`RELATION_MISSING`, `RELATION_REFUSED`, `KEY_REFUSED`); or what of the
    /// specification cannot be (`CONFIG_INVALID`).
    pub async fn open(
        path: impl AsRef<Path>,
        spec: RelationSpec,
        busy: Duration,
    ) -> Result<Self, PortError> {
        let path = path.as_ref().to_owned();
        let connections = Connections::open(&path, busy).await?;
        let spec = Arc::new(spec);
        let of_spec = Arc::clone(&spec);
        let seen = connections
            .reader
            .call("look at the table", move |connection| {
                let snapshot = connection.transaction()?;
                Resolved::of(&snapshot, &of_spec)
            })
            .await?;
        Ok(Self {
            shared: Arc::new(Shared {
                path,
                spec,
                busy,
                connections: Mutex::new(connections),
                seen: std::sync::Mutex::new(Arc::new(seen)),
                sweep: std::sync::Mutex::default(),
                expansion: Mutex::default(),
            }),
        })
    }

    /// The names and declared types of a document's values, as of the last read.
    pub fn shape(&self) -> Vec<Column> {
        self.seen().selection.columns.clone()
    }

    /// Everything that decides what documents look like, as text: the table, its key, values,
    /// condition and query, with the definitions of the views that these may read; as of the last
    /// read.
    pub fn fingerprint_parts(&self) -> Vec<String> {
        self.seen().fingerprint.clone()
    }

    /// The tables that are looked through as a whole because of what is watched, and what helps.
    ///
    /// # Errors
    /// The source's.
    pub async fn unindexed(&self) -> Result<Vec<Unindexed>, PortError> {
        self.glance("look for indexes", marks::unindexed).await
    }

    fn seen(&self) -> Arc<Resolved> {
        Arc::clone(&self.shared.seen.lock().expect("no holder of the lock panics"))
    }

    fn spec(&self) -> Arc<RelationSpec> {
        Arc::clone(&self.shared.spec)
    }

    /// The connections to the file that the path leads to now: a file that was put in its place
    /// is opened, since the old one is nobody's any more.
    async fn connections(&self) -> Result<Arc<Connections>, PortError> {
        let mut held = self.shared.connections.lock().await;
        if identity(&self.shared.path)? != held.identity {
            *held = Connections::open(&self.shared.path, self.shared.busy).await?;
        }
        Ok(Arc::clone(&held))
    }

    /// Reads in one snapshot and makes durable what it saw before answering (S2).
    async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Resolved) -> Result<T, Failure> + Send + 'static,
    {
        let connections = self.connections().await?;
        self.glance_on(&connections, operation, move |held, connection, relation| {
            let answer = work(connection, relation)?;
            held.durable.settle(connection)?;
            Ok(answer)
        })
        .await
    }

    /// Reads in one snapshot what decides only what we write into the source ourselves.
    async fn glance<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Resolved) -> Result<T, Failure> + Send + 'static,
    {
        let connections = self.connections().await?;
        self.glance_on(&connections, operation, |_, connection, relation| {
            work(connection, relation)
        })
        .await
    }

    async fn glance_on<T, F>(
        &self,
        connections: &Arc<Connections>,
        operation: &'static str,
        work: F,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connections, &Connection, &Resolved) -> Result<T, Failure> + Send + 'static,
    {
        let (shared, held) = (Arc::clone(&self.shared), Arc::clone(connections));
        connections
            .reader
            .call(operation, move |connection| {
                let snapshot = connection.transaction()?;
                let relation = resolved(&snapshot, &shared.spec, &held.reader_kept)?;
                let answer = work(&held, &snapshot, &relation)?;
                *shared.seen.lock().expect("no holder of the lock panics") = relation;
                Ok(answer)
            })
            .await
    }

    /// Reads what needs neither a snapshot nor the relation.
    async fn look<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let connections = self.connections().await?;
        connections.reader.call(operation, move |connection| work(connection)).await
    }

    /// Writes in one transaction that holds the lock from its beginning.
    async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Resolved) -> Result<T, Failure> + Send + 'static,
    {
        self.write_within(operation, self.shared.busy, work).await
    }

    /// The same; `SOURCE_LOCKED` if others keep the lock for longer than this.
    async fn write_within<T, F>(
        &self,
        operation: &'static str,
        busy_max: Duration,
        work: F,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Resolved) -> Result<T, Failure> + Send + 'static,
    {
        let connections = self.connections().await?;
        let spec = self.spec();
        let held = Arc::clone(&connections);
        self.write_bare_on(&connections, operation, busy_max, move |connection| {
            let kept = &held.writer_kept;
            let done =
                resolved(connection, &spec, kept).and_then(|relation| work(connection, &relation));
            if done.is_err() {
                // A schema of a transaction that is rolled back may share its number with another.
                kept.lock().expect("no holder of the lock panics").take();
            }
            done
        })
        .await
    }

    /// As [`Self::write`], without the relation.
    async fn write_bare<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let connections = self.connections().await?;
        self.write_bare_on(&connections, operation, self.shared.busy, work).await
    }

    async fn write_bare_on<T, F>(
        &self,
        connections: &Connections,
        operation: &'static str,
        busy_max: Duration,
        work: F,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        connections
            .writer
            .call(operation, move |connection| {
                impatient(busy_max, || {
                    let transaction =
                        connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                    let answer = work(&transaction)?;
                    transaction.commit()?;
                    Ok(answer)
                })
            })
            .await
    }

    /// The names of this relation's feed, whether its table is there or not.
    fn names(&self) -> FeedNames {
        FeedNames::of(&self.shared.spec.table)
    }
}
