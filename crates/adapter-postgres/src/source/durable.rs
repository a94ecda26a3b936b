//! Makes sure that what a snapshot saw is on disk before it is used.
//!
//! Invariant: S2. The log's insert position is read after the last snapshot that anything of an
//! answer came from; the answer is given once that position is flushed (X42). It may stay above
//! anything that can be flushed (X47), or wait for the log writer after an asynchronous commit: then
//! a record of our own is committed synchronously, which flushes everything before it.

use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use super::{PostgresSource, READ_MAX, WRITE_MAX};

/// How long a synchronous commit that is on its way is waited for.
const FLUSHED_WITHIN: Duration = Duration::from_millis(2);

/// Whether everything up to now is on disk.
async fn is_flushed(reading: &mut Transaction) -> Result<bool, Failure> {
    let query = Transaction::query(include_str!("../../sql/server/settle.sql"));
    Ok(reading.row(query).await?.try_get(1)?)
}

impl PostgresSource {
    /// Ends a read: its answer is given when nothing of it can be lost any more.
    pub(super) async fn settled<T>(
        &self,
        mut reading: Transaction,
        work: Result<T, Failure>,
    ) -> Result<T, PortError> {
        let settled = match work {
            Ok(answer) => is_flushed(&mut reading).await.map(|flushed| (answer, flushed)),
            Err(failure) => Err(failure),
        };
        let (answer, flushed) = reading.end(settled).await?;
        if !flushed {
            self.flush().await?;
        }
        Ok(answer)
    }

    async fn flush(&self) -> Result<(), PortError> {
        const OPERATION: &str = "make sure that what was read is on disk";
        tokio::time::sleep(FLUSHED_WITHIN).await;
        let access = truekeep_postgres::Access::Snapshot { of: &[], statement_max: READ_MAX };
        let mut reading = self.database.begin(OPERATION, access).await?;
        let looked = is_flushed(&mut reading).await;
        if reading.end(looked).await? {
            return Ok(());
        }
        // It waits for a disk, not for a lock.
        let mut writing = self.writing(OPERATION, WRITE_MAX * 100).await?;
        let query = Transaction::query(include_str!("../../sql/server/flush.sql"));
        let written = writing.row(query).await.map(drop).map_err(Failure::from);
        writing.end(written).await
    }
}
