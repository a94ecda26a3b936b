//! What capture costs the application's writers.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use truekeep_adapter_sqlite::Watch;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Consumer, Feed};
use truekeep_core::{Incarnation, LedgerId, Place, limits};

use crate::database;
use crate::measure::{Bar, Figure, timed};

/// Single commits of one measurement.
const COMMITS: u64 = 20_000;

/// Writers with and without capture, and the longest time that our own fill holds the write lock.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = Vec::new();
    let many = rows.min(500_000);
    let rows = rows.min(200_000);
    for (synchronous, bar) in [("NORMAL", 0.4), ("FULL", 0.8)] {
        let commits = if synchronous == "FULL" { COMMITS / 4 } else { COMMITS };
        let bare = writers(rows, synchronous, commits, false)?;
        let ours = writers(rows, synchronous, commits, true)?;
        let name = format!("single commits beside capture, {synchronous}");
        figures.push(Figure::rates(&name, commits, ours.single, bare.single, Bar::AtLeast(bar)));
        let name = format!("one statement over {} rows beside capture, {synchronous}", rows / 2);
        figures.push(Figure::rates(&name, rows / 2, ours.bulk, bare.bulk, Bar::Stated));
    }
    figures.extend(longest_lock(rows)?);
    figures.extend(expansion(many)?);
    Ok(figures)
}

struct Took {
    single: Duration,
    bulk: Duration,
}

fn writers(
    rows: u64,
    synchronous: &str,
    commits: u64,
    captured: bool,
) -> Result<Took, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, ..] = database::files(folder.path());
    database::make(&source, rows)?;
    if captured {
        install(&source)?;
    }
    let db = database::application(&source, synchronous)?;
    let ((), single) = timed(|| -> rusqlite::Result<()> {
        let mut update =
            db.prepare("UPDATE product SET stock = stock + 1, changed = ? WHERE id = ?")?;
        for n in 0..commits {
            let id = i64::try_from(n * 7_919 % rows + 1).unwrap_or(1);
            update.execute([i64::try_from(n).unwrap_or(0), id])?;
        }
        Ok(())
    })?;
    let half = i64::try_from(rows / 2)?;
    let (_, bulk) =
        timed(|| db.execute("UPDATE product SET stock = stock + 1 WHERE id <= ?", [half]))?;
    Ok(Took { single, bulk })
}

/// Marks of one expansion.
const MARKS: u64 = 500;

/// How long it takes to number the rows of parents that changed, where no index finds them, and the
/// longest wait of a writer that tries all the time beside it.
fn expansion(rows: u64) -> Result<[Figure; 2], Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, ..] = database::files(folder.path());
    database::make(&source, rows)?;
    let db = database::application(&source, "NORMAL")?;
    db.execute_batch(&format!(
        "CREATE TABLE maker (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE other (n);
         INSERT INTO maker SELECT id, name FROM product WHERE id <= {MARKS};
         ALTER TABLE product ADD COLUMN maker INTEGER;
         UPDATE product SET maker = id % {} WHERE id % 10 = 0",
        MARKS + 1
    ))?;
    let watch =
        Watch::Parent { table: "maker".into(), via: vec!["maker".into()], key: vec!["id".into()] };
    let runtime = database::runtime()?;
    let port = runtime.block_on(database::watching(&source, vec![watch]))?;
    runtime.block_on(database::capture(&port))?;
    db.execute_batch("UPDATE maker SET name = name || '+'")?;
    let consumer =
        Consumer { ledger: LedgerId::parse("bench")?, pipeline: Incarnation::parse("bench")? };
    let expand = std::thread::spawn(move || {
        timed(|| {
            runtime.block_on(async {
                let mut place = Place::START;
                loop {
                    let page = port.changes(&consumer, &place, limits::PAGE_ROWS_MAX).await?;
                    if page.moment.as_ref() == Some(&page.view.newest) {
                        return Ok::<_, PortError>(());
                    }
                    place = page.next;
                }
            })
        })
    });
    let mut longest = Duration::ZERO;
    while !expand.is_finished() {
        let began = Instant::now();
        db.execute("INSERT INTO other VALUES (1)", [])?;
        longest = longest.max(began.elapsed());
    }
    let ((), took) = expand.join().map_err(|_| "the expansion broke")??;
    let milliseconds = |name: &str, took: Duration| {
        Figure::alone(name, took.as_secs_f64() * 1_000.0, "ms", Bar::Stated)
    };
    let name = format!("expansion of {MARKS} marks over {rows} rows without an index");
    Ok([milliseconds(&name, took), milliseconds("longest wait of a writer beside it", longest)])
}

/// Installs and fills, and says how long a page of the fill held the write lock at most: a call
/// that is not the last pauses twice as long as it worked.
fn install(path: &Path) -> Result<Duration, Box<dyn Error>> {
    database::runtime()?.block_on(async {
        let source = database::source(path).await?;
        source.install().await?;
        let mut longest = Duration::ZERO;
        loop {
            let began = Instant::now();
            if source.fill().await?.done {
                return Ok(longest);
            }
            longest = longest.max(began.elapsed() / 3);
        }
    })
}

/// The longest lock of a fill that nobody disturbs, and the longest wait of a writer that tries all
/// the time beside one; SQLite lets it sleep between its tries.
fn longest_lock(rows: u64) -> Result<[Figure; 2], Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, ..] = database::files(folder.path());
    database::make(&source, rows)?;
    let quiet = folder.path().join("quiet.db");
    std::fs::copy(&source, &quiet)?;
    let lock = install(&quiet)?;
    let db = database::application(&source, "NORMAL")?;
    let path = source.clone();
    let fill = std::thread::spawn(move || install(&path).map_err(|error| error.to_string()));
    let mut longest = Duration::ZERO;
    while !fill.is_finished() {
        let began = Instant::now();
        db.execute("UPDATE product SET stock = stock + 1 WHERE id = 1", [])?;
        longest = longest.max(began.elapsed());
    }
    fill.join().map_err(|_| "the fill broke")??;
    let milliseconds = |name: &str, took: Duration, bar| {
        Figure::alone(name, took.as_secs_f64() * 1_000.0, "ms", bar)
    };
    Ok([
        milliseconds("longest write lock of the fill", lock, Bar::AtMost(50.0)),
        milliseconds("longest wait of a writer beside the fill", longest, Bar::Stated),
    ])
}
