//! The initial load against a bare loop of the same reads and batched upserts.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::ToSqlOutput::Borrowed;
use rusqlite::{Connection, params};
use truekeep_engine::{Ending, Settings, Silent, Stopper, Worker};

use crate::database;
use crate::measure::{Bar, Figure, timed};

/// Rows of a batch of the bare loop: as many as ours begin with.
const BATCH: usize = 1_000;

/// Loads all rows, ours and bare.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, mirror, ledger] = database::files(folder.path());
    database::make(&source, rows)?;
    let bare_mirror = folder.path().join("bare.db");
    let ((), bare) = timed(|| bare_loop(&source, &bare_mirror))?;
    let runtime = database::runtime()?;
    let before = std::fs::metadata(&source)?.len();
    let port = runtime.block_on(database::source(&source))?;
    let ((), fill) = timed(|| runtime.block_on(database::capture(&port)))?;
    let (copied, ours) = timed(|| runtime.block_on(follow(&port, &mirror, &ledger)))?;
    if copied != rows {
        return Err(format!("{copied} of {rows} rows in the mirror").into());
    }
    let grown = std::fs::metadata(&source)?.len().saturating_sub(before);
    let size = std::fs::metadata(source.with_extension("db-wal")).map_or(0, |wal| wal.len());
    Ok(vec![
        Figure::rates("initial load", rows, ours, bare, Bar::AtLeast(0.7)),
        Figure::alone("capture fill", rows as f64 / fill.as_secs_f64(), "rows/s", Bar::Stated),
        Figure::alone(
            "feed, with its log, per row",
            (grown + size) as f64 / rows as f64,
            "bytes",
            Bar::Stated,
        ),
    ])
}

fn bare_loop(source: &Path, mirror: &Path) -> rusqlite::Result<()> {
    let from = Connection::open(source)?;
    let mut to = database::application(mirror, "FULL")?;
    to.execute_batch(
        "CREATE TABLE product (_key TEXT PRIMARY KEY NOT NULL, id, name, city, price, stock, body,
            created, changed, _rules INTEGER NOT NULL, _version INTEGER NOT NULL)",
    )?;
    let mut select = from.prepare("SELECT * FROM product ORDER BY id")?;
    let mut rows = select.query([])?;
    loop {
        let batch = to.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut upsert = batch.prepare_cached(
            "INSERT INTO product VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)
             ON CONFLICT (_key) DO UPDATE SET id = excluded.id, name = excluded.name,
                city = excluded.city, price = excluded.price, stock = excluded.stock,
                body = excluded.body, created = excluded.created, changed = excluded.changed,
                _rules = excluded._rules, _version = excluded._version",
        )?;
        let mut sent = 0;
        while sent < BATCH {
            let Some(row) = rows.next()? else { break };
            let id: i64 = row.get(0)?;
            upsert.execute(params![
                id.to_string(),
                id,
                Borrowed(row.get_ref(1)?),
                Borrowed(row.get_ref(2)?),
                Borrowed(row.get_ref(3)?),
                Borrowed(row.get_ref(4)?),
                Borrowed(row.get_ref(5)?),
                Borrowed(row.get_ref(6)?),
                Borrowed(row.get_ref(7)?)
            ])?;
            sent += 1;
        }
        drop(upsert);
        batch.commit()?;
        if sent < BATCH {
            return Ok(());
        }
    }
}

/// Follows to the end and says how many rows the mirror has.
pub async fn follow(
    source: &impl database::Source,
    mirror: &Path,
    ledger: &Path,
) -> Result<u64, Box<dyn Error>> {
    let pipeline = database::pipeline(source, database::mirror(mirror).await?)?;
    let ports = database::ports(ledger).await?;
    let settings = Settings { lease_ttl: Duration::from_secs(30), ..Settings::default() };
    let worker = Worker::new(ports, vec![pipeline], settings, Arc::new(Silent));
    let (_stopper, stop) = Stopper::new();
    let report = worker.run_once(stop).await;
    if report.iter().any(|(_, ending)| *ending != Ending::Drained) {
        return Err(format!("{report:?}").into());
    }
    let count: i64 =
        Connection::open(mirror)?
            .query_row("SELECT count(*) FROM product", [], |row| row.get(0))?;
    Ok(u64::try_from(count)?)
}
