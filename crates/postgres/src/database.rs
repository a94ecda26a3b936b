//! A database: where it is, and a few connections to it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Postgres, Row};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::failure::{Reach, Role, classify};
use crate::listener::Listener;
use crate::transaction::{Access, Durability, Transaction};

/// The oldest server that has what we need: transaction ids of 64 bits with an order.
const VERSION_MIN: i32 = 130_000;

/// A connection that stood longer than this is asked whether it is alive before it is used.
const TESTED_AFTER: Duration = Duration::from_secs(1);

/// Connections that stand unused go after this, so that an idle worker holds few.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What it is to us.
    pub role: Role,
    /// At most this many connections, 1 or more.
    pub connections: u32,
    /// How long a call waits for a connection.
    pub patience: Duration,
}

impl Options {
    /// A few connections, and five seconds.
    pub fn of(role: Role) -> Self {
        Self { role, connections: 4, patience: Duration::from_secs(5) }
    }
}

/// A database on a server. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    pool: PgPool,
    role: Role,
    /// Told with every failure, and never a secret: user, host and name.
    place: Arc<str>,
    durability: Durability,
    version: i32,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("role", &self.role).field("place", &self.place).finish()
    }
}

/// What is in an address, without its secrets.
fn place(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or(options.get_username());
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    format!("{}@{host}:{}/{name}", options.get_username(), options.get_port())
}

impl Database {
    /// Opens a database by its address (`postgres://user:password@host:port/name?sslmode=..`), and
    /// looks whether its server is one that we can use.
    ///
    /// # Errors
    /// A [`PortError`] that names the place, without secrets: the address is none, the server cannot
    /// be reached or is too old, the database's text is not UTF-8.
    pub async fn open(address: &str, options: Options) -> Result<Self, PortError> {
        const OPERATION: &str = "open a database";
        // The parser's own words may repeat a part of what it was given.
        let connect = PgConnectOptions::from_str(address).map_err(|_| {
            PortError::new(OPERATION, FailureClass::Halted, Code::CONFIG_INVALID)
                .detail("the address is not of the form postgres://user:password@host:port/name")
        })?;
        // A pooler refuses what it does not know at the start, and each transaction says it anyway.
        let connect = connect
            .extra_float_digits(None)
            .statement_cache_capacity(0)
            .application_name("truekeep")
            .disable_statement_logging();
        let place: Arc<str> = place(&connect).into();
        let pool = PgPoolOptions::new()
            .max_connections(options.connections.max(1))
            .acquire_timeout(options.patience)
            .idle_timeout(IDLE_MAX)
            .test_before_acquire(false)
            .before_acquire(|connection, about| {
                Box::pin(async move {
                    if about.idle_for > TESTED_AFTER {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(connect);
        let mut database =
            Self { pool, role: options.role, place, durability: Durability::default(), version: 0 };
        database.survey(OPERATION).await?;
        Ok(database)
    }

    /// Reads what does not change while a server runs.
    async fn survey(&mut self, operation: &'static str) -> Result<(), PortError> {
        let mut connection = self.connection(operation).await?;
        let row = sqlx::raw_sql(include_str!("../sql/server/survey.sql"))
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| self.failed(operation, Reach::Working, error))?;
        let read = || -> Result<(i32, String, i64, String), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
        };
        let (version, encoding, deadlock_ms, commits) =
            read().map_err(|error| self.failed(operation, Reach::Working, error))?;
        let refused = |detail: String| {
            PortError::new(operation, FailureClass::Halted, self.role.unavailable())
                .detail(format!("{}: {detail}", self.place))
        };
        if version < VERSION_MIN {
            let detail = format!(
                "the server is version {}; 13 is the oldest that can be used",
                version / 10_000
            );
            return Err(refused(detail));
        }
        if encoding != "UTF8" {
            return Err(refused(format!(
                "the database's encoding is {encoding}; only UTF8 can be used"
            )));
        }
        self.durability = Durability::of(deadlock_ms, &commits);
        self.version = version;
        Ok(())
    }

    /// The server's version, as `server_version_num` has it.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// User, host and name of the database; no secret.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What it is to us.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Begins a transaction with its own settings, and makes sure that they are in force.
    ///
    /// # Errors
    /// A [`PortError`]; nothing has happened then. One of class Retry if the server is a standby.
    pub async fn begin(
        &self,
        operation: &'static str,
        access: Access<'_>,
    ) -> Result<Transaction, PortError> {
        let connection = self.connection(operation).await?;
        Transaction::begin(self.clone(), connection, operation, access, self.durability).await
    }

    /// Listens on a channel, with one of the connections.
    ///
    /// # Errors
    /// A [`PortError`].
    pub async fn listen(
        &self,
        operation: &'static str,
        channel: &str,
    ) -> Result<Listener, PortError> {
        Listener::of(self, operation, channel).await
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    async fn connection(
        &self,
        operation: &'static str,
    ) -> Result<PoolConnection<Postgres>, PortError> {
        self.pool.acquire().await.map_err(|error| self.failed(operation, Reach::Working, error))
    }

    pub(crate) fn failed(
        &self,
        operation: &'static str,
        reach: Reach,
        error: sqlx::Error,
    ) -> PortError {
        classify(self.role, operation, reach, error).detail(&*self.place)
    }
}

#[cfg(test)]
mod tests;
