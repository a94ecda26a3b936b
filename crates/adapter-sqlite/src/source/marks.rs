//! Marks of related tables, expanded into the feed: each row that refers to a marked value gets a
//! number.
//!
//! Invariant: S3 with X41: a mark is deleted in the transaction that gave the last of its rows a
//! number, so a snapshot without marks holds them all. Rows that move between two transactions of
//! one expansion are recorded by their own change.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use serde_json::Value as Json;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::fill::record;
use super::key::{Part, Stored, bytes};
use super::meta::Meta;
use super::names::quote;
use super::resolve::Resolved;
use super::table::Affinity;
use super::triggers::LIVE;

/// Transactions of one fold: a page of changes waits no longer for marks.
const FOLD_TRANSACTIONS_MAX: u32 = 20;

/// A mark.
struct Mark {
    number: i64,
    watch: String,
    place: Option<Vec<u8>>,
    values: Vec<Sql>,
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
    let mut left = SOURCE_WRITE_ROWS_MAX;
    while left > 0 {
        let Some(mark) = next(connection, &table)? else { return Ok(false) };
        let rows = expand(connection, relation, &mark, left)?;
        if (rows.len() as u32) < left {
            let delete = format!("DELETE FROM {table} WHERE number = ?1");
            connection.prepare_cached(&delete)?.execute([mark.number])?;
        } else if let Some((_, place)) = rows.last() {
            let save = format!("UPDATE {table} SET place = ?2 WHERE number = ?1");
            connection.prepare_cached(&save)?.execute(params![mark.number, Stored(place)])?;
        }
        // A mark that nothing refers to counts too: it costs a statement.
        left = left.saturating_sub((rows.len() as u32).max(1));
        record(connection, relation, rows.iter().map(|(key, _)| key.as_slice()), LIVE)?;
    }
    Ok(true)
}

fn next(connection: &Connection, table: &str) -> Result<Option<Mark>, Failure> {
    let select =
        format!("SELECT number, watch, place, a, b, c, d FROM {table} ORDER BY number LIMIT 1");
    let mut select = connection.prepare_cached(&select)?;
    let mark = select.query_row([], |row| {
        Ok(Mark {
            number: row.get(0)?,
            watch: row.get(1)?,
            place: row.get_ref(2)?.as_bytes_or_null()?.map(<[u8]>::to_vec),
            values: (3..7).map(|place| row.get(place)).collect::<Result<_, _>>()?,
        })
    });
    Ok(mark.optional()?)
}

/// Keys and places of the next rows that refer to a mark's values. A mark whose columns are gone
/// has none: the rules no longer join by them.
fn expand(
    connection: &Connection,
    relation: &Resolved,
    mark: &Mark,
    limit: u32,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Failure> {
    let Some(condition) = condition(relation, mark) else { return Ok(Vec::new()) };
    let after = mark.place.as_deref().and_then(|place| relation.walk.parse_stored(place));
    let own = quote(&relation.table.name);
    let row = format!("{own}.");
    let mut bound: Vec<Sql> = mark.values.clone();
    let mut beyond = String::new();
    if let Some(after) = &after {
        let places: Vec<String> =
            (0..after.len()).map(|n| format!("?{}", bound.len() + n + 1)).collect();
        beyond = format!(" AND ({}) > ({})", relation.walk.list(&row), places.join(", "));
        bound.extend(after.iter().map(sql));
    }
    bound.push(Sql::Integer(i64::from(limit)));
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
        all.push((bytes(row, 0)?.to_vec(), bytes(row, 1)?.to_vec()));
    }
    Ok(all)
}

fn sql(part: &Part) -> Sql {
    match part {
        Part::Null | Part::Unspeakable => Sql::Null,
        Part::Integer(integer) => Sql::Integer(*integer),
        Part::Real(real) => Sql::Real(*real),
        // The places of a walk are text only in tables whose primary key is; what is not UTF-8
        // there is bound as it is shown.
        Part::Text(text) => Sql::Text(String::from_utf8_lossy(text).into_owned()),
        Part::Blob(bytes) => Sql::Blob(bytes.clone()),
    }
}

/// That a row refers to a mark's values. One row too many costs a delivery, one too few a wrong
/// document: so where a join could convert one side, both readings count.
fn condition(relation: &Resolved, mark: &Mark) -> Option<String> {
    let watch: Json = serde_json::from_str(&mark.watch).ok()?;
    let texts = |name: &str| watch.get(name).and_then(Json::as_array).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (place, (via, collate)) in texts("via").iter().zip(texts("collate")).enumerate() {
        let column = relation.table.column(via.as_str()?)?;
        let value = format!("?{}", place + 1);
        let name = format!("{}.{}", quote(&relation.table.name), quote(&column.name));
        all.push(match (collate.as_str()?, column.affinity, mark.values.get(place)?) {
            ("BINARY", Affinity::Integer | Affinity::Real | Affinity::Numeric, _)
            | ("BINARY", Affinity::Text, Sql::Text(_) | Sql::Blob(_)) => {
                format!("{name} = {value}")
            }
            ("BINARY", Affinity::Text | Affinity::Blob, _) => format!(
                "({name} = {value} OR CAST({name} AS NUMERIC) = CAST({value} AS NUMERIC) \
                 OR CAST({name} AS TEXT) = CAST({value} AS TEXT))"
            ),
            (collation @ ("NOCASE" | "RTRIM"), _, _) => {
                format!("{name} COLLATE {} = {value}", quote(collation))
            }
            // A collation of the application's own is not known here.
            _ => "1".to_owned(),
        });
    }
    (!all.is_empty()).then(|| all.join(" AND "))
}
