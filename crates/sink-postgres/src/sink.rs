//! The sink's port over a mirror.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::Key;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, Entry, Listing, Mark, Memory, Receipt,
    Served, Sink,
};
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Access, Database, Failure, Options, Role, Transaction};

use crate::delivery::rank;
use crate::keys;
use crate::placed::Placed;
use crate::spec::MirrorSpec;

/// A mirror in a table of a Postgres database, or one generation of it.
#[derive(Debug, Clone)]
pub struct PostgresSink {
    database: Database,
    placed: Arc<Placed>,
    statement_max: Duration,
}

impl PostgresSink {
    /// Opens the database by its address; the table is made by [`Sink::prepare`]. A call waits for a
    /// connection for as long as `patience`, and a statement may take `statement_max`.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such table can be, and what the server answers.
    pub async fn open(
        address: &str,
        spec: MirrorSpec,
        patience: Duration,
        statement_max: Duration,
    ) -> Result<Self, PortError> {
        spec.check()?;
        let options = Options { patience, ..Options::of(Role::Sink) };
        let database = Database::open(address, options).await?;
        Ok(Self::over(database, Placed::new(spec, Served::FIRST.generation), statement_max))
    }

    pub(crate) fn over(database: Database, placed: Placed, statement_max: Duration) -> Self {
        Self { database, placed: Arc::new(placed), statement_max }
    }

    /// Whether the mirror's table is there. Makes nothing in the database.
    ///
    /// # Errors
    /// Class Halted with `MIRROR_MISMATCH` if what is there does not fit the rules, and with
    /// `SINK_UNAVAILABLE` if a right is missing, which is named.
    pub async fn inspect(&self) -> Result<bool, PortError> {
        let mut transaction = self.begin("inspect the mirror").await?;
        let found = self.placed.inspect(&mut transaction).await;
        self.end(transaction, found).await
    }

    /// Each statement sees what was committed before it, and names are as the marks say to the end.
    async fn begin(&self, operation: &'static str) -> Result<Transaction, PortError> {
        let access = Access::Write { statement_max: self.statement_max };
        self.database.begin(operation, access).await
    }

    async fn end<T>(
        &self,
        transaction: Transaction,
        work: Result<T, Failure>,
    ) -> Result<T, PortError> {
        transaction.end(work.map_err(|failure| self.placed.broken(failure))).await
    }

    /// Rows without a key of ours are somebody else's: no delivery can name them.
    async fn listing(
        &self,
        transaction: &mut Transaction,
        after: Option<Key>,
        limit: usize,
    ) -> Result<Listing, Failure> {
        let mirror = self.placed.under(self.placed.marked(transaction).await?.served);
        let mut after = after.map(|after| keys::stored(&after).into_owned());
        let mut entries = Vec::new();
        // One more than asked for tells the end.
        while entries.len() <= limit {
            let wanted = limit + 1 - entries.len();
            let query = Transaction::query(&*mirror.sql.list_records)
                .bind(after.clone())
                .bind(i64::try_from(wanted).unwrap_or(i64::MAX));
            let rows = transaction.rows(query).await?;
            for row in &rows {
                let text: String = row.try_get(0)?;
                if let Some(key) = keys::read(&text) {
                    entries.push(Entry { key, rank: rank(row, 1)? });
                }
                after = Some(text);
            }
            if rows.len() < wanted {
                break;
            }
        }
        let end = entries.len() <= limit;
        entries.truncate(limit);
        Ok(Listing { entries, end })
    }
}

#[async_trait]
impl Sink for PostgresSink {
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
        let mut transaction = self.begin("prepare the mirror").await?;
        let done = self.placed.prepare(&mut transaction).await;
        self.end(transaction, done).await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        let mut transaction = self.begin("read the mark").await?;
        let stored = self.placed.mark(&mut transaction).await;
        Ok(self.end(transaction, stored).await?.map(|stored| stored.mark))
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        for careful in [false, true] {
            let mut transaction = self.begin("write a batch").await?;
            match self.placed.attempt(&mut transaction, &batch, careful).await {
                // A transaction that is dropped is rolled back.
                Ok(None) => {
                    let again = PortError::new(
                        "write a batch",
                        FailureClass::Retry,
                        truekeep_core::code::Code::SINK_REFUSED,
                    );
                    let _ = transaction.end::<()>(Err(again.into())).await;
                }
                Ok(Some(applied)) => return self.end(transaction, Ok(applied)).await,
                Err(failure) => return self.end(transaction, Err(failure)).await,
            }
        }
        unreachable!("with care no record makes a batch fail")
    }

    /// The commit of [`Sink::apply`] was synced.
    async fn confirm(&self, _receipt: &Receipt) -> Result<Confirmation, PortError> {
        Ok(Confirmation::Confirmed)
    }

    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let mut transaction = self.begin("list the mirror").await?;
        let listing = self.listing(&mut transaction, after, limit as usize).await;
        self.end(transaction, listing).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        let mut transaction = self.begin("verify documents").await?;
        let work = async {
            let marked = self.placed.marked(&mut transaction).await?;
            self.placed.under(marked.served).verify(&mut transaction, deliveries).await
        };
        let answers = work.await;
        self.end(transaction, answers).await
    }
}
