//! The databases that are measured: 8 columns, about 300 bytes a row, two indexes beside the key.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use truekeep::clock::SystemClock;
use truekeep::entropy::RandomEntropy;
use truekeep::spill::FolderSpill;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteLedger, SqliteSource, Watch};
use truekeep_core::compare::Owns;
use truekeep_core::ports::{Capture, Feed, Records, Sink};
use truekeep_core::{Fingerprint, PipelineName, ScopeId};
use truekeep_engine::{Pipeline, Ports};
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

/// The columns.
pub const COLUMNS: [&str; 8] =
    ["id", "name", "city", "price", "stock", "body", "created", "changed"];

/// How long a lock is waited for.
pub const BUSY: Duration = Duration::from_secs(10);

/// The table and its indexes.
pub const SCHEMA: &str = "
    CREATE TABLE product (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, price REAL NOT NULL,
        stock INTEGER NOT NULL, body TEXT NOT NULL, created INTEGER NOT NULL, changed INTEGER NOT NULL
    );
    CREATE INDEX product_name ON product(name);
    CREATE INDEX product_city ON product(city, price);";

/// Opens a database of an application: WAL, with this `synchronous`.
pub fn application(path: &Path, synchronous: &str) -> rusqlite::Result<Connection> {
    let db = Connection::open(path)?;
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", synchronous)?;
    Ok(db)
}

/// The statement that adds row `?1`.
pub const INSERT: &str = "
    INSERT INTO product VALUES (?1, 'product number ' || ?1, 'city ' || (?1 * 7919 % 5000),
        ?1 * 0.25, ?1 % 1000, printf('%.*c', 200, char(97 + ?1 % 26)), 1700000000 + ?1, 0)";

/// Makes a database of so many rows.
pub fn make(path: &Path, rows: u64) -> rusqlite::Result<()> {
    make_with(path, rows, INSERT)
}

/// Makes a database of so many rows, each by this statement.
pub fn make_with(path: &Path, rows: u64, insert: &str) -> rusqlite::Result<()> {
    let mut db = application(path, "OFF")?;
    let all = db.transaction()?;
    all.execute_batch(SCHEMA)?;
    {
        let mut insert = all.prepare(insert)?;
        for id in 1..=rows {
            insert.execute([i64::try_from(id).unwrap_or(i64::MAX)])?;
        }
    }
    all.commit()?;
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
}

/// The source over such a database.
pub async fn source(path: &Path) -> Result<SqliteSource, Box<dyn Error>> {
    watching(path, Vec::new()).await
}

/// The source over such a database, beside related tables.
pub async fn watching(path: &Path, watch: Vec<Watch>) -> Result<SqliteSource, Box<dyn Error>> {
    let spec = RelationSpec {
        table: "product".into(),
        key: Vec::new(),
        document: Projection::Columns(Vec::new()),
        live_when: None,
        watch,
        normal_form: false,
        document_max: 16 << 20,
    };
    Ok(SqliteSource::open(path, spec, BUSY).await?)
}

/// Installs capture and fills it.
pub async fn capture(source: &impl Source) -> Result<(), Box<dyn Error>> {
    source.install().await?;
    while !source.fill().await?.done {}
    Ok(())
}

/// The mirror, one column a value.
pub async fn mirror(path: &Path) -> Result<SqliteSink, Box<dyn Error>> {
    let columns =
        COLUMNS.map(|name| MirrorColumn { name: name.into(), declared: String::new() }).to_vec();
    let spec = MirrorSpec { table: "product".into(), layout: Layout::Columns(columns) };
    Ok(SqliteSink::open(path, spec, BUSY).await?)
}

/// The ports of a worker with its ledger in a file.
pub async fn ports(path: &Path) -> Result<Ports, Box<dyn Error>> {
    let ledger = Arc::new(SqliteLedger::open(path, BUSY).await?);
    Ok(Ports {
        ledger: ledger.clone(),
        leases: ledger.clone(),
        items: ledger,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(RandomEntropy),
        spill: Arc::new(FolderSpill::new(None)),
    })
}

/// A source of any kind.
pub trait Source: Feed + Records + Capture + Clone + 'static {}

impl<S: Feed + Records + Capture + Clone + 'static> Source for S {}

/// The pipeline from source to sink.
pub fn pipeline(
    source: &impl Source,
    sink: impl Sink + 'static,
) -> Result<Pipeline, Box<dyn Error>> {
    Ok(Pipeline {
        scope: ScopeId::whole(PipelineName::parse("product")?),
        fingerprint: Fingerprint::parse("bench")?,
        rules: "{}".into(),
        feed: Arc::new(source.clone()),
        records: Arc::new(source.clone()),
        capture: Arc::new(source.clone()),
        reconcile_every: None,
        owns: Owns::All,
        rate_max: None,
        source_went_back: Default::default(),
        sink: Arc::new(sink),
    })
}

/// The files of one measurement.
pub fn files(folder: &Path) -> [PathBuf; 3] {
    ["source.db", "mirror.db", "ledger.db"].map(|name| folder.join(name))
}

/// A runtime for a measurement.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
