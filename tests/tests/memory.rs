//! The memory of every procedure is bounded by the page, not by the table (M2).

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use rusqlite::Connection;
use truekeep::clock::SystemClock;
use truekeep::entropy::RandomEntropy;
use truekeep::reconcile::Wish;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteLedger, SqliteSource};
use truekeep_core::compare::Owns;
use truekeep_core::ports::{Archive, Capture};
use truekeep_core::reconcile::Terms;
use truekeep_core::{Fingerprint, PipelineName, ScopeId, limits};
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

async fn worker(folder: &Path) -> Answer<Worker> {
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
        sink: Arc::new(sink),
        reconcile_every: None,
        owns: Owns::All,
        source_went_back: Default::default(),
    };
    let ports = Ports {
        ledger: ledger.clone(),
        leases: ledger.clone(),
        items: ledger,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(RandomEntropy),
    };
    // Pages adapt up to this size; from the beginning, so that few keys reach it as well.
    let settings = Settings { page_rows: limits::PAGE_ROWS_MAX, ..Settings::default() };
    Ok(Worker::new(ports, vec![pipeline], settings, Arc::new(Silent)))
}

async fn drain(folder: &Path) -> Answer<()> {
    let (_stopper, stop) = Stopper::new();
    let report = worker(folder).await?.run_once(stop).await;
    assert!(report.iter().all(|(_, ending)| *ending == Ending::Drained), "{report:?}");
    Ok(())
}

/// Peaks of the fill, of the initial load, and of a reconcile that finds a twentieth missing.
fn peaks(rows: u32) -> Answer<[usize; 3]> {
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
    let load = peak(|| runtime.block_on(drain(folder)))?;
    Connection::open(folder.join("mirror.db"))?
        .execute("DELETE FROM t WHERE _version % 20 = 0", [])?;
    let reconcile = peak(|| {
        runtime.block_on(async {
            let ledger = SqliteLedger::open(&folder.join("ledger.db"), BUSY).await?;
            Wish::make(&ledger, &RandomEntropy, &PipelineName::parse("t")?, Terms::default())
                .await?;
            drain(folder).await?;
            let scope = ScopeId::whole(PipelineName::parse("t")?);
            let certificate = ledger.certificate(&scope).await?.ok_or("a certificate")?;
            assert_eq!(certificate.state.as_str(), "complete");
            Ok(())
        })
    })?;
    let mirror = Connection::open(folder.join("mirror.db"))?;
    let count: u32 = mirror.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
    assert_eq!(count, rows, "everything is there");
    Ok([fill, load, reconcile])
}

/// Rule 35.
#[test]
fn memory_is_flat_from_20_000_to_200_000_keys() {
    let few = peaks(20_000).expect("worked");
    let many = peaks(200_000).expect("worked");
    for (what, (few, many)) in ["fill", "load", "reconcile"].iter().zip(few.iter().zip(many)) {
        // A tenth, and what tasks that overlap may add.
        println!("{what}: {few} bytes at 20,000 keys, {many} at 200,000");
        let bound = few + few / 10 + (64 << 10);
        assert!(many <= bound, "{what}: {few} bytes at 20,000 keys, {many} at 200,000");
    }
}
