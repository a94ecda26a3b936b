//! The memory of every procedure is bounded by the page, not by the table (M2).

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use rusqlite::Connection;
use truekeep::clock::SystemClock;
use truekeep::entropy::RandomEntropy;
use truekeep::reconcile::Wish;
use truekeep::spill::FolderSpill;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteLedger, SqliteSource};
use truekeep_core::code::Code;
use truekeep_core::compare::Owns;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Applied, Archive, Batch, Capabilities, Capture, Confirmation, Delivery, Entry, Listing, Mark,
    Receipt, Sink,
};
use truekeep_core::reconcile::Terms;
use truekeep_core::{Fingerprint, Key, PipelineName, Rank, RulesNumber, ScopeId, Version, limits};
use truekeep_engine::{Ending, Pipeline, Ports, Settings, Silent, Stopper, Worker};
use truekeep_sink_sqlite::{Layout, MirrorSpec, SqliteSink};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const BUSY: Duration = Duration::from_secs(10);

type Answer<T> = Result<T, Box<dyn Error>>;

fn make(path: &Path, rows: u32) -> Answer<()> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)")?;
    db.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO t SELECT i, 'row number ' || i, printf('%.*c', 500, 'x') FROM n",
        [rows],
    )?;
    Ok(())
}

/// The most that was allocated at once by this work, in bytes.
fn peak<T>(work: impl FnOnce() -> Answer<T>) -> Answer<usize> {
    ALLOCATED.reset_peak_usage();
    let before = ALLOCATED.current_usage();
    work()?;
    Ok(ALLOCATED.peak_usage().saturating_sub(before))
}

async fn source(path: &Path) -> Answer<SqliteSource> {
    let spec = RelationSpec {
        table: "t".into(),
        key: Vec::new(),
        document: Projection::Columns(Vec::new()),
        live_when: None,
        watch: Vec::new(),
        normal_form: false,
        document_max: 1 << 20,
    };
    Ok(SqliteSource::open(path, spec, BUSY).await?)
}

async fn worker(folder: &Path, order: Order) -> Answer<Worker> {
    let source = source(&folder.join("source.db")).await?;
    let layout = Layout::Json { column: "document".into() };
    let spec = MirrorSpec { table: "t".into(), layout };
    let sink = SqliteSink::open(&folder.join("mirror.db"), spec, BUSY).await?;
    let ledger = Arc::new(SqliteLedger::open(&folder.join("ledger.db"), BUSY).await?);
    let pipeline = Pipeline {
        scope: ScopeId::whole(PipelineName::parse("t")?),
        fingerprint: Fingerprint::parse("rules")?,
        rules: "{}".into(),
        feed: Arc::new(source.clone()),
        records: Arc::new(source.clone()),
        capture: Arc::new(source),
        sink: match order {
            Order::OfKeys => Arc::new(sink),
            Order::OfRows => Arc::new(ByRow(sink, folder.join("mirror.db"))),
        },
        reconcile_every: None,
        owns: Owns::All,
        rate_max: None,
        source_went_back: Default::default(),
    };
    let ports = Ports {
        ledger: ledger.clone(),
        leases: ledger.clone(),
        items: ledger,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(RandomEntropy),
        spill: Arc::new(FolderSpill::new(None)),
    };
    // Pages adapt up to this size; from the beginning, so that few keys reach it as well.
    // The sort's memory is small, so that few keys fill it as well, and many need more than one pass.
    let sort_bytes = SORT_BYTES;
    let settings = Settings { page_rows: limits::PAGE_ROWS_MAX, sort_bytes, ..Settings::default() };
    Ok(Worker::new(ports, vec![pipeline], settings, Arc::new(Silent)))
}

/// The memory of the sort.
const SORT_BYTES: usize = 128 << 10;

/// How the mirror lists.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// As it does.
    OfKeys,
    /// By its rows, which is no order of keys.
    OfRows,
}

/// A mirror that lists in the order of its rows.
#[derive(Debug)]
struct ByRow(SqliteSink, PathBuf);

#[async_trait]
impl Sink for ByRow {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ordered_listing: false, ..self.0.capabilities() }
    }
    async fn prepare(&self) -> Result<(), PortError> {
        self.0.prepare().await
    }
    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        self.0.mark().await
    }
    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        self.0.apply(batch).await
    }
    async fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError> {
        self.0.confirm(receipt).await
    }
    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        self.0.verify(deliveries).await
    }
    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        let entries = by_row(&self.1, after.as_ref(), limit).map_err(|error| {
            PortError::new("list by row", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
        })?;
        Ok(Listing { end: entries.len() < limit as usize, entries })
    }
}

fn by_row(path: &Path, after: Option<&Key>, limit: u32) -> rusqlite::Result<Vec<Entry>> {
    let mirror = Connection::open(path)?;
    let mut list = mirror.prepare(
        "SELECT _key, _rules, _version FROM t
         WHERE rowid > ifnull((SELECT rowid FROM t WHERE _key = ?1), 0) ORDER BY rowid LIMIT ?2",
    )?;
    let entry = |row: &rusqlite::Row<'_>| {
        let (rules, version) = (RulesNumber::new(row.get(1)?), Version::new(row.get(2)?));
        let rank = Some(Rank { rules, version });
        Ok(Entry { key: Key::new(row.get::<_, String>(0)?), rank })
    };
    list.query_map((after.map(Key::as_str), limit), entry)?.collect()
}

async fn drain(folder: &Path, order: Order) -> Answer<()> {
    let (_stopper, stop) = Stopper::new();
    let report = worker(folder, order).await?.run_once(stop).await;
    assert!(report.iter().all(|(_, ending)| *ending == Ending::Drained), "{report:?}");
    Ok(())
}

/// A reconcile that finds a twentieth missing, to its good end.
async fn reconcile(folder: &Path, order: Order, terms: Terms) -> Answer<()> {
    let ledger = SqliteLedger::open(&folder.join("ledger.db"), BUSY).await?;
    let name = PipelineName::parse("t")?;
    let wish = Wish::make(&ledger, &RandomEntropy, &name, terms).await?;
    drain(folder, order).await?;
    let standing = wish.standing(&ledger, &RandomEntropy).await?;
    assert!(!standing.active && standing.code.is_none(), "{standing:?}");
    let certificate = ledger.certificate(&ScopeId::whole(name)).await?.ok_or("a certificate")?;
    assert_eq!(certificate.state.as_str(), "complete");
    Ok(())
}

/// Peaks of the fill, of the initial load, and of reconciles.
fn peaks(rows: u32) -> Answer<[usize; 5]> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    make(&folder.join("source.db"), rows)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let fill = peak(|| {
        runtime.block_on(async {
            let source = source(&folder.join("source.db")).await?;
            source.install().await?;
            while !source.fill().await?.done {}
            Ok(())
        })
    })?;
    let load = peak(|| runtime.block_on(drain(folder, Order::OfKeys)))?;
    let mirror = Connection::open(folder.join("mirror.db"))?;
    let mut of_reconciles = [0; 3];
    let deep = Terms { deep: true, ..Terms::default() };
    let kinds = [
        (Order::OfKeys, Terms::default()),
        (Order::OfKeys, deep),
        (Order::OfRows, Terms::default()),
    ];
    for ((order, terms), of_reconcile) in kinds.into_iter().zip(&mut of_reconciles) {
        mirror.execute("DELETE FROM t WHERE _version % 20 = 0", [])?;
        *of_reconcile = peak(|| runtime.block_on(reconcile(folder, order, terms)))?;
        let count: u32 = mirror.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
        assert_eq!(count, rows, "everything is there");
    }
    let [ranks, documents, sorted] = of_reconciles;
    Ok([fill, load, ranks, documents, sorted])
}

/// What is measured, in order.
const WORK: [&str; 5] = ["fill", "load", "reconcile", "deep reconcile", "reconcile by rows"];

/// Rule 35.
#[test]
fn memory_is_flat_from_20_000_to_200_000_keys() {
    let few = peaks(20_000).expect("worked");
    let many = peaks(200_000).expect("worked");
    for (what, (few, many)) in WORK.iter().zip(few.iter().zip(many)) {
        println!("{what}: {few} bytes at 20,000 keys, {many} at 200,000");
        // A merge of several passes holds a piece of what it writes beside what it reads.
        let passes = if *what == "reconcile by rows" { 2 * SORT_BYTES } else { 0 };
        // Keys that differed are kept in mind, up to a number that 20,000 keys do not come to here.
        let kept = if what.contains("reconcile") { 64 << 10 } else { 0 };
        // A tenth, and what tasks that overlap may add.
        let bound = few + few / 10 + (64 << 10) + passes + kept;
        assert!(many <= bound, "{what}: {few} bytes at 20,000 keys, {many} at 200,000");
    }
}
