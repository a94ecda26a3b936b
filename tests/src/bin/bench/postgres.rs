//! A table of a Postgres server: what capture costs its writers, and what following it and comparing it
//! with a mirror cost beside bare loops.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use sqlx::{AssertSqlSafe, PgConnection, Row};
use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::ports::{Consumer, Feed};
use truekeep_core::{Incarnation, LedgerId, Place};
use truekeep_postgres_server::{Server, TestDatabase};

use crate::compare::{Kind, whole};
use crate::measure::{Bar, Figure, median};
use crate::{database, load};

type Done<T> = Result<T, Box<dyn Error>>;

/// How often each is measured, in turn with the bare loop: the middle is told.
const ROUNDS: usize = 3;

/// Single commits of one measurement, by all writers together.
const COMMITS: u64 = 8_000;

/// Rows of one page, as many as ours begin with.
const PAGE: u32 = 1_000;

const COLUMNS: &str =
    "id int PRIMARY KEY, name text NOT NULL, city text NOT NULL, price float8 NOT NULL,
    stock int NOT NULL, body text NOT NULL, created bigint NOT NULL, changed bigint NOT NULL";

/// A table of the same rows as those of the other measurements.
fn table(name: &str, rows: u64) -> String {
    format!(
        "CREATE TABLE {name} ({COLUMNS});
         INSERT INTO {name} SELECT g, 'product number ' || g, 'city ' || (g::bigint * 7919 % 5000), g * 0.25,
           g % 1000, repeat(chr(97 + g % 26), 200), 1700000000 + g, 0 FROM generate_series(1, {rows}) AS g;
         CREATE INDEX ON {name} (name); CREATE INDEX ON {name} (city, price)"
    )
}

async fn run_sql(db: &mut PgConnection, sql: impl Into<String>) -> Done<()> {
    sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(db).await?;
    Ok(())
}

async fn opened(test: &TestDatabase) -> Done<PostgresSource> {
    let spec = RelationSpec::of("product");
    Ok(PostgresSource::open(&test.address, spec, database::BUSY).await?)
}

/// All of it; nothing where there is no server to be had.
pub fn run(rows: u64) -> Done<Vec<Figure>> {
    let settings =
        [("shared_buffers", "1GB"), ("max_wal_size", "4GB"), ("max_prepared_transactions", "0")];
    let Some(server) = truekeep_postgres_server::private(&settings) else { return Ok(Vec::new()) };
    let runtime = database::runtime()?;
    runtime.block_on(async {
        let test = server.database().await;
        let mut figures = cost(&test, rows.min(200_000)).await?;
        let test = server.database().await;
        let mut db = test.connect().await;
        run_sql(&mut db, table("product", rows)).await?;
        run_sql(&mut db, "VACUUM ANALYZE product").await?;
        figures.extend(followed(&server, &test, &mut db, rows).await?);
        figures.extend(backlog(&test, &mut db, rows).await?);
        Ok(figures)
    })
}

/// What capture costs: one table has it, and its twin has not.
async fn cost(test: &TestDatabase, rows: u64) -> Done<Vec<Figure>> {
    let mut db = test.connect().await;
    for name in ["product", "bare"] {
        run_sql(&mut db, table(name, rows)).await?;
    }
    let source = opened(test).await?;
    database::capture(&source).await?;
    run_sql(&mut db, "VACUUM ANALYZE").await?;
    let mut figures = Vec::new();
    for writers in [1, 4, 16] {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            bare.push(commits(test, "bare", writers, rows, round).await?);
            ours.push(commits(test, "product", writers, rows, round).await?);
        }
        let name = format!("Postgres: single commits beside capture, {writers} writers");
        let (ours, bare) = (median(ours), median(bare));
        figures.push(Figure::rates(&name, COMMITS, ours, bare, Bar::AtLeast(0.7)));
    }
    let half = rows / 2;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (name, took) in [("bare", &mut bare), ("product", &mut ours)] {
            let began = Instant::now();
            run_sql(&mut db, format!("UPDATE {name} SET stock = stock + 1 WHERE id <= {half}"))
                .await?;
            took.push(began.elapsed());
        }
    }
    let name = format!("Postgres: one statement over {half} rows beside capture");
    figures.push(Figure::rates(&name, half, median(ours), median(bare), Bar::AtLeast(0.4)));
    figures.push(bytes(&mut db, rows).await?);
    Ok(figures)
}

/// What a feed takes after a vacuum, per row of the table.
async fn bytes(db: &mut PgConnection, rows: u64) -> Done<Figure> {
    let sql = "SELECT sum(pg_indexes_size(oid) + pg_relation_size(oid))::int8 FROM pg_class
        WHERE relname LIKE 'feed\\_%' AND relkind = 'r'";
    let size: i64 = sqlx::raw_sql(sql).fetch_one(db).await?.try_get(0)?;
    let name = "Postgres: feed with its indexes, per row, after three updates of each";
    Ok(Figure::alone(name, size as f64 / rows as f64, "bytes", Bar::Stated))
}

/// Updates of one row each, by so many connections at once.
async fn commits(
    test: &TestDatabase,
    table: &str,
    writers: u64,
    rows: u64,
    round: usize,
) -> Done<Duration> {
    let mut connections = Vec::new();
    for _ in 0..writers {
        connections.push(test.connect().await);
    }
    let sql = format!("UPDATE {table} SET stock = stock + 1, changed = $1 WHERE id = $2");
    let began = Instant::now();
    let mut working = Vec::new();
    for (nth, mut db) in (0..writers).zip(connections) {
        let sql = sql.clone();
        working.push(tokio::spawn(async move {
            for number in 0..COMMITS / writers {
                let id = ((number * writers + nth) * 7_919 + round as u64) % rows + 1;
                let update = sqlx::query(AssertSqlSafe(sql.clone()))
                    .bind(i64::try_from(number).unwrap_or(0))
                    .bind(i32::try_from(id).unwrap_or(1));
                update.execute(&mut db).await?;
            }
            Ok::<_, sqlx::Error>(())
        }));
    }
    for writer in working {
        writer.await??;
    }
    Ok(began.elapsed())
}

/// The load into a mirror, and a comparison of it.
async fn followed(
    server: &Server,
    test: &TestDatabase,
    db: &mut PgConnection,
    rows: u64,
) -> Done<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let [_, mirror, ledger] = database::files(folder.path());
    let began = Instant::now();
    bare_loop(db, &folder.path().join("bare.db")).await?;
    let bare = began.elapsed();
    let source = opened(test).await?;
    let began = Instant::now();
    database::capture(&source).await?;
    let fill = began.elapsed();
    let began = Instant::now();
    let copied = load::follow(&source, &mirror, &ledger).await?;
    let ours = began.elapsed();
    if copied != rows {
        return Err(format!("{copied} of {rows} rows in the mirror").into());
    }
    let (mut compared, mut scanned) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        scans(server, test, &mirror).await?;
        scanned.push(began.elapsed());
        let sink = database::mirror(&mirror).await?;
        let began = Instant::now();
        let found = whole(&source, sink, &ledger, Kind::Ranks).await?;
        compared.push(began.elapsed());
        if found != 0 {
            return Err(format!("{found} differences").into());
        }
    }
    let rate = rows as f64 / fill.as_secs_f64();
    Ok(vec![
        Figure::rates("Postgres: initial load into SQLite", rows, ours, bare, Bar::AtLeast(0.7)),
        Figure::alone("Postgres: capture fill", rate, "rows/s", Bar::Stated),
        Figure::times(
            "Postgres: comparison with a mirror in SQLite (bare: both scanned in order, at once)",
            rows,
            median(compared),
            median(scanned),
            Bar::AtMost(2.0),
        ),
    ])
}

/// Pages of the table in the order of its key, each into one transaction of the mirror.
async fn bare_loop(db: &mut PgConnection, mirror: &Path) -> Done<()> {
    let to = database::application(mirror, "FULL")?;
    to.execute_batch(
        "CREATE TABLE product (_key TEXT PRIMARY KEY NOT NULL, id, name, city, price, stock, body,
            created, changed, _rules INTEGER NOT NULL, _version INTEGER NOT NULL)",
    )?;
    let mut after = 0_i32;
    loop {
        let page = sqlx::query("SELECT * FROM product WHERE id > $1 ORDER BY id LIMIT $2")
            .bind(after)
            .bind(i64::from(PAGE));
        let rows = page.fetch_all(&mut *db).await?;
        to.execute_batch("BEGIN IMMEDIATE")?;
        {
            let mut upsert = to.prepare_cached(
                "INSERT INTO product VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)
                 ON CONFLICT (_key) DO UPDATE SET id = excluded.id, name = excluded.name,
                    city = excluded.city, price = excluded.price, stock = excluded.stock,
                    body = excluded.body, created = excluded.created, changed = excluded.changed,
                    _rules = excluded._rules, _version = excluded._version",
            )?;
            for row in &rows {
                after = row.try_get(0)?;
                upsert.execute(params![
                    after.to_string(),
                    after,
                    row.try_get::<&str, _>(1)?,
                    row.try_get::<&str, _>(2)?,
                    row.try_get::<f64, _>(3)?,
                    row.try_get::<i32, _>(4)?,
                    row.try_get::<&str, _>(5)?,
                    row.try_get::<i64, _>(6)?,
                    row.try_get::<i64, _>(7)?
                ])?;
            }
        }
        to.execute_batch("COMMIT")?;
        if rows.len() < PAGE as usize {
            return Ok(());
        }
    }
}

/// Keys and versions of both sides, each in order, at once.
async fn scans(server: &Server, test: &TestDatabase, mirror: &Path) -> Done<()> {
    let path = mirror.to_owned();
    let other = tokio::task::spawn_blocking(move || -> rusqlite::Result<u64> {
        let db = Connection::open(path)?;
        let mut select = db.prepare("SELECT _key, _version FROM product ORDER BY _key")?;
        let (mut rows, mut count) = (select.query([])?, 0);
        while let Some(row) = rows.next()? {
            let (_, _): (String, i64) = (row.get(0)?, row.get(1)?);
            count += 1;
        }
        Ok(count)
    });
    let mut db = test.connect().await;
    let find =
        "SELECT oid::regclass::text FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'";
    let feed: String = sqlx::raw_sql(find).fetch_one(&mut db).await?.try_get(0)?;
    let copy = format!("COPY (SELECT key, version FROM {feed} ORDER BY key) TO STDOUT");
    let mut copying = server.program("psql");
    copying.args(["-X", "-q", "-d", &test.name, "-c", &copy]).stdout(std::process::Stdio::null());
    let copied = tokio::task::spawn_blocking(move || copying.status()).await??;
    if !copied.success() {
        return Err("COPY failed".into());
    }
    other.await??;
    Ok(())
}

/// A page of changes, with few waiting and with all.
async fn backlog(test: &TestDatabase, db: &mut PgConnection, rows: u64) -> Done<Vec<Figure>> {
    let source = opened(test).await?;
    let consumer =
        Consumer { ledger: LedgerId::parse("bench")?, pipeline: Incarnation::parse("bench")? };
    let mut place = Place::START;
    loop {
        let page = source.changes(&consumer, &place, 10_000).await?;
        place = page.next;
        if page.end {
            break;
        }
    }
    let mut all = Vec::new();
    for waiting in [u64::from(PAGE), rows] {
        run_sql(db, format!("UPDATE product SET stock = stock + 1 WHERE id <= {waiting}")).await?;
        let mut took = Vec::new();
        for _ in 0..20 {
            let began = Instant::now();
            source.changes(&consumer, &place, PAGE).await?;
            took.push(began.elapsed());
        }
        all.push(median(took));
    }
    let name = format!("Postgres: a page of changes, {rows} waiting (bare: {PAGE} waiting)");
    Ok(vec![Figure::times(&name, u64::from(PAGE), all[1], all[0], Bar::AtMost(2.0))])
}
