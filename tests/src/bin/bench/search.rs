//! The search index: its initial load, how soon a change is found, and what its listing costs.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::Connection;
use tantivy::schema::{FAST, STORED, STRING, SchemaBuilder, TEXT};
use tantivy::{Index, IndexWriter, TantivyDocument};
use truekeep_adapter_sqlite::SqliteSource;
use truekeep_core::Key;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, Listing, Mark, Receipt, Sink,
};
use truekeep_engine::{Ending, Settings, Silent, Stopper, Worker};
use truekeep_sink_tantivy::{
    Analysis, DateUnit, FieldKind, FieldSpec, IndexSpec, SearchIndex, SearchRequest, Split,
    TantivySink, WRITER_BYTES,
};

use crate::compare::{self, Kind};
use crate::database;
use crate::measure::{Bar, Figure, median, quantile, timed};

/// How long changes are made, and how many in a second.
const CHANGED_FOR: Duration = Duration::from_secs(20);
const CHANGES_PER_SECOND: u32 = 100;

/// How often the listing and what it is part of are measured, in turn: the middle is told.
const ROUNDS: usize = 3;

/// The statement that adds row `?1`: the same columns as elsewhere, with a text of 32 words.
const INSERT: &str = "
    INSERT INTO product SELECT ?1, 'product number ' || ?1, 'city ' || (?1 * 7919 % 5000),
        ?1 * 0.25, ?1 % 1000,
        (WITH RECURSIVE word(n, text) AS (
            SELECT 1, 'word' || (?1 * 31 % 20011)
            UNION ALL SELECT n + 1, text || ' word' || ((?1 + n * n) * 7877 % (40 * (n * n + 1)))
            FROM word WHERE n < 32)
         SELECT text FROM word WHERE n = 32),
        1700000000 + ?1, 0";

/// Loads, lists and changes.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, index, ledger] = database::files(folder.path());
    database::make_with(&source, rows, INSERT)?;
    let runtime = database::runtime()?;
    let port = runtime.block_on(database::source(&source))?;
    runtime.block_on(database::capture(&port))?;
    let (commits, ours) = timed(|| runtime.block_on(load(&port, &index, &ledger)))?;
    let batch = rows.div_ceil(commits.max(1));
    let ((), bare) = timed(|| bare_loop(&source, &folder.path().join("bare"), batch))?;
    let name = format!("search index, initial load, {commits} commits");
    let mut figures = vec![Figure::rates(&name, rows, ours, bare, Bar::AtLeast(0.7))];
    figures.extend(listing(&runtime, &port, &index, &ledger, rows)?);
    figures.extend(runtime.block_on(latency(&port, &source, &index, &ledger, rows))?);
    Ok(figures)
}

fn field(name: &str, kind: FieldKind) -> FieldSpec {
    let (indexed, stored, fast, required) = (true, true, false, false);
    FieldSpec { name: name.into(), kind, indexed, stored, fast, required }
}

fn sink(folder: &Path) -> Result<TantivySink, Box<dyn Error>> {
    let words = FieldKind::Text(Analysis { split: Split::Words, fold: false, language: None });
    let fields = vec![
        field("id", FieldKind::Signed),
        field("name", words),
        field("city", FieldKind::Keyword),
        field("price", FieldKind::Real),
        field("stock", FieldKind::Signed),
        field("body", words),
        field("created", FieldKind::Date(DateUnit::Seconds)),
        field("changed", FieldKind::Signed),
    ];
    Ok(TantivySink::new(folder, &IndexSpec { fields, writer_bytes: WRITER_BYTES })?)
}

/// Counts batches.
#[derive(Debug)]
struct Counted {
    sink: TantivySink,
    batches: Arc<AtomicU64>,
    /// How long each took.
    took: Arc<Mutex<Vec<Duration>>>,
}

#[async_trait]
impl Sink for Counted {
    fn capabilities(&self) -> Capabilities {
        self.sink.capabilities()
    }

    async fn prepare(&self) -> Result<(), PortError> {
        self.sink.prepare().await
    }

    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        self.sink.mark().await
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, PortError> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let applied = self.sink.apply(batch).await;
        self.took.lock().expect("no holder of the lock panics").push(began.elapsed());
        applied
    }

    async fn confirm(&self, receipt: &Receipt) -> Result<Confirmation, PortError> {
        self.sink.confirm(receipt).await
    }

    async fn list(&self, after: Option<Key>, limit: u32) -> Result<Listing, PortError> {
        self.sink.list(after, limit).await
    }

    async fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
        self.sink.verify(deliveries).await
    }
}

/// Follows to the end and says in how many commits.
async fn load(source: &SqliteSource, index: &Path, ledger: &Path) -> Result<u64, Box<dyn Error>> {
    let counted = Counted { sink: sink(index)?, batches: Arc::default(), took: Arc::default() };
    let batches = Arc::clone(&counted.batches);
    let pipeline = database::pipeline(source, counted)?;
    let settings = Settings { lease_ttl: Duration::from_secs(30), ..Settings::default() };
    let ports = database::ports(ledger).await?;
    let worker = Worker::new(ports, vec![pipeline], settings, Arc::new(Silent));
    let (_stopper, stop) = Stopper::new();
    let report = worker.run_once(stop).await;
    if report.iter().any(|(_, ending)| *ending != Ending::Drained) {
        return Err(format!("{report:?}").into());
    }
    Ok(batches.load(Ordering::Relaxed))
}

/// The same fields by tantivy's own writer, with as many commits.
fn bare_loop(source: &Path, folder: &Path, batch: u64) -> Result<(), Box<dyn Error>> {
    let mut schema = SchemaBuilder::default();
    let key = schema.add_text_field("_key", STRING | STORED);
    let rank = [schema.add_u64_field("_rules", FAST), schema.add_u64_field("_version", FAST)];
    let number = tantivy::schema::INDEXED | STORED;
    let id = schema.add_i64_field("id", number.clone());
    let name = schema.add_text_field("name", TEXT | STORED);
    let city = schema.add_text_field("city", STRING | STORED);
    let price = schema.add_f64_field("price", number.clone());
    let stock = schema.add_i64_field("stock", number.clone());
    let body = schema.add_text_field("body", TEXT | STORED);
    let created = schema.add_date_field("created", number.clone());
    let changed = schema.add_i64_field("changed", number);
    std::fs::create_dir(folder)?;
    let index = Index::create_in_dir(folder, schema.build())?;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
    let from = Connection::open(source)?;
    let mut select = from.prepare("SELECT * FROM product ORDER BY id")?;
    let mut rows = select.query([])?;
    let mut sent = 0;
    while let Some(row) = rows.next()? {
        let mut document = TantivyDocument::default();
        document.add_text(key, row.get::<_, i64>(0)?.to_string());
        rank.iter().for_each(|field| document.add_u64(*field, 1));
        document.add_i64(id, row.get(0)?);
        document.add_text(name, row.get_ref(1)?.as_str()?);
        document.add_text(city, row.get_ref(2)?.as_str()?);
        document.add_f64(price, row.get(3)?);
        document.add_i64(stock, row.get(4)?);
        document.add_text(body, row.get_ref(5)?.as_str()?);
        document.add_date(created, tantivy::DateTime::from_timestamp_secs(row.get(6)?));
        document.add_i64(changed, row.get(7)?);
        writer.add_document(document)?;
        sent += 1;
        if sent % batch == 0 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    Ok(())
}

/// The whole listing against the comparison that it is part of, in turn.
fn listing(
    runtime: &tokio::runtime::Runtime,
    source: &SqliteSource,
    index: &Path,
    ledger: &Path,
    rows: u64,
) -> Result<Vec<Figure>, Box<dyn Error>> {
    const KINDS: [(&str, Kind); 2] =
        [("a comparison", Kind::Ranks), ("`diff` with the audit", Kind::Audited)];
    let (mut alone, mut bare, mut whole) = (Vec::new(), Vec::new(), KINDS.map(|_| Vec::new()));
    for _ in 0..ROUNDS {
        let sink = self::sink(index)?;
        let (listed, took) = timed(|| runtime.block_on(list(&sink)))?;
        drop(sink);
        if listed != rows {
            return Err(format!("{listed} of {rows} keys were listed").into());
        }
        alone.push(took);
        let (streamed, took) = timed(|| stream(index))?;
        if streamed != rows {
            return Err(format!("{streamed} of {rows} keys were streamed").into());
        }
        bare.push(took);
        for ((_, kind), whole) in KINDS.iter().zip(&mut whole) {
            let sink = self::sink(index)?;
            let compared = || runtime.block_on(compare::whole(source, sink, ledger, *kind));
            let (drift, took) = timed(compared)?;
            if drift != 0 {
                return Err(format!("{drift} differences").into());
            }
            whole.push(took);
        }
    }
    let alone = median(alone);
    let name =
        "search index, its whole listing (bare: the keys of each segment, one after another)";
    let beside = Figure::times(name, rows, alone, median(bare), Bar::AtMost(4.0));
    let figures = KINDS.iter().zip(whole).map(|((what, _), whole)| {
        let whole = median(whole);
        let name = format!("search index, its whole listing as a share of {what}");
        let share = alone.as_secs_f64() / whole.as_secs_f64();
        Figure { value: share, ..Figure::rates(&name, rows, alone, whole, Bar::Stated) }
    });
    Ok([beside].into_iter().chain(figures).collect())
}

/// The keys of each segment, of records that are live or not, and no ranks.
fn stream(index: &Path) -> Result<u64, Box<dyn Error>> {
    let index = Index::open_in_dir(index)?;
    let field = index.schema().get_field("_key")?;
    let mut streamed = 0;
    for segment in index.reader()?.searcher().segment_readers() {
        let dictionary = segment.inverted_index(field)?;
        let mut terms = dictionary.terms().stream()?;
        let mut page = Vec::with_capacity(1_000);
        while terms.advance() {
            page.push(Key::new(std::str::from_utf8(terms.key())?));
            if page.len() == page.capacity() {
                streamed += page.len() as u64;
                page.clear();
            }
        }
        streamed += page.len() as u64;
    }
    Ok(streamed)
}

async fn list(sink: &TantivySink) -> Result<u64, Box<dyn Error>> {
    let (mut after, mut listed) = (None, 0);
    loop {
        let page = sink.list(after, 1_000).await?;
        listed += page.entries.len() as u64;
        after = page.entries.last().map(|entry| entry.key.clone());
        if page.end {
            return Ok(listed);
        }
    }
}

/// How long after its commit a change is found, with a steady stream of changes.
async fn latency(
    source: &SqliteSource,
    database: &Path,
    index: &Path,
    ledger: &Path,
    rows: u64,
) -> Result<Vec<Figure>, Box<dyn Error>> {
    let counted = Counted { sink: sink(index)?, batches: Arc::default(), took: Arc::default() };
    let applied = Arc::clone(&counted.took);
    let pipeline = database::pipeline(source, counted)?;
    let settings = Settings { lease_ttl: Duration::from_secs(30), ..Settings::default() };
    let ports = database::ports(ledger).await?;
    let worker = Worker::new(ports, vec![pipeline], settings, Arc::new(Silent));
    let (stopper, stop) = Stopper::new();
    let running = tokio::spawn(worker.run(stop));
    let (database, index) = (database.to_owned(), index.to_owned());
    let (told, changes) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || change(&database, rows, &told));
    let seeker = std::thread::spawn(move || seek(&index, &changes));
    writer.join().map_err(|_| "the writer panicked")?.map_err(|error| error.to_string())?;
    let waits = seeker.join().map_err(|_| "the seeker panicked")??;
    stopper.stop();
    running.await?;
    let applied = applied.lock().expect("no holder of the lock panics").clone();
    let figure = |what, share, all: &[Duration], bar| {
        let name = format!("{what}, {CHANGES_PER_SECOND} changes/s");
        Figure::alone(&name, quantile(all, share).as_secs_f64() * 1_000.0, "ms", bar)
    };
    Ok(vec![
        figure("committed to found, median", 0.5, &waits, Bar::Stated),
        figure("committed to found, p99", 0.99, &waits, Bar::AtMost(100.0)),
        figure("committed to found, worst", 1.0, &waits, Bar::Stated),
        figure("of that, the index's commit, median", 0.5, &applied, Bar::Stated),
        figure("of that, the index's commit, p99", 0.99, &applied, Bar::Stated),
    ])
}

/// Changes rows here and there, one commit each, and tells when each was committed.
fn change(
    database: &Path,
    rows: u64,
    told: &std::sync::mpsc::Sender<(u64, Instant)>,
) -> rusqlite::Result<()> {
    let db = database::application(database, "NORMAL")?;
    let mut update = db.prepare("UPDATE product SET name = 'change' || ?1 WHERE id = ?2")?;
    let began = Instant::now();
    let every = Duration::from_secs(1) / CHANGES_PER_SECOND;
    for number in 1u64.. {
        let due = began + every * u32::try_from(number).unwrap_or(u32::MAX);
        if due - began > CHANGED_FOR {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let id = number * 7_919 % rows + 1;
        update.execute([i64::try_from(number).unwrap_or(0), i64::try_from(id).unwrap_or(0)])?;
        let _ = told.send((number, Instant::now()));
    }
    Ok(())
}

/// Looks for each change until it is found.
fn seek(
    index: &Path,
    changes: &std::sync::mpsc::Receiver<(u64, Instant)>,
) -> Result<Vec<Duration>, String> {
    let open = || SearchIndex::open(index).ok().flatten();
    let index = open().ok_or("the index is not there")?;
    let mut waits = Vec::new();
    for (number, committed) in changes {
        let query = format!("name:change{number}");
        let request = SearchRequest { query: &query, fields: &[], limit: 1 };
        loop {
            let found = index.search(&request).map_err(|error| format!("{error:?}"))?;
            if found.count > 0 {
                break;
            }
            if committed.elapsed() > Duration::from_secs(30) {
                return Err(format!("change {number} was not found"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        waits.push(committed.elapsed());
    }
    Ok(waits)
}
