//! The ledger in a Postgres database, in a schema of its own.
//!
//! Every write is one transaction at READ COMMITTED. Its first statements hold the pipeline's row, and
//! then the leases that it judges by; the clock is read after that, and what follows sees what was
//! committed before. So whoever writes anything of a pipeline takes turns with all who do, and items
//! need no locks of their own. Rows are always held in this order: the ledger's (only where a name has no
//! row yet), the pipeline's, leases by scope. A renewal holds leases and nothing else.
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

use std::pin::Pin;
use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::{HolderId, LeaseToken, PipelineName, ScopeId, Timestamp};
pub use truekeep_migrations::MigrationReport;
use truekeep_migrations::{Migration, POSTGRES};
use truekeep_postgres::{Access, Database, Failure, Options, Role, Transaction};

/// How long a statement may take: the longest drops 10,000 items.
const STATEMENT_MAX: Duration = Duration::from_secs(20);

const READ: Access<'_> = Access::Snapshot { of: &[], statement_max: STATEMENT_MAX };
const WRITE: Access<'_> = Access::Write { statement_max: STATEMENT_MAX };

/// How often rows are tried to be held that somebody else holds. Each try waits for up to 0.2 s:
/// longer than any sound transaction in all, and short enough that a person still watches.
const TRIES_MAX: u32 = 25;

/// A ledger in a Postgres database. Clones share its connections.
#[derive(Debug, Clone)]
pub struct PostgresLedger {
    database: Database,
    clock: Clock,
}

/// Where the time is read.
#[derive(Debug, Clone)]
enum Clock {
    /// SQL: the server's clock.
    Server,
    /// A number that a test moves.
    #[cfg(test)]
    Manual(std::sync::Arc<std::sync::atomic::AtomicI64>),
}

impl Clock {
    async fn now(&self, transaction: &mut Transaction) -> Result<Timestamp, Failure> {
        match self {
            Self::Server => {
                let query = Transaction::query(sql::CLOCK_NOW);
                let now = rows::first(transaction, query, rows::now).await?;
                rows::expected(now, "clock")
            }
            #[cfg(test)]
            Self::Manual(now) => {
                Ok(Timestamp::from_ms(now.load(std::sync::atomic::Ordering::SeqCst)))
            }
        }
    }
}

/// Which rows a write holds before it looks at anything.
#[derive(Debug, Clone, Copy)]
enum Hold<'a> {
    /// Those who make or change the schema take turns.
    Schema,
    /// What a holder's tokens are of.
    Tokens(&'a HolderId, &'a [LeaseToken]),
    /// A pipeline's, and its leases.
    Pipeline(&'a PipelineName),
    /// A pipeline's, and the lease of one of its scopes.
    Scope(&'a ScopeId),
}

impl Hold<'_> {
    async fn take(self, transaction: &mut Transaction) -> Result<(), Failure> {
        let (pipeline, scope) = match self {
            Self::Schema => {
                rows::execute(transaction, Transaction::query(sql::SCHEMA_HOLD)).await?;
                return Ok(());
            }
            Self::Tokens(holder, tokens) => {
                let query = Transaction::query(sql::LEASE_OWN)
                    .bind(holder.as_str().to_owned())
                    .bind(rows::texts(tokens));
                rows::execute(transaction, query).await?;
                return Ok(());
            }
            Self::Pipeline(name) => (name, None),
            Self::Scope(scope) => (scope.pipeline(), Some(scope.to_string())),
        };
        let held = || ledger::about(sql::PIPELINE_HOLD, pipeline);
        if rows::execute(transaction, held()).await? == 0 {
            // A name without a row: nobody else gives it one meanwhile, or it has one by now.
            rows::execute(transaction, Transaction::query(sql::LEDGER_HOLD)).await?;
            rows::execute(transaction, held()).await?;
        }
        let query = ledger::about(sql::LEASE_HOLD, pipeline).bind(scope);
        rows::execute(transaction, query).await?;
        Ok(())
    }
}

impl PostgresLedger {
    /// Opens the ledger of a database, by the database's address; makes one where there is none.
    ///
    /// `patience` is how long a call waits for a connection.
    ///
    /// # Errors
    /// `LEDGER_VERSION` for a schema that is older (run [`Self::migrate`]) or newer than ours;
    /// `LEDGER_CORRUPT` for a schema of that name that is no ledger's; else why the database cannot
    /// be used.
    pub async fn open(address: &str, patience: Duration) -> Result<Self, PortError> {
        Self::open_with(connect(address, patience).await?, POSTGRES, Clock::Server).await
    }

    /// Opens the ledger of a database; none if it has none, and none is made.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn find(address: &str, patience: Duration) -> Result<Option<Self>, PortError> {
        let database = connect(address, patience).await?;
        if schema::is_absent(&database).await? {
            return Ok(None);
        }
        Self::open_with(database, POSTGRES, Clock::Server).await.map(Some)
    }

    /// Brings a ledger's schema up to ours; makes the ledger where there is none. A repeat, also by
    /// several processes at once, is harmless.
    ///
    /// # Errors
    /// As [`Self::open`], but for an older schema.
    pub async fn migrate(address: &str, patience: Duration) -> Result<MigrationReport, PortError> {
        schema::migrate(&connect(address, patience).await?, POSTGRES).await
    }

    async fn open_with(
        database: Database,
        steps: &'static [Migration],
        clock: Clock,
    ) -> Result<Self, PortError> {
        schema::open(&database, steps).await?;
        Ok(Self { database, clock })
    }

    /// Begins to write, holding these rows, and reads the clock.
    async fn writing(
        &self,
        operation: &'static str,
        hold: Hold<'_>,
    ) -> Result<(Transaction, Timestamp), PortError> {
        let mut transaction = holding(&self.database, operation, hold).await?;
        match self.clock.now(&mut transaction).await {
            Ok(now) => Ok((transaction, now)),
            Err(failure) => transaction.end(Err(failure)).await,
        }
    }

    /// Begins to read, in a snapshot. A clock that is read in it is later than what is seen.
    async fn reading(&self, operation: &'static str) -> Result<Transaction, PortError> {
        self.database.begin(operation, READ).await
    }
}

async fn connect(address: &str, patience: Duration) -> Result<Database, PortError> {
    Database::open(address, Options { patience, ..Options::of(Role::Ledger) }).await
}

/// Begins to write, holding these rows; again if another one kept them for longer than a try waits.
/// Boxed, as what a compiler asks of a future that may move is proven here and not by each caller.
fn holding<'a>(
    database: &'a Database,
    operation: &'static str,
    hold: Hold<'a>,
) -> Pin<Box<dyn Future<Output = Result<Transaction, PortError>> + Send + 'a>> {
    Box::pin(async move {
        let mut tries = 0;
        loop {
            let mut transaction = database.begin(operation, WRITE).await?;
            let Err(failure) = hold.take(&mut transaction).await else { return Ok(transaction) };
            tries += 1;
            match transaction.end(Err(failure)).await {
                Err(error) if error.code == Code::LEDGER_LOCKED && tries < TRIES_MAX => {}
                ended => return ended,
            }
        }
    })
}

#[cfg(test)]
mod tests;
