//! What version a ledger's schema has, and the steps that bring it up to ours.
//!
//! The version is SQLite's `user_version`, and `application_id` says that the file is a ledger; both
//! change in the transaction of the step.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_migrations::{Migration, MigrationReport, newest};
use truekeep_sqlite::{Access, Database, Failure, Options, Role};

use super::sql;

/// "tklg": what a ledger's file carries in its header.
const APPLICATION_ID: i32 = 0x74_6b_6c_67;

/// Opens a ledger whose schema is ours, or makes one.
pub(super) async fn open(
    path: &Path,
    busy: Duration,
    steps: &'static [Migration],
) -> Result<Database, PortError> {
    const OPERATION: &str = "open the ledger";
    let writer = connect(path, busy).await?;
    writer
        .call(OPERATION, move |connection| {
            let found = match version(connection)? {
                0 => step_all(connection, steps)?.after,
                found => found,
            };
            let ours = newest(steps);
            if found == ours {
                return Ok(());
            }
            let advice = if found < ours { ": run `truekeep migrate`" } else { "" };
            Err(mismatch(OPERATION, found, ours, advice).into())
        })
        .await?;
    Ok(writer)
}

/// Brings a ledger up to the last of these steps.
pub(super) async fn migrate(
    path: &Path,
    busy: Duration,
    steps: &'static [Migration],
) -> Result<MigrationReport, PortError> {
    const OPERATION: &str = "migrate the ledger";
    let writer = connect(path, busy).await?;
    writer
        .call(OPERATION, move |connection| {
            let report = step_all(connection, steps)?;
            let ours = newest(steps);
            if report.after > ours {
                return Err(mismatch(OPERATION, report.after, ours, "").into());
            }
            Ok(report)
        })
        .await
}

/// Connects for writing, but only to a file that is a ledger or empty: connecting for writing
/// changes a file's journal mode, and another program's file is not ours to change.
async fn connect(path: &Path, busy: Duration) -> Result<Database, PortError> {
    let options = |access| Options { role: Role::Ledger, access, busy };
    if path.is_file() {
        let guest = Database::open(path, options(Access::ReadOnly)).await?;
        guest.call("open the ledger", |connection| version(connection)).await?;
    }
    Database::open(path, options(Access::Own)).await
}

/// The version of a ledger; 0 for an empty file.
fn version(connection: &Connection) -> Result<u32, Failure> {
    let (application, version, tables) = connection
        .prepare_cached(sql::SCHEMA_VERSION)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, u64>(2)?)))?;
    match (application, version, tables) {
        (APPLICATION_ID, 1.., _) => Ok(version),
        (0, 0, 0) => Ok(0),
        _ => Err(PortError::new("open the ledger", FailureClass::Halted, Code::LEDGER_CORRUPT)
            .detail("the file is a database, but no ledger")
            .into()),
    }
}

/// Takes the steps that are missing, each in a transaction that looks again which is next: of
/// several processes one takes it. A new ledger gets all of them in one transaction, so that nobody
/// finds it half made.
fn step_all(connection: &mut Connection, steps: &[Migration]) -> Result<MigrationReport, Failure> {
    let mut before = None;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = version(&transaction)?;
        let before = *before.get_or_insert(found);
        let mut next = steps.iter().filter(|step| step.number > found).peekable();
        if next.peek().is_none() {
            return Ok(MigrationReport { before, after: found });
        }
        let count = if found == 0 { steps.len() } else { 1 };
        for step in next.take(count) {
            transaction.execute_batch(step.sql)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", step.number)?;
        }
        transaction.commit()?;
    }
}

fn mismatch(operation: &'static str, found: u32, ours: u32, advice: &str) -> PortError {
    PortError::new(operation, FailureClass::Halted, Code::LEDGER_VERSION)
        .detail(format!("its schema is version {found}, this program knows {ours}{advice}"))
}
