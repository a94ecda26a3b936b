//! Marks of related tables, folded into the feed.
//!
//! Invariant: S3 with X41. A fold names all marks that are visible in one snapshot F, deletes them
//! (it waits for another folder, and never skips), and numbers their keys in the same transaction.
//! A page that is read after it is committed holds everything that was visible in F, so F is its
//! moment, whatever was marked meanwhile. A mark of what rows refer to is expanded in pages, and holds
//! every moment back until the last of them is committed.

use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::{Key, Moment};
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::Row;

use super::fill::record;
use super::records::existing;
use super::resolve::{Referred, Resolved};
use super::snapshot::to_moment;
use super::statements::template;
use super::{Patience, PostgresSource, Worked};

const FOLD: &str = "fold marks";

/// Transactions of one fold: a page of changes waits no longer for marks.
const FOLD_TRANSACTIONS_MAX: u32 = 20;

/// What one transaction did.
enum Folded {
    /// All marks that were visible in this snapshot are in the feed.
    All(Moment),
    /// Marks are left.
    Some,
}

/// A mark.
struct Mark {
    id: i64,
    watch: Option<String>,
    key: String,
    place: Option<String>,
}

impl PostgresSource {
    /// Folds marks as far as one call should. Returns the snapshot in which all were; none if some
    /// are left.
    pub(super) async fn fold(&self) -> Result<Option<Moment>, PortError> {
        let relation = self.seen();
        let mut patience = Patience::default();
        let mut transactions = 0;
        while transactions < FOLD_TRANSACTIONS_MAX {
            let mut writing = self.writing(FOLD, patience.statement_max()).await?;
            let limit = patience.rows(SOURCE_WRITE_ROWS_MAX as usize);
            let work = fold(&mut writing, &relation, limit).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                Ok(Folded::All(moment)) => return Ok(Some(moment)),
                Ok(Folded::Some) => transactions += 1,
            }
        }
        Ok(None)
    }
}

/// One transaction.
async fn fold(writing: &mut Transaction, relation: &Resolved, limit: usize) -> Worked<Folded> {
    let mark = relation.names.mark();
    let select = template(include_str!("../../sql/mark/next.sql"), &[("mark", &mark)]);
    let bound = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let rows = writing.rows(Transaction::query(select).bind(bound)).await?;
    // One row at least: it carries the snapshot.
    let first = rows.first().ok_or(truekeep_postgres::sqlx::Error::RowNotFound)?;
    let snapshot = to_moment(&first.try_get::<String, _>(0)?)?;
    let mut marks = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Some(id) = row.try_get(1)? {
            marks.push(Mark {
                id,
                watch: row.try_get(2)?,
                key: row.try_get::<Option<String>, _>(3)?.unwrap_or_default(),
                place: row.try_get(4)?,
            });
        }
    }
    let mut all = marks.len() <= limit;
    marks.truncate(limit);
    let (mut keys, mut done, mut left) = (Vec::new(), Vec::new(), limit);
    for mark in marks {
        if left == 0 {
            all = false;
            break;
        }
        let Some(watch) = &mark.watch else {
            left -= 1;
            keys.push(mark.key);
            done.push(mark.id);
            continue;
        };
        // A mark of rules that are gone finds nothing: nothing is joined by it any more.
        let referred = relation.referred.iter().find(|referred| referred.identity == *watch);
        let found = match referred {
            Some(referred) => expand(writing, relation, referred, &mark, left).await?,
            None => Vec::new(),
        };
        if found.len() < left {
            done.push(mark.id);
        } else {
            all = false;
            let moved = template(
                include_str!("../../sql/mark/move.sql"),
                &[("mark", &relation.names.mark())],
            );
            let place = found.last().cloned();
            writing.rows(Transaction::query(moved).bind(mark.id).bind(place)).await?;
        }
        left -= found.len().max(1).min(left);
        keys.extend(found);
    }
    keys.sort();
    keys.dedup();
    let remove = template(include_str!("../../sql/mark/remove.sql"), &[("mark", &mark)]);
    writing.rows(Transaction::query(remove).bind(done)).await?;
    let keys: Vec<Key> = keys.into_iter().map(Key::new).collect();
    // What a child refers to may be no value of the key's type: then there is no such record.
    let keys: Vec<String> =
        existing(writing, relation, &keys).await?.iter().map(Key::to_string).collect();
    record(writing, relation, &keys, false).await?;
    Ok(if all { Folded::All(snapshot) } else { Folded::Some })
}

/// Keys of the next rows that refer to what a mark names.
async fn expand(
    writing: &mut Transaction,
    relation: &Resolved,
    referred: &Referred,
    mark: &Mark,
    limit: usize,
) -> Worked<Vec<String>> {
    let values = referred.theirs.values("$1::text");
    let same: Vec<String> =
        referred.via.iter().zip(values).map(|(own, value)| format!("t.{own} = {value}")).collect();
    let list = relation.key.list("t.");
    let beyond = mark.place.as_ref().map_or(String::new(), |_| {
        format!(" AND ({list}) > ({})", relation.key.values("$3::text").join(", "))
    });
    let canonical = relation.key.canonical("t.");
    let select = template(
        include_str!("../../sql/mark/expand.sql"),
        &[
            ("canonical", &canonical),
            ("table", &relation.table.name.quoted()),
            ("same", &same.join(" AND ")),
            ("beyond", &beyond),
            ("list", &list),
        ],
    );
    let mut query = Transaction::query(select)
        .bind(mark.key.clone())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    if let Some(place) = &mark.place {
        query = query.bind(place.clone());
    }
    let rows = writing.rows(query).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
