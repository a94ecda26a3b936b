//! What version a ledger's schema has, and the steps that bring it up to ours.
//!
//! The version is in the ledger's row, and changes in the transaction of the step.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_migrations::{Migration, MigrationReport, newest};
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Database, Failure, Transaction};

use super::{Hold, READ, holding, rows, sql};

const OPEN: &str = "open the ledger";

/// Whether a database has no ledger, and may be given one.
pub(super) async fn is_absent(database: &Database) -> Result<bool, PortError> {
    Ok(found(database).await? == 0)
}

/// Makes sure that the ledger's schema is ours, and makes one where there is none.
pub(super) async fn open(
    database: &Database,
    steps: &'static [Migration],
) -> Result<(), PortError> {
    let found = match found(database).await? {
        0 => step_all(database, OPEN, steps).await?.after,
        found => found,
    };
    let ours = newest(steps);
    if found == ours {
        return Ok(());
    }
    let advice = if found < ours { ": run `truekeep migrate`" } else { "" };
    Err(mismatch(OPEN, found, ours, advice))
}

/// Brings a ledger up to the last of these steps.
pub(super) async fn migrate(
    database: &Database,
    steps: &'static [Migration],
) -> Result<MigrationReport, PortError> {
    const OPERATION: &str = "migrate the ledger";
    let report = step_all(database, OPERATION, steps).await?;
    let ours = newest(steps);
    if report.after > ours {
        return Err(mismatch(OPERATION, report.after, ours, ""));
    }
    Ok(report)
}

/// The version, read in a transaction that writes nothing.
async fn found(database: &Database) -> Result<u32, PortError> {
    let mut reading = database.begin(OPEN, READ).await?;
    let found = version(&mut reading).await.map(|(_, version)| version);
    reading.end(found).await
}

/// Whether the schema is there, and the version of the ledger in it; 0 if it is empty.
async fn version(transaction: &mut Transaction) -> Result<(bool, u32), Failure> {
    let row = transaction.row(Transaction::query(sql::SCHEMA_FIND)).await?;
    let (there, ours, filled) =
        (row.try_get("there")?, row.try_get::<bool, _>("ours")?, row.try_get::<bool, _>("filled")?);
    if !ours && !filled {
        return Ok((there, 0));
    }
    if !ours {
        return Err(PortError::new(OPEN, FailureClass::Halted, Code::LEDGER_CORRUPT)
            .detail("there is a schema truekeep_ledger, but no ledger in it")
            .into());
    }
    let query = Transaction::query(sql::SCHEMA_VERSION);
    let version = rows::first(transaction, query, rows::schema_version).await?;
    Ok((there, rows::expected(version, "row that says what version it is")?))
}

/// Takes the steps that are missing, each in a transaction that looks again which is next: of
/// several processes one takes it. A new ledger gets all of them in one transaction, so that nobody
/// finds it half made.
async fn step_all(
    database: &Database,
    operation: &'static str,
    steps: &'static [Migration],
) -> Result<MigrationReport, PortError> {
    let mut before = None;
    loop {
        let mut transaction = holding(database, operation, Hold::Schema).await?;
        let taken = step(&mut transaction, steps).await;
        let (found, done) = transaction.end(taken).await?;
        let before = *before.get_or_insert(found);
        if done {
            return Ok(MigrationReport { before, after: found });
        }
    }
}

/// The version that was found, and whether no step was left to be taken.
async fn step(
    transaction: &mut Transaction,
    steps: &'static [Migration],
) -> Result<(u32, bool), Failure> {
    let (there, found) = version(transaction).await?;
    let taken = steps.iter().filter(|step| step.number <= found).count();
    let next = match steps.len().saturating_sub(taken) {
        0 => return Ok((found, true)),
        _ if found == 0 => steps,
        _ => &steps[taken..=taken],
    };
    if !there {
        transaction.run(sql::SCHEMA_CREATE).await?;
    }
    for step in next {
        transaction.run(step.sql).await?;
        let query = Transaction::query(sql::SCHEMA_MARK).bind(i64::from(step.number));
        rows::execute(transaction, query).await?;
    }
    Ok((found, false))
}

fn mismatch(operation: &'static str, found: u32, ours: u32, advice: &str) -> PortError {
    PortError::new(operation, FailureClass::Halted, Code::LEDGER_VERSION)
        .detail(format!("its schema is version {found}, this program knows {ours}{advice}"))
}
