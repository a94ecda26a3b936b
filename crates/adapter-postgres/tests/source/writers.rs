//! Many writers at once: nothing is lost, nothing comes back, and no moment lies.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, PgConnection, Row};
use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::ports::{Loaded, Records};
use truekeep_core::{Key, Moment, Place, Stamp, Value, Version};

use crate::fixture::{App, Asked};

/// Draws from a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const ROWS: u64 = 10_000;

/// What a transaction wrote: key, version, and its own number.
type Written = Vec<(String, u64, u64)>;

fn statement(draws: &mut Draws) -> String {
    let key = draws.below(ROWS);
    let hot = draws.below(20);
    let value = draws.next();
    match draws.below(10) {
        0..=2 => format!(
            "INSERT INTO t VALUES ({key}, '{value}') ON CONFLICT (id) DO UPDATE SET v = excluded.v"
        ),
        3 => format!("DELETE FROM t WHERE id = {key}"),
        4 => format!(
            "UPDATE t SET id = id + {ROWS} WHERE id = {key} AND NOT EXISTS (SELECT FROM t WHERE id = {})",
            key + ROWS
        ),
        5 => format!(
            "UPDATE t SET id = id - {ROWS} WHERE id = {0} AND NOT EXISTS (SELECT FROM t WHERE id = {key})",
            key + ROWS
        ),
        6 => format!("UPDATE t SET v = '{value}' WHERE id BETWEEN {key} AND {}", key + 9),
        _ => format!("UPDATE t SET v = '{value}' WHERE id = {hot}"),
    }
}

async fn act(db: &mut PgConnection, sql: &str) -> bool {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(db).await.is_ok()
}

/// One transaction; returns what it wrote, once it is committed.
async fn transact(db: &mut PgConnection, draws: &mut Draws, feed: &str) -> Written {
    act(db, "BEGIN").await;
    for _ in 0..=draws.below(3) {
        let undone = draws.below(5) == 0;
        let one = statement(draws);
        let sql = if undone {
            format!("SAVEPOINT s; {one}; ROLLBACK TO s; {}", statement(draws))
        } else {
            one
        };
        if !act(db, &sql).await {
            // A deadlock or a key that is taken.
            act(db, "ROLLBACK").await;
            return Written::new();
        }
        if draws.below(4) == 0 {
            act(db, &format!("SELECT pg_sleep({})", draws.below(20) as f64 / 1_000.0)).await;
        }
    }
    let sql = format!(
        "SELECT key, version, xid::text::int8 FROM {feed} WHERE xid = pg_current_xact_id_if_assigned()"
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *db).await.expect("rows");
    let written = rows
        .iter()
        .map(|row| (row.get(0), row.get::<i64, _>(1) as u64, row.get::<i64, _>(2) as u64))
        .collect();
    let name = format!("p{}", draws.next());
    match draws.below(10) {
        0 => {
            act(db, "ROLLBACK").await;
            Written::new()
        }
        1 => {
            assert!(act(db, &format!("PREPARE TRANSACTION '{name}'")).await);
            act(db, &format!("SELECT pg_sleep({})", draws.below(50) as f64 / 1_000.0)).await;
            assert!(act(db, &format!("COMMIT PREPARED '{name}'")).await);
            written
        }
        _ if act(db, "COMMIT").await => written,
        _ => Written::new(),
    }
}

/// What was delivered of a key.
type Sink = BTreeMap<Key, (Version, Option<Value>)>;

async fn deliver(
    source: &PostgresSource,
    sink: &mut Sink,
    page: &truekeep_core::ports::ChangePage,
) {
    let keys: Vec<Key> = page.changes.iter().map(|change| change.key.clone()).collect();
    let mut loaded = Vec::new();
    while loaded.len() < keys.len() {
        loaded.extend(source.load(&keys[loaded.len()..], 1 << 20).await.expect("loaded"));
    }
    for (change, loaded) in page.changes.iter().zip(loaded) {
        let document = match loaded {
            Loaded::Live(document) => Some(document.values()[1].clone()),
            _ => None,
        };
        let held = sink.entry(change.key.clone()).or_insert((change.version, document.clone()));
        if change.version >= held.0 {
            *held = (change.version, document);
        }
    }
}

/// How often the moment claimed more than was delivered.
fn lies(moment: &Moment, sink: &Sink, log: &Mutex<Written>) -> usize {
    let log = log.lock().expect("no holder of the lock panics");
    let behind = |(key, version, xid): &&(String, u64, u64)| {
        moment.covers(Stamp::new(*xid))
            && sink.get(&Key::new(key.as_str())).is_none_or(|(held, _)| held.get() < *version)
    };
    log.iter().filter(behind).count()
}

/// Rule 55, X1, X9, X45: 32 writers with delays, savepoints, rollbacks and two-phase commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_writers_lose_nothing_and_no_moment_lies() {
    let Some(mut app) = App::new(&format!("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT g, 'first' FROM generate_series(0, {}) g", ROWS - 1)).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let feed = app
        .text("SELECT oid::regclass FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'")
        .await;
    let stop = Arc::new(AtomicBool::new(false));
    let log: Arc<Mutex<Written>> = Arc::default();
    let mut writers = Vec::new();
    for seed in 0..32 {
        let (mut db, stop, log, feed) =
            (app.other().await, Arc::clone(&stop), Arc::clone(&log), feed.clone());
        writers.push(tokio::spawn(async move {
            let mut draws = Draws(seed);
            let mut transactions = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                let written = transact(&mut db, &mut draws, &feed).await;
                log.lock().expect("no holder of the lock panics").extend(written);
                transactions += 1;
            }
            transactions
        }));
    }
    let (mut sink, mut at, mut checks) = (Sink::new(), Place::START, 0);
    let began = Instant::now();
    loop {
        let stopped = stop.load(Ordering::Relaxed);
        let page = source.page(&at, 300).await;
        assert!(page.view.continues);
        deliver(&source, &mut sink, &page).await;
        at = page.next;
        if let Some(moment) = page.moment {
            checks += 1;
            assert_eq!(lies(&moment, &sink, &log), 0, "the moment {moment} lies");
            if stopped && page.changes.is_empty() {
                break;
            }
        }
        if !stopped && began.elapsed() > Duration::from_secs(8) {
            stop.store(true, Ordering::Relaxed);
            for writer in std::mem::take(&mut writers) {
                assert!(writer.await.expect("a writer") > 0);
            }
        }
    }
    assert!(checks > 3, "{checks} moments");
    let rows =
        sqlx::raw_sql("SELECT id::text, v FROM t").fetch_all(&mut app.db).await.expect("rows");
    let truth: BTreeMap<Key, Value> = rows
        .iter()
        .map(|row| (Key::new(row.get::<String, _>(0)), Value::Text(row.get::<String, _>(1).into())))
        .collect();
    let held: BTreeMap<Key, Value> =
        sink.into_iter().filter_map(|(key, (_, document))| Some((key, document?))).collect();
    assert!(held == truth, "the sink holds {} records, the table {}", held.len(), truth.len());
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}
