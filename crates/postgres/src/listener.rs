//! A connection that is told what others notify of.
//!
//! The one thing here that relies on a session: behind a pooler that divides transactions nothing is heard,
//! so whoever listens makes sure that he hears himself before he relies on it.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgListener, PgRow};
use truekeep_core::failure::PortError;

use crate::database::Database;
use crate::failure::Reach;

/// Listens on one channel. It ends with its connection.
#[derive(Debug)]
pub struct Listener {
    inner: PgListener,
    database: Database,
    operation: &'static str,
}

impl Listener {
    pub(crate) async fn of(
        database: &Database,
        operation: &'static str,
        channel: &str,
    ) -> Result<Self, PortError> {
        let failed = |error| database.failed(operation, Reach::Working, error);
        let mut inner = PgListener::connect_with(database.pool()).await.map_err(failed)?;
        inner.eager_reconnect(false);
        inner.listen(channel).await.map_err(failed)?;
        Ok(Self { inner, database: database.clone(), operation })
    }

    /// Waits until something was notified of; returns false if the connection was lost instead. Nothing
    /// is lost if it is given up.
    ///
    /// # Errors
    /// The server's.
    pub async fn heard(&mut self) -> Result<bool, PortError> {
        let heard = self.inner.try_recv().await;
        heard
            .map(|heard| heard.is_some())
            .map_err(|error| self.database.failed(self.operation, Reach::Working, error))
    }

    /// The one row of a statement, in this session.
    ///
    /// # Errors
    /// The server's.
    pub async fn row(&mut self, sql: impl Into<String>) -> Result<PgRow, PortError> {
        let row = sqlx::raw_sql(AssertSqlSafe(sql.into())).fetch_one(&mut self.inner).await;
        row.map_err(|error| self.database.failed(self.operation, Reach::Working, error))
    }
}
