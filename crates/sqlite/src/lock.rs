//! Whether a file can be written now.

use std::path::Path;
use std::time::Duration;

use rusqlite::ffi;
use truekeep_core::failure::PortError;

use crate::database::{Access, Database, Options};
use crate::failure::Role;

/// Takes the write lock of a file that is there and gives it back; returns its journal mode.
///
/// # Errors
/// Says that it may not be written, or that somebody held the lock for longer than `busy`.
pub async fn write_lock(role: Role, path: &Path, busy: Duration) -> Result<String, PortError> {
    let database = Database::open(path, Options { role, access: Access::Guest, busy }).await?;
    let lock = |connection: &mut rusqlite::Connection| {
        if connection.is_readonly(rusqlite::MAIN_DB)? {
            // To begin a write would begin a read there, and say nothing.
            let readonly = ffi::Error::new(ffi::SQLITE_READONLY);
            return Err(rusqlite::Error::SqliteFailure(readonly, None).into());
        }
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
        Ok(connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?)
    };
    database.call("take the write lock", lock).await
}
