//! Marks of related tables, expanded into the feed: each row that is found by a mark's values gets a
//! number.
//!
//! Invariant: S3 with X41: a mark is deleted in the transaction that gave the last of its rows a
//! number, so a snapshot without marks holds them all. Rows that move between two transactions of
//! one expansion are recorded by their own change. A mark that is made again meanwhile is expanded
//! once more from the beginning, after the expansion under way, so that no row waits for ever.

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde_json::Value as Json;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::fill::{Walked, record};
use super::key::{Part, bytes};
use super::meta::Meta;
use super::names::quote;
use super::resolve::Resolved;
use super::triggers::{LIVE, MARK_COLUMNS};

/// Transactions of one fold: a page of changes waits no longer for marks.
const FOLD_TRANSACTIONS_MAX: u32 = 20;

/// A mark.
struct Mark {
    /// How rows are compared, and the values: what identifies the mark.
    identity: Vec<Part>,
    place: Option<Vec<u8>>,
    again: bool,
}

impl SqliteSource {
    /// Expands marks, in bounded transactions, as far as one call should.
    pub(super) async fn fold(&self) -> Result<(), PortError> {
        for _ in 0..FOLD_TRANSACTIONS_MAX {
            if !self.write("expand marks", fold_page).await? {
                break;
            }
        }
        Ok(())
    }
}

/// One transaction's worth; returns whether marks may be left.
fn fold_page(connection: &Connection, relation: &Resolved) -> Result<bool, Failure> {
    Meta::demand(connection, relation, "expand marks")?;
    let table = quote(&relation.names.mark());
    let columns = MARK_COLUMNS.join(", ");
    let places: Vec<String> = (1..=MARK_COLUMNS.len() + 1).map(|n| format!("?{n}")).collect();
    let this = format!("(watch, {columns}) = ({})", places.join(", "));
    let select = format!("SELECT watch, {columns}, place, again FROM {table} LIMIT 1");
    let mut left = SOURCE_WRITE_ROWS_MAX;
    while left > 0 {
        let Some(mark) = next(connection, &select)? else { return Ok(false) };
        let rows = expand(connection, relation, &mark, left)?;
        let mut bound = mark.identity;
        let ended = (rows.len() as u32) < left;
        let moved = if ended && !mark.again {
            format!("DELETE FROM {table} WHERE {this}")
        } else {
            let last = rows.last().filter(|_| !ended);
            bound.push(last.map_or(Part::Null, |last| Part::Text(last.place.clone())));
            bound.push(Part::Integer(i64::from(!ended && mark.again)));
            let n = bound.len();
            format!("UPDATE {table} SET place = ?{}, again = ?{n} WHERE {this}", n - 1)
        };
        connection.prepare_cached(&moved)?.execute(params_from_iter(bound))?;
        // A mark that finds nothing counts too: it costs a statement.
        left = left.saturating_sub((rows.len() as u32).max(1));
        record(connection, relation, rows.iter().map(|row| row.key.as_slice()), LIVE)?;
    }
    Ok(true)
}

fn next(connection: &Connection, select: &str) -> Result<Option<Mark>, Failure> {
    let mut select = connection.prepare_cached(select)?;
    let mark = select.query_row([], |row| {
        let places = 0..=MARK_COLUMNS.len();
        Ok(Mark {
            identity: places
                .map(|place| row.get_ref(place).map(Part::from))
                .collect::<Result<_, _>>()?,
            place: row.get_ref("place")?.as_bytes_or_null()?.map(<[u8]>::to_vec),
            again: row.get("again")?,
        })
    });
    Ok(mark.optional()?)
}

/// Keys and places of the next rows that a mark's values find. A mark of columns that are gone
/// finds none: nothing is joined by them any more.
fn expand(
    connection: &Connection,
    relation: &Resolved,
    mark: &Mark,
    limit: u32,
) -> Result<Vec<Walked>, Failure> {
    let [Part::Text(watch), values @ ..] = &mark.identity[..] else { return Ok(Vec::new()) };
    let Some((condition, compared)) = condition(relation, watch) else { return Ok(Vec::new()) };
    let after = mark.place.as_deref().and_then(|place| relation.walk.parse_stored(place));
    let own = quote(&relation.table.name);
    let row = format!("{own}.");
    let mut bound = values[..compared].to_vec();
    let mut beyond = String::new();
    if let Some(after) = &after {
        let places: Vec<String> =
            (1..=after.len()).map(|n| format!("?{}", bound.len() + n)).collect();
        beyond = format!(" AND ({}) > ({})", relation.walk.list(&row), places.join(", "));
        bound.extend_from_slice(after);
    }
    bound.push(Part::Integer(i64::from(limit)));
    let select = format!(
        "SELECT {}, {} FROM {own} WHERE {condition}{beyond} ORDER BY {} LIMIT ?{}",
        relation.key.text(&row),
        relation.walk.text(&row),
        relation.walk.list(&row),
        bound.len()
    );
    let mut select = connection.prepare_cached(&select)?;
    let mut rows = select.query(params_from_iter(bound))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(Walked { key: bytes(row, 0)?.to_vec(), place: bytes(row, 1)?.to_vec() });
    }
    Ok(all)
}

/// That a row is found by a mark's values, and how many of them that takes.
fn condition(relation: &Resolved, watch: &[u8]) -> Option<(String, usize)> {
    let watch: Vec<Json> = serde_json::from_slice(watch).ok()?;
    let mut all = Vec::new();
    for (place, one) in watch.iter().enumerate() {
        let text = |name: &str| one.get(name).and_then(Json::as_str);
        let column = relation.table.column(text("column")?)?;
        let value = format!("?{}", place + 1);
        let name = format!("{}.{}", quote(&relation.table.name), quote(&column.name));
        let mut either = vec![format!("{name} = {value}")];
        match text("convert")? {
            "number" => either.push(format!("CAST({name} AS NUMERIC) = {value}")),
            "text" => either.push(format!("{name} = CAST({value} AS NUMERIC)")),
            _ => {}
        }
        match text("fold")? {
            "BINARY" => {}
            known @ ("NOCASE" | "RTRIM") => {
                either.push(format!("{name} COLLATE {} = {value}", quote(known)));
            }
            // A collation of the application's own is not known here: every row may be meant.
            _ => either.push("1".into()),
        }
        all.push(format!("({})", either.join(" OR ")));
    }
    let compared = all.len();
    (1..=MARK_COLUMNS.len()).contains(&compared).then(|| (all.join(" AND "), compared))
}
