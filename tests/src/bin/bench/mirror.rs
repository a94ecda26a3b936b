//! A mirror in Postgres: the first load and updates, against a bare COPY and a bare loop of batched
//! upserts of the same rows.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use sqlx::{Connection as _, PgConnection};
use truekeep_adapter_sqlite::SqliteSource;
use truekeep_engine::{Ending, Settings, Silent, Stopper, Worker};
use truekeep_sink_postgres::{ColumnType, Layout, MirrorColumn, MirrorSpec, PostgresSink};

use crate::database::{self, COLUMNS};
use crate::measure::{Bar, Figure, timed};

/// Rows of a batch of the bare loops: as many as ours begin with.
const BATCH: usize = 1_000;

/// One row in this many is updated.
const UPDATED: u64 = 10;

/// The types of the columns.
const TYPES: [&str; 8] =
    ["bigint", "text", "text", "double precision", "bigint", "text", "bigint", "bigint"];

/// Loads all rows and updates a part of them, ours and bare; nothing where there is no Postgres.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return Ok(Vec::new()) };
    let folder = tempfile::tempdir()?;
    let [source, _, ledger] = database::files(folder.path());
    database::make(&source, rows)?;
    let runtime = database::runtime()?;
    let (ours, bare) =
        runtime.block_on(async { (server.database().await, server.database().await) });
    let mut to = runtime.block_on(PgConnection::connect(&bare.address))?;
    let ((), copied) = timed(|| runtime.block_on(copy(&source, &mut to)))?;
    let port = runtime.block_on(database::source(&source))?;
    runtime.block_on(database::capture(&port))?;
    let ((), loaded) = timed(|| runtime.block_on(follow(&port, &ours.address, &ledger)))?;
    let update = format!("UPDATE product SET stock = stock + 1 WHERE id % {UPDATED} = 0");
    database::application(&source, "OFF")?.execute_batch(&update)?;
    let ((), upserted) = timed(|| runtime.block_on(upsert(&source, &mut to)))?;
    let ((), updated) = timed(|| runtime.block_on(follow(&port, &ours.address, &ledger)))?;
    runtime.block_on(same(&mut to, &ours.address))?;
    Ok(vec![
        Figure::rates(
            "load of a Postgres mirror, against one COPY",
            rows,
            loaded,
            copied,
            Bar::AtLeast(0.7),
        ),
        Figure::rates(
            "updates of a Postgres mirror, against batched upserts",
            rows / UPDATED,
            updated,
            upserted,
            Bar::AtLeast(0.7),
        ),
    ])
}

/// Everything in one COPY, into a table like ours.
async fn copy(source: &Path, to: &mut PgConnection) -> Result<(), Box<dyn Error>> {
    let columns: Vec<_> =
        COLUMNS.iter().zip(TYPES).map(|(name, kind)| format!("{name} {kind}")).collect();
    let create = format!(
        "CREATE TABLE product (_key text COLLATE \"C\" PRIMARY KEY, _rules bigint NOT NULL,
         _version bigint NOT NULL, {})",
        columns.join(", ")
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(&mut *to).await?;
    let from = Connection::open(source)?;
    let mut select = from.prepare("SELECT * FROM product")?;
    let mut rows = select.query([])?;
    let mut copy = to.copy_in_raw("COPY product FROM STDIN").await?;
    loop {
        let (mut lines, mut read) = (String::new(), 0);
        while read < BATCH {
            let Some(row) = rows.next()? else { break };
            let texts = texts(row)?;
            lines += &format!("{}\t1\t1\t{}\n", texts[0], texts.join("\t"));
            read += 1;
        }
        copy.send(lines.into_bytes()).await?;
        if read < BATCH {
            break;
        }
    }
    copy.finish().await?;
    Ok(())
}

/// The updated rows in batches, each a statement and a transaction of its own.
async fn upsert(source: &Path, to: &mut PgConnection) -> Result<(), Box<dyn Error>> {
    let from = Connection::open(source)?;
    let select = format!("SELECT * FROM product WHERE id % {UPDATED} = 0");
    let mut select = from.prepare(&select)?;
    let mut rows = select.query([])?;
    let place = |at: usize| format!("${}::text[]", at + 1);
    let arrays: Vec<_> = (0..COLUMNS.len()).map(place).collect();
    let values: Vec<_> =
        TYPES.iter().enumerate().map(|(at, kind)| format!("c{at}::{kind}")).collect();
    let names: Vec<_> = (0..COLUMNS.len()).map(|at| format!("c{at}")).collect();
    let set: Vec<_> = COLUMNS.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let sql = format!(
        "INSERT INTO product SELECT c0, 1, 2, {} FROM unnest({}) AS sent ({})
         ON CONFLICT (_key) DO UPDATE SET _version = excluded._version, {}",
        values.join(", "),
        arrays.join(", "),
        names.join(", "),
        set.join(", ")
    );
    loop {
        let mut columns = vec![Vec::with_capacity(BATCH); COLUMNS.len()];
        while columns[0].len() < BATCH {
            let Some(row) = rows.next()? else { break };
            for (column, text) in columns.iter_mut().zip(texts(row)?) {
                column.push(text);
            }
        }
        let read = columns[0].len();
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql.clone()));
        for column in columns {
            query = query.bind(column);
        }
        query.execute(&mut *to).await?;
        if read < BATCH {
            return Ok(());
        }
    }
}

/// The values of a row as text; none of them is NULL or needs an escape.
fn texts(row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<String>> {
    use rusqlite::types::ValueRef;
    let text = |column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Null | ValueRef::Blob(_) => String::new(),
        })
    };
    (0..COLUMNS.len()).map(text).collect()
}

/// Follows to the end.
async fn follow(source: &SqliteSource, address: &str, ledger: &Path) -> Result<(), Box<dyn Error>> {
    const LONG: Duration = Duration::from_secs(60);
    let columns = COLUMNS.iter().zip(TYPES).map(|(name, kind)| MirrorColumn {
        name: (*name).into(),
        kind: ColumnType::of_postgres(kind),
    });
    let layout = Layout::Columns(columns.collect());
    let spec = MirrorSpec { schema: "public".into(), table: "product".into(), layout };
    let sink = PostgresSink::open(address, spec, LONG, LONG).await?;
    let pipeline = database::pipeline(source, sink)?;
    let ports = database::ports(ledger).await?;
    let settings = Settings { lease_ttl: Duration::from_secs(30), ..Settings::default() };
    let worker = Worker::new(ports, vec![pipeline], settings, Arc::new(Silent));
    let (_stopper, stop) = Stopper::new();
    let report = worker.run_once(stop).await;
    if report.iter().any(|(_, ending)| *ending != Ending::Drained) {
        return Err(format!("{report:?}").into());
    }
    Ok(())
}

/// Both tables hold the same.
async fn same(bare: &mut PgConnection, ours: &str) -> Result<(), Box<dyn Error>> {
    let sum = "SELECT count(*), sum(stock)::int8, sum(hashtext(body)::int8)::int8 FROM product";
    let mut mirror = PgConnection::connect(ours).await?;
    let one: (i64, i64, i64) = sqlx::query_as(sum).fetch_one(bare).await?;
    let other: (i64, i64, i64) = sqlx::query_as(sum).fetch_one(&mut mirror).await?;
    if one == other { Ok(()) } else { Err(format!("{one:?} and {other:?} differ").into()) }
}
