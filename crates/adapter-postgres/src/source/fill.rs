//! Recording: keys get numbers, page by page, and what the table says of them.
//!
//! Invariants: a transaction writes at most 500 rows of the feed and gives way to the application:
//! what waited for a lock for too long, or took too long, is tried again with fewer rows. Any fill but
//! the very first follows a gap or a restore, so each row and each tombstone gets a fresh number.

use truekeep_core::Key;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::FillProgress;
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::Row;

use super::meta::{missing, unless_missing};
use super::resolve::Resolved;
use super::{Patience, PostgresSource, Worked, number};

const FILL: &str = "fill the feed";

/// Gives keys numbers and says what the table says of them; with `only_new` only those without a
/// number. Returns those that were given one, and the transaction that gave it.
pub(super) async fn record(
    writing: &mut Transaction,
    relation: &Resolved,
    keys: &[String],
    only_new: bool,
) -> Worked<(Vec<String>, Option<u64>)> {
    if keys.is_empty() {
        return Ok((Vec::new(), None));
    }
    let statements = &relation.statements;
    let sql = if only_new { &statements.record_new } else { &statements.record };
    let rows = writing.rows(Transaction::query(sql.clone()).bind(keys.to_vec())).await?;
    let recorded: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let xid = match rows.first() {
        Some(row) => row.try_get::<String, _>(1)?.parse().ok(),
        None => None,
    };
    if !recorded.is_empty() {
        let look = Transaction::query(statements.look.clone()).bind(recorded.clone());
        writing.rows(look).await?;
    }
    Ok((recorded, xid))
}

/// Where a fill is.
struct Stage {
    key_form: String,
    filling: Option<String>,
    first: bool,
    sweeping: bool,
    place: Option<String>,
    filled: i64,
    total: i64,
}

impl Stage {
    /// The feed's row, locked.
    async fn lock(writing: &mut Transaction, relation: &Resolved) -> Worked<Self> {
        let query = Transaction::query(relation.statements.stored.clone());
        let rows = writing.rows(query.bind(relation.names.stem().to_owned())).await;
        let rows = rows.map_err(|error| unless_missing(FILL, relation, error))?;
        let row = rows.first().ok_or_else(|| missing(FILL, relation))?;
        Ok(Self {
            key_form: row.try_get(0)?,
            filling: row.try_get(2)?,
            first: row.try_get(3)?,
            sweeping: row.try_get(4)?,
            place: row.try_get(5)?,
            filled: row.try_get(6)?,
            total: row.try_get(7)?,
        })
    }

    fn progress(&self, now: usize) -> FillProgress {
        let filled = number(self.filled) + now as u64;
        FillProgress { filled, total: number(self.total).max(filled), done: false }
    }
}

/// What a feed's row says that decides what `install` does.
pub(super) struct Stored {
    pub key_form: String,
    pub trusted: Option<String>,
    pub filling: bool,
    /// Whether its life began in this database.
    pub ours: bool,
}

/// The feed's row, locked; none if there is none.
pub(super) async fn stored(
    writing: &mut Transaction,
    relation: &Resolved,
) -> Worked<Option<Stored>> {
    let query = Transaction::query(relation.statements.stored.clone());
    let rows = writing.rows(query.bind(relation.names.stem().to_owned())).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Stored {
        key_form: row.try_get(0)?,
        trusted: row.try_get(1)?,
        filling: row.try_get::<Option<String>, _>(2)?.is_some(),
        ours: row.try_get(8)?,
    }))
}

/// The signature as it is now.
pub(super) async fn signature(
    transaction: &mut Transaction,
    relation: &Resolved,
) -> Worked<String> {
    let row = transaction.row(Transaction::query(relation.statements.signature.clone())).await?;
    Ok(row.try_get::<Option<String>, _>(0)?.unwrap_or_default())
}

/// Says that all rows are to be recorded, under the present signature.
pub(super) async fn begin(writing: &mut Transaction, relation: &Resolved) -> Worked<()> {
    let signature = signature(writing, relation).await?;
    let estimate = writing.row(Transaction::query(relation.statements.estimate.clone())).await?;
    let query = Transaction::query(relation.statements.begin_fill.clone())
        .bind(relation.names.stem().to_owned())
        .bind(signature)
        .bind(estimate.try_get::<Option<i64>, _>(0)?.unwrap_or(0));
    writing.rows(query).await?;
    Ok(())
}

/// Keys of the next rows of the table.
async fn next_rows(
    writing: &mut Transaction,
    relation: &Resolved,
    place: Option<&str>,
    limit: usize,
) -> Worked<Vec<String>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let [first, after] = &relation.statements.walk;
    let query = match place {
        None => Transaction::query(first.clone()).bind(limit),
        Some(place) => Transaction::query(after.clone()).bind(limit).bind(place.to_owned()),
    };
    let rows = writing.rows(query).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The next live rows of the feed, tombstones too if it is `all`, and which have no row in the table.
async fn next_recorded(
    writing: &mut Transaction,
    relation: &Resolved,
    place: Option<&str>,
    limit: usize,
    all: bool,
) -> Worked<(Vec<String>, Vec<String>)> {
    let rows = super::audit::feed_rows(writing, relation, place, limit, all).await?;
    let ghosts = rows.iter().filter(|row| !row.there).map(|row| row.key.clone()).collect();
    Ok((rows.into_iter().map(|row| row.key).collect(), ghosts))
}

/// One transaction's worth.
async fn page(
    writing: &mut Transaction,
    relation: &Resolved,
    limit: usize,
) -> Worked<FillProgress> {
    let stage = Stage::lock(writing, relation).await?;
    let Some(filling) = &stage.filling else {
        return Ok(FillProgress { done: true, ..stage.progress(0) });
    };
    debug_assert_eq!(stage.key_form, relation.key.describe(), "install makes sure of it");
    let place = stage.place.as_deref();
    let (keys, sweeping) = if stage.sweeping {
        let (keys, ghosts) = next_recorded(writing, relation, place, limit, !stage.first).await?;
        record(writing, relation, &ghosts, false).await?;
        (keys, true)
    } else {
        let keys = next_rows(writing, relation, place, limit).await?;
        record(writing, relation, &keys, stage.first).await?;
        (keys, false)
    };
    let ended = keys.len() < limit;
    let stem = relation.names.stem().to_owned();
    if ended && sweeping {
        let now = signature(writing, relation).await?;
        if now != *filling {
            // Capture changed meanwhile: what changed before that may not be recorded.
            begin(writing, relation).await?;
            return Ok(stage.progress(0));
        }
        let query = Transaction::query(include_str!("../../sql/capture/trust.sql"));
        writing.rows(query.bind(stem).bind(now)).await?;
        return Ok(FillProgress { done: true, ..stage.progress(0) });
    }
    let filled = if sweeping { 0 } else { keys.len() };
    let query = Transaction::query(include_str!("../../sql/capture/move_fill.sql"))
        .bind(stem)
        .bind(keys.last().filter(|_| !ended).cloned())
        .bind(i64::try_from(filled).unwrap_or(0))
        .bind(sweeping || ended);
    writing.rows(query).await?;
    Ok(stage.progress(filled))
}

impl PostgresSource {
    /// One page of a fill.
    pub(super) async fn fill_page(&self) -> Result<FillProgress, PortError> {
        let relation = self.seen();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(FILL, patience.statement_max()).await?;
            let limit = patience.rows(SOURCE_WRITE_ROWS_MAX as usize);
            let work = page(&mut writing, &relation, limit).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }

    /// Gives keys numbers, in transactions of a bounded size. Returns those that were given one, and
    /// the last transaction.
    pub(super) async fn number_keys(
        &self,
        operation: &'static str,
        keys: &[Key],
    ) -> Result<(Vec<String>, Option<u64>), PortError> {
        let relation = self.seen();
        let keys: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        let (mut all, mut newest, mut from) = (Vec::new(), None, 0);
        let mut patience = Patience::default();
        while from < keys.len() {
            let to = (from + patience.rows(SOURCE_WRITE_ROWS_MAX as usize)).min(keys.len());
            let mut writing = self.writing(operation, patience.statement_max()).await?;
            let work = record(&mut writing, &relation, &keys[from..to], false).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                Ok((recorded, xid)) => {
                    all.extend(recorded);
                    newest = xid.or(newest);
                    from = to;
                }
            }
        }
        Ok((all, newest))
    }
}
