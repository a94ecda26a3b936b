//! Marks of related tables, expanded into the feed: each row that is found by a mark's values gets a
//! number.
//!
//! Invariant: S3 with X41. A mark has a number of its own and goes in the transaction that gives the
//! last of its rows a number. So in any snapshot everything below the least number of a mark is in
//! the feed, however many marks came since: that is as far as a moment may go.
//!
//! Rows are found in snapshots, without a lock, and numbered in short transactions that look again
//! whether they are there; what changes in between has a number by its own change. A mark that is
//! made again is another one, and is expanded once more, so no row waits for ever.

mod finding;

use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::fill::record;
use super::key::{Part, bytes};
use super::meta::Meta;
use super::names::quote;
use super::records::has_row;
use super::resolve::Resolved;
use super::triggers::{LIVE, MARK_COLUMNS};

pub(super) use finding::unindexed;
use finding::{Finding, Scan};

/// Steps of one fold, each a snapshot and a transaction: a page of changes waits no longer for
/// marks.
const STEPS_MAX: u32 = 20;

/// Marks that are expanded together: one pass over the table serves all of them where no index
/// finds their rows.
const MARKS_AT_ONCE: u32 = 2_000;

/// An expansion under way. It lives as long as the process: another one begins again.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    schema_version: i64,
    /// The greatest number of its marks.
    upto: i64,
    /// By how they are compared, each once.
    marks: Arc<[Mark]>,
    /// The marks before it are done.
    done: usize,
    /// The place of the last row that was looked at for the next one.
    place: Option<Vec<u8>>,
}

/// A mark.
#[derive(Debug)]
struct Mark {
    /// How rows are compared.
    watch: Vec<u8>,
    values: Vec<Part>,
}

/// What one step found: keys of rows, and what is left to do.
struct Step {
    keys: Vec<Vec<u8>>,
    expansion: Expansion,
}

impl SqliteSource {
    /// Expands marks, in bounded steps, as far as one call should.
    pub(super) async fn fold(&self) -> Result<(), PortError> {
        let mut under_way = self.shared.expansion.lock().await;
        for _ in 0..STEPS_MAX {
            // What fails begins again.
            let expansion = under_way.take();
            let look = |connection: &Connection, relation: &Resolved| {
                step(connection, relation, expansion)
            };
            let Some(found) = self.glance("look for marked rows", look).await? else { break };
            if found.keys.is_empty() && !found.expansion.is_done() {
                *under_way = Some(found.expansion);
                continue;
            }
            let began = Instant::now();
            let numbered =
                |connection: &Connection, relation: &Resolved| number(connection, relation, found);
            *under_way = self.write("expand marks", numbered).await?;
            // A writer that waits for the lock tries only now and then.
            tokio::time::sleep(began.elapsed()).await;
        }
        Ok(())
    }
}

impl Expansion {
    fn is_done(&self) -> bool {
        self.done == self.marks.len()
    }
}

/// Looks for some rows, in one snapshot; `None` if there is no mark.
fn step(
    connection: &Connection,
    relation: &Resolved,
    known: Option<Expansion>,
) -> Result<Option<Step>, Failure> {
    Meta::demand(connection, relation, "expand marks")?;
    let known = known.filter(|known| known.schema_version == relation.schema_version);
    let begun = match known {
        Some(known) => Some(known),
        None => begin(connection, relation)?,
    };
    let Some(mut expansion) = begun else { return Ok(None) };
    let marks = Arc::clone(&expansion.marks);
    let (mut keys, most) = (Vec::new(), SOURCE_WRITE_ROWS_MAX as usize);
    while let Some(mark) = marks.get(expansion.done) {
        let alike = marks[expansion.done..].iter().take_while(|other| other.watch == mark.watch);
        match Finding::of(connection, relation, &mark.watch)? {
            // Nothing is joined by columns that are gone.
            None => expansion.done += alike.count(),
            Some(finding) if finding.indexed => {
                for mark in alike {
                    let place = expansion.place.take();
                    let limit = most - keys.len();
                    expansion.place =
                        finding.rows(connection, relation, mark, place, limit, &mut keys)?;
                    if expansion.place.is_some() {
                        return Ok(Some(Step { keys, expansion }));
                    }
                    expansion.done += 1;
                }
            }
            // One part of the table is a step.
            Some(finding) if keys.is_empty() => {
                let scan = Scan { watch: &mark.watch, upto: expansion.upto, limit: most };
                let place = expansion.place.take();
                expansion.place = finding.scan(connection, relation, &scan, place, &mut keys)?;
                if expansion.place.is_none() {
                    expansion.done += alike.count();
                }
                break;
            }
            Some(_) => break,
        }
    }
    Ok(Some(Step { keys, expansion }))
}

/// Takes the next marks together.
fn begin(connection: &Connection, relation: &Resolved) -> Result<Option<Expansion>, Failure> {
    let columns = MARK_COLUMNS.join(", ");
    // What is equal but written otherwise is compared with text otherwise.
    let types = MARK_COLUMNS.map(|column| format!("typeof({column})")).join(", ");
    let mut select = connection.prepare_cached(&format!(
        "SELECT max(number), watch, {columns} FROM (SELECT * FROM {} ORDER BY number LIMIT ?1)
         GROUP BY watch, {types}, {columns} ORDER BY watch",
        quote(&relation.names.mark())
    ))?;
    let mut rows = select.query([MARKS_AT_ONCE])?;
    let (mut upto, mut marks) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        upto = row.get::<_, i64>(0)?.max(upto);
        let values = (2..2 + MARK_COLUMNS.len())
            .map(|place| row.get_ref(place).map(Part::from))
            .collect::<Result<_, _>>()?;
        marks.push(Mark { watch: bytes(row, 1)?.to_vec(), values });
    }
    let (schema_version, marks) = (relation.schema_version, Arc::from(marks));
    let expansion = Expansion { schema_version, upto, marks, done: 0, place: None };
    Ok((!expansion.is_done()).then_some(expansion))
}

/// Numbers what was found and is still there; the last step takes the marks away with it.
fn number(
    connection: &Connection,
    relation: &Resolved,
    step: Step,
) -> Result<Option<Expansion>, Failure> {
    Meta::demand(connection, relation, "expand marks")?;
    let Step { keys, expansion } = step;
    let table = quote(&relation.names.mark());
    let mut left =
        connection.prepare_cached(&format!("SELECT 1 FROM {table} WHERE number <= ?1"))?;
    if !left.exists([expansion.upto])? {
        // Another reader of this feed was faster.
        return Ok(None);
    }
    let mut there = Vec::with_capacity(keys.len());
    for key in &keys {
        if has_row(connection, relation, key)? {
            there.push(key.as_slice());
        }
    }
    record(connection, relation, there.into_iter(), LIVE)?;
    if !expansion.is_done() {
        return Ok(Some(expansion));
    }
    connection
        .prepare_cached(&format!("DELETE FROM {table} WHERE number <= ?1"))?
        .execute([expansion.upto])?;
    Ok(None)
}

#[cfg(test)]
mod tests;
