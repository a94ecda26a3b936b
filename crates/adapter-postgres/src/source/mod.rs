//! The source: feed, records and capture in the application's own Postgres database.
//!
//! Invariants: S1, S2 and S3 of the port. A read is one snapshot, taken after the tables are locked
//! against being rewritten (X48). Its answer is given once everything that the snapshot can have seen
//! is on disk (X42).

use std::sync::Arc;
use std::time::Duration;

use truekeep_core::Moment;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_postgres::{Access, Database, Failure, Options, Role, Transaction};

mod advice;
mod audit;
mod capture;
mod durable;
mod feed;
mod fill;
mod introspect;
mod key;
mod line;
mod marks;
mod meta;
mod names;
mod projection;
mod records;
mod resolve;
mod signature;
mod snapshot;
mod statements;
mod table;
mod tokens;
mod triggers;
mod types;
mod wake;

pub use advice::OpenTransaction;
pub use introspect::{TableShape, introspect};
pub use truekeep_core::relation::{Cause, Column, Projection, RelationSpec, Unindexed, Watch};

use resolve::{Kept, Resolved};

/// How long a statement that only reads may take: a page of large documents does not, and a worker
/// that hangs is noticed.
const READ_MAX: Duration = Duration::from_secs(60);

/// How long a statement that writes the feed may take at first: the application waits for no more.
const WRITE_MAX: Duration = Duration::from_millis(50);

/// How often a transaction is tried that gave way to the application, each time more patiently.
const TRIES_MAX: u32 = 8;

/// One relation of a Postgres database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct PostgresSource {
    database: Database,
    spec: Arc<RelationSpec>,
    kept: Arc<Kept>,
    /// The snapshot in which changes were last looked for, and how often there were any.
    pulsed: Arc<std::sync::Mutex<(Moment, u64)>>,
    ear: Arc<wake::Ear>,
}

impl PostgresSource {
    /// Opens a relation of a database, by the database's address.
    ///
    /// # Errors
    /// A [`PortError`] that names the place and what is wrong with it; the table and why it cannot
    /// be followed (`RELATION_MISSING`, `RELATION_REFUSED`, `KEY_REFUSED`); or what of the
    /// specification cannot be (`CONFIG_INVALID`).
    pub async fn open(
        address: &str,
        spec: RelationSpec,
        patience: Duration,
    ) -> Result<Self, PortError> {
        let of_source = Options::of(Role::Source);
        // One more listens.
        let options = Options { patience, connections: of_source.connections + 1, ..of_source };
        let database = Database::open(address, options).await?;
        let resolved = Self::resolve(&database, &spec).await?;
        Ok(Self {
            database,
            spec: Arc::new(spec),
            kept: Arc::new(Kept::new(resolved)),
            pulsed: Arc::default(),
            ear: Arc::default(),
        })
    }

    async fn resolve(database: &Database, spec: &RelationSpec) -> Result<Arc<Resolved>, PortError> {
        let access = Access::Snapshot { of: &[], statement_max: READ_MAX };
        let mut reading = database.begin("look at the table", access).await?;
        let found = Resolved::of(&mut reading, spec).await;
        reading.end(found).await.map(Arc::new)
    }

    /// The names and types of a document's values, as of the last read.
    pub fn shape(&self) -> Vec<Column> {
        self.seen().selection.columns.clone()
    }

    /// Everything that decides what documents look like, as text: the table, its key, values,
    /// condition and query, with the definitions of the views and functions that these may use; as of
    /// the last read.
    pub fn fingerprint_parts(&self) -> Vec<String> {
        self.seen().fingerprint.clone()
    }

    fn seen(&self) -> Arc<Resolved> {
        Arc::clone(&self.kept.lock().expect("no holder of the lock panics"))
    }

    /// Looks again at everything that the specification names.
    async fn look_again(&self) -> Result<Arc<Resolved>, PortError> {
        let mut fresh = Self::resolve(&self.database, &self.spec).await?;
        let mut kept = self.kept.lock().expect("no holder of the lock panics");
        if let Some(fresh) = Arc::get_mut(&mut fresh) {
            fresh.selection.share_names(&kept.selection);
        }
        *kept = Arc::clone(&fresh);
        Ok(fresh)
    }

    /// Begins to read: one snapshot, in which none of the tables is rewritten meanwhile.
    async fn reading(
        &self,
        operation: &'static str,
    ) -> Result<(Transaction, Arc<Resolved>), PortError> {
        let mut resolved = self.seen();
        for again in [true, false] {
            let access = Access::Snapshot { of: &resolved.locked, statement_max: READ_MAX };
            match self.database.begin(operation, access).await {
                // A table that is gone: perhaps only from where it was.
                Err(error) if again && error.class == FailureClass::Terminal => {
                    resolved = self.look_again().await?;
                }
                Err(error) => return Err(error),
                Ok(reading) => return Ok((reading, resolved)),
            }
        }
        unreachable!("the second round returns")
    }

    /// Begins to write the feed.
    async fn writing(
        &self,
        operation: &'static str,
        statement_max: Duration,
    ) -> Result<Transaction, PortError> {
        self.database.begin(operation, Access::Write { statement_max }).await
    }
}

/// Tries again what gave way to the application: each time with more patience.
#[derive(Debug, Default)]
struct Patience {
    tries: u32,
}

impl Patience {
    /// How long a statement may take now.
    fn statement_max(&self) -> Duration {
        WRITE_MAX * 2_u32.pow(self.tries)
    }

    /// How many of so many rows to write at once now.
    fn rows(&self, of: usize) -> usize {
        (of >> self.tries).max(1)
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The failure, if trying again is no use, or was tried often enough.
    async fn again(&mut self, error: PortError) -> Result<(), PortError> {
        if error.class != FailureClass::Retry || self.tries + 1 >= TRIES_MAX {
            return Err(error);
        }
        self.tries += 1;
        tokio::time::sleep(Duration::from_millis(5) * 2_u32.pow(self.tries)).await;
        Ok(())
    }
}

/// What failed for a reason of the data: one of several keys may be the cause.
fn is_of_data(failure: &truekeep_postgres::sqlx::Error) -> bool {
    let state = truekeep_postgres::says(failure).unwrap_or_default();
    ["22", "21", "23", "P0", "2F", "38", "39"].iter().any(|class| state.starts_with(class))
        || state == "0A000"
}

/// A number that is stored as a signed one and never is negative.
fn number(stored: i64) -> u64 {
    stored.unsigned_abs()
}

/// The type of failures inside a transaction.
type Worked<T> = Result<T, Failure>;
