//! The ledger in a SQLite file: one connection that writes, one that reads beside it.
//!
//! Every write is one transaction that is begun IMMEDIATE, so two processes take turns and each
//! decides on what the other left. The clock is the database's, read in that transaction.
//! Invariants: L1, L2, L3, G1, C2, C3, C4.

mod archive;
mod commits;
mod items;
mod leases;
#[expect(clippy::module_inception, reason = "each port has the file of its name")]
mod ledger;
mod operations;
mod rows;

mod schema;
mod sql;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use truekeep_core::Timestamp;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
pub use truekeep_migrations::MigrationReport;
use truekeep_migrations::{Migration, SQLITE};
use truekeep_sqlite::{Access, Database, Failure, FileIdentity, Options, Role};

/// A ledger in a SQLite file. Clones share its connections.
#[derive(Debug, Clone)]
pub struct SqliteLedger {
    writer: Database,
    /// Readers never wait behind a commit.
    reader: Database,
    clock: Clock,
    path: Arc<Path>,
    file: Option<FileIdentity>,
}

/// Where the time is read.
#[derive(Debug, Clone)]
enum Clock {
    /// SQL: the clock of the machine that runs the statement. One file has one machine.
    Database,
    /// A number that a test moves.
    #[cfg(test)]
    Manual(std::sync::Arc<std::sync::atomic::AtomicI64>),
}

impl Clock {
    fn now(&self, connection: &Connection) -> Result<Timestamp, Failure> {
        match self {
            Self::Database => {
                let now =
                    connection.prepare_cached(sql::CLOCK_NOW)?.query_row([], |row| row.get(0));
                Ok(Timestamp::from_ms(now?))
            }
            #[cfg(test)]
            Self::Manual(now) => {
                Ok(Timestamp::from_ms(now.load(std::sync::atomic::Ordering::SeqCst)))
            }
        }
    }
}

impl SqliteLedger {
    /// Opens a ledger; makes one where there is no file, or an empty one.
    ///
    /// `busy` is how long a statement waits for another process's lock.
    ///
    /// # Errors
    /// `LEDGER_VERSION` for a schema that is older (run [`Self::migrate`]) or newer than ours;
    /// `LEDGER_CORRUPT` for a file that is no ledger; else why the file cannot be opened.
    pub async fn open(path: &Path, busy: Duration) -> Result<Self, PortError> {
        Self::open_with(path, busy, SQLITE, Clock::Database).await
    }

    /// Brings a ledger's schema up to ours; makes the ledger where there is none. A repeat, also by
    /// several processes at once, is harmless.
    ///
    /// # Errors
    /// As [`Self::open`], but for an older schema.
    pub async fn migrate(path: &Path, busy: Duration) -> Result<MigrationReport, PortError> {
        schema::migrate(path, busy, SQLITE).await
    }

    async fn open_with(
        path: &Path,
        busy: Duration,
        steps: &'static [Migration],
        clock: Clock,
    ) -> Result<Self, PortError> {
        let writer = schema::open(path, busy, steps).await?;
        let options = Options { role: Role::Ledger, access: Access::ReadOnly, busy };
        let reader = Database::open(path, options).await?;
        Ok(Self { writer, reader, clock, path: path.into(), file: FileIdentity::at(path) })
    }

    /// Whether the path still has the file that we have open. What is written into one that was
    /// removed or replaced is seen by nobody else, so two workers would each hold every lease.
    fn there(&self, operation: &'static str) -> Result<(), PortError> {
        if self.file == FileIdentity::at(&self.path) {
            return Ok(());
        }
        let class = FailureClass::Halted;
        let error = PortError::new(operation, class, Code::LEDGER_UNAVAILABLE);
        Err(error.detail(format!("{} was removed or replaced", self.path.display())))
    }

    /// Does work in a transaction that holds the write lock from its beginning.
    async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>, Timestamp) -> Result<T, Failure> + Send + 'static,
    {
        self.there(operation)?;
        let clock = self.clock.clone();
        let work = move |connection: &mut Connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let now = clock.now(&transaction)?;
            let answer = work(&transaction, now)?;
            transaction.commit()?;
            Ok(answer)
        };
        self.writer.call(operation, work).await
    }

    /// Reads in one statement, or in a snapshot of its own if the work begins one.
    async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection, &Clock) -> Result<T, Failure> + Send + 'static,
    {
        self.there(operation)?;
        let clock = self.clock.clone();
        self.reader.call(operation, move |connection| work(connection, &clock)).await
    }
}

#[cfg(test)]
mod tests;
