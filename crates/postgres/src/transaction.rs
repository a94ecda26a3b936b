//! One transaction: its settings come with it and are read back, since what a session was told is
//! another's after a pooler changed the connection.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row};
use truekeep_core::failure::{FailureClass, PortError};

use crate::database::Database;
use crate::failure::{Failure, Reach, Role};

/// What a transaction is for.
#[derive(Debug, Clone, Copy)]
pub enum Access<'a> {
    /// Reads all it reads in one snapshot, which is taken after these tables are locked against
    /// being rewritten: a rewrite makes live rows look gone to a snapshot that is older.
    Snapshot {
        /// Tables, quoted.
        of: &'a [String],
        /// How long a statement may take.
        statement_max: Duration,
    },
    /// Writes; each statement sees what was committed before it.
    Write {
        /// How long a statement may take.
        statement_max: Duration,
    },
}

/// What commits and lock waits of ours are told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Durability {
    lock_ms: i64,
    /// The server waits for a standby to apply: more than we would ask for.
    applied: bool,
}

/// We give up a lock long before the server looks who waits for whom, so that its victim is never
/// the application.
const LOCK_MS_MAX: i64 = 200;

impl Durability {
    pub fn of(deadlock_ms: i64, commits: &str) -> Self {
        Self {
            lock_ms: (deadlock_ms / 2).clamp(1, LOCK_MS_MAX),
            applied: commits == "remote_apply",
        }
    }

    fn commits(self) -> &'static str {
        if self.applied { "remote_apply" } else { "on" }
    }
}

/// How long a transaction of ours may stand idle before the server ends it: a worker that hangs
/// holds no lock for longer.
const IDLE_MS_MAX: u32 = 60_000;

/// The same in a ledger, where nothing is done between two statements: whoever is cut off there must
/// not keep another from a lease that has ended.
const LEDGER_IDLE_MS_MAX: u32 = 5_000;

/// The settings that every transaction brings, each with the value that it must read back.
fn settings(role: Role, access: Access<'_>, durability: Durability) -> Vec<(&'static str, String)> {
    let statement_max = match access {
        Access::Snapshot { statement_max, .. } | Access::Write { statement_max } => statement_max,
    };
    let ms = |ms: u128| format!("{ms}ms");
    let idle_max = if role == Role::Ledger { LEDGER_IDLE_MS_MAX } else { IDLE_MS_MAX };
    let mut settings = vec![
        // A policy that would hide rows is an error then.
        ("row_security", "off".into()),
        ("lock_timeout", ms(durability.lock_ms.unsigned_abs().into())),
        ("statement_timeout", ms(statement_max.as_millis().max(1))),
        ("idle_in_transaction_session_timeout", ms(idle_max.into())),
        // What we were told is committed is on disk.
        ("synchronous_commit", durability.commits().into()),
        // Texts of values are the same whatever the session, the role or the database prefers.
        ("TimeZone", "UTC".into()),
        ("DateStyle", "ISO, MDY".into()),
        ("IntervalStyle", "postgres".into()),
        ("bytea_output", "hex".into()),
        ("extra_float_digits", "1".into()),
        // Compiling a plan costs more than any of our statements gains by it.
        ("jit", "off".into()),
    ];
    if role == Role::Ledger {
        // Nothing of a user's is run there, and no function or operator of somebody else's may stand
        // in front of the server's.
        settings.push(("search_path", "pg_catalog".into()));
    }
    settings
}

fn opening(access: Access<'_>, settings: &[(&str, String)]) -> String {
    let mut sql = String::from(match access {
        Access::Snapshot { .. } => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;",
        Access::Write { .. } => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;",
    });
    for (name, value) in settings {
        sql.push_str(&format!("SET LOCAL {name} = '{value}';"));
    }
    if let Access::Snapshot { of, .. } = access
        && !of.is_empty()
    {
        sql.push_str(&format!("LOCK TABLE {} IN ACCESS SHARE MODE;", of.join(", ")));
    }
    sql.push_str(&read_back(settings));
    sql
}

/// One row: whether each setting is as it should be, and whether the server is a standby.
fn read_back(settings: &[(&str, String)]) -> String {
    let as_it_should_be = settings.iter().map(|(name, value)| {
        // A duration is shown in the unit that suits it.
        if value.ends_with("ms") {
            format!("current_setting('{name}')::interval = '{value}'::interval")
        } else {
            format!("current_setting('{name}') = '{value}'")
        }
    });
    let all: Vec<String> = as_it_should_be.collect();
    format!("SELECT {}, pg_is_in_recovery()", all.join(" AND "))
}

/// A transaction. One that is dropped closes its connection, and the server rolls it back.
#[derive(Debug)]
pub struct Transaction {
    database: Database,
    connection: PoolConnection<Postgres>,
    operation: &'static str,
    settings: Vec<(&'static str, String)>,
    /// What an unanswered commit means: nothing, if nothing was written.
    committing: Reach,
    ended: bool,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.close_on_drop();
        }
    }
}

impl Transaction {
    pub(crate) async fn begin(
        database: Database,
        connection: PoolConnection<Postgres>,
        operation: &'static str,
        access: Access<'_>,
        durability: Durability,
    ) -> Result<Self, PortError> {
        let settings = settings(database.role(), access, durability);
        let sql = opening(access, &settings);
        let committing = match access {
            Access::Snapshot { .. } => Reach::Working,
            Access::Write { .. } => Reach::Committing,
        };
        let mut transaction =
            Self { database, connection, operation, settings, committing, ended: false };
        let begun = transaction.judged(sql).await;
        match begun {
            Ok(()) => Ok(transaction),
            Err(failure) => Err(transaction.give_up(failure).await),
        }
    }

    /// Makes sure, in the middle of a transaction, that its settings are still in force.
    ///
    /// # Errors
    /// That they are not, or that the server became a standby.
    pub async fn confirm(&mut self) -> Result<(), Failure> {
        let sql = read_back(&self.settings);
        self.judged(sql).await
    }

    async fn judged(&mut self, sql: String) -> Result<(), Failure> {
        let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut *self.connection).await?;
        let (in_force, standby): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
        let detail = if standby {
            "the server is a standby: it follows another one, and may be behind"
        } else if !in_force {
            "the settings of a transaction are not in force: is there a pooler that divides transactions?"
        } else {
            return Ok(());
        };
        let class = if standby { FailureClass::Retry } else { FailureClass::Halted };
        let error = PortError::new(self.operation, class, self.database.role().unavailable());
        Err(error.detail(format!("{}: {detail}", self.database.place())).into())
    }

    /// A statement with parameters, to be bound and run on [`Self::connection`].
    pub fn query(sql: impl Into<std::sync::Arc<str>>) -> Query<'static, Postgres, PgArguments> {
        sqlx::query(AssertSqlSafe(sql.into())).persistent(false)
    }

    /// Runs statements without parameters; none of them may be a user's.
    ///
    /// # Errors
    /// The server's.
    pub async fn run(&mut self, sql: impl Into<String>) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(&mut *self.connection).await?;
        Ok(())
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// The server's.
    pub async fn rows(
        &mut self,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        query.fetch_all(&mut *self.connection).await
    }

    /// The one row of a statement.
    ///
    /// # Errors
    /// The server's; that there is none.
    pub async fn row(
        &mut self,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<PgRow, sqlx::Error> {
        query.fetch_one(&mut *self.connection).await
    }

    /// The connection, for statements that are read row by row.
    pub fn connection(&mut self) -> &mut sqlx::PgConnection {
        &mut self.connection
    }

    /// Runs what may fail, and undoes only that if it does.
    ///
    /// # Errors
    /// That it could not be undone.
    pub async fn undoing<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, sqlx::Error>,
    ) -> Result<Result<T, sqlx::Error>, sqlx::Error> {
        self.run("SAVEPOINT truekeep").await?;
        let done = work(self).await;
        let end = if done.is_ok() {
            "RELEASE truekeep"
        } else {
            "ROLLBACK TO truekeep; RELEASE truekeep"
        };
        match (self.run(end).await, &done) {
            // What broke the connection says more than that it is broken.
            (Err(_), Err(_)) => Ok(done),
            (Err(error), Ok(_)) => Err(error),
            (Ok(()), _) => Ok(done),
        }
    }

    /// Commits if the work went well, else rolls back.
    ///
    /// # Errors
    /// The work's; the commit's, of class Unknown if no answer came.
    pub async fn end<T>(mut self, work: Result<T, Failure>) -> Result<T, PortError> {
        let answer = match work {
            Ok(answer) => answer,
            Err(failure) => return Err(self.give_up(failure).await),
        };
        // A transaction that a failure has spoiled is rolled back by its commit, without an error;
        // each failure was answered, so there is none here.
        match self.run("COMMIT").await {
            Ok(()) => {
                self.ended = true;
                Ok(answer)
            }
            Err(error) => Err(self.database.failed(self.operation, self.committing, error)),
        }
    }

    async fn give_up(mut self, failure: Failure) -> PortError {
        let alive = match &failure {
            Failure::Port(_) => true,
            Failure::Postgres(error) => error.as_database_error().is_some(),
        };
        // Else it is closed when it is dropped, and the server rolls back.
        self.ended = alive && self.run("ROLLBACK").await.is_ok();
        match failure {
            Failure::Port(error) => error,
            Failure::Postgres(error) => self.database.failed(self.operation, Reach::Working, error),
        }
    }
}
