//! The audit as one merge: the feed by key, and the table by lanes in the same order.
//!
//! A row whose text is reserved stands at the place of its value, not at that of its key: it is
//! looked up in the feed, as a feed row that no row of the table meets is looked up there.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::Write;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Rows, params};
use truekeep_core::ports::AuditPage;
use truekeep_sqlite::Failure;

use super::is_recorded;
use super::lanes::{Lane, lanes};
use crate::source::key::{Form, KeyColumn, Part, Stored, bytes, is_reserved, key};
use crate::source::names::{quote, to_hex};
use crate::source::records::has_row;
use crate::source::resolve::Resolved;
use crate::source::triggers::{LIVE, TOMBSTONE};

/// The next row of a lane.
struct Head<'s> {
    rows: Rows<'s>,
    /// Its place in the order of keys.
    place: Vec<u8>,
    /// Whether that is its key.
    plain: bool,
}

impl Head<'_> {
    /// Steps on to the next row; says whether there is one.
    fn step(&mut self, column: &KeyColumn) -> Result<bool, Failure> {
        let Some(row) = self.rows.next()? else { return Ok(false) };
        self.place.clear();
        match row.get_ref(0)? {
            ValueRef::Integer(integer) => {
                write!(self.place, "{integer}").expect("memory takes what is written");
            }
            ValueRef::Text(text) => {
                self.place.extend_from_slice(text);
                self.plain = !is_reserved(text);
            }
            ValueRef::Blob(bytes) => {
                let prefix = if column.form == Form::Bytes { "" } else { "b:" };
                self.place.extend_from_slice(prefix.as_bytes());
                self.place.extend_from_slice(to_hex(bytes).as_bytes());
                self.plain = true;
            }
            // No lane holds one.
            ValueRef::Null | ValueRef::Real(_) => {}
        }
        Ok(true)
    }

    /// Steps on to the first row after a place.
    fn step_past(&mut self, column: &KeyColumn, after: Option<&[u8]>) -> Result<bool, Failure> {
        loop {
            if !self.step(column)? {
                return Ok(false);
            }
            if after.is_none_or(|after| self.place.as_slice() > after) {
                return Ok(true);
            }
        }
    }

    /// The text of the row's key.
    fn text(&self, relation: &Resolved) -> Vec<u8> {
        if self.plain {
            return self.place.clone();
        }
        relation.key.render(&[Part::Text(self.place.clone())])
    }
}

/// The head with the least place is the greatest.
impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Head<'_> {}

/// The first row of each lane after a place.
fn heads<'s>(
    statements: &'s mut [CachedStatement<'_>],
    lanes: &[Lane],
    column: &KeyColumn,
    after: Option<&[u8]>,
) -> Result<BinaryHeap<Head<'s>>, Failure> {
    let mut heads = BinaryHeap::with_capacity(lanes.len());
    for (statement, lane) in statements.iter_mut().zip(lanes) {
        let rows = statement.query([&lane.begin])?;
        let mut head = Head { rows, place: Vec::new(), plain: true };
        if head.step_past(column, after)? {
            heads.push(head);
        }
    }
    Ok(heads)
}

/// One page, and the place of its last row if it is not the last page.
pub(super) fn page(
    connection: &Connection,
    relation: &Resolved,
    column: &KeyColumn,
    after: Option<&[u8]>,
    limit: u32,
) -> Result<(AuditPage, Option<Vec<u8>>), Failure> {
    let mut page = AuditPage::default();
    if after.is_none() && column.nullable {
        nameless(connection, relation, column, &mut page)?;
    }
    let lanes = lanes(&quote(&relation.table.name), column, after);
    let mut statements = lanes
        .iter()
        .map(|lane| connection.prepare_cached(&lane.sql))
        .collect::<Result<Vec<_>, _>>()?;
    let mut heads = heads(&mut statements, &lanes, column, after)?;
    let listing = &relation.statements.feed;
    let mut statement =
        connection.prepare_cached(if after.is_some() { &listing.after } else { &listing.first })?;
    let mut feed = match after {
        Some(after) => statement.query(params![Stored(after), -1])?,
        None => statement.query([-1])?,
    };
    let mut recorded = feed.next()?;
    let mut place = Vec::new();
    for _ in 0..limit.max(1) {
        let order = match (recorded, heads.peek()) {
            (None, None) => return Ok((page, None)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(row), Some(head)) => bytes(row, 0)?.cmp(head.place.as_slice()),
        };
        place.clear();
        let head = heads.peek_mut().filter(|_| order.is_ge());
        let joined = order.is_eq() && head.as_ref().is_some_and(|head| head.plain);
        if let Some(row) = recorded.filter(|_| order.is_le()) {
            page.seen += 1;
            let (text, deleted) = (bytes(row, 0)?, row.get::<_, i64>(1)?);
            place.extend_from_slice(text);
            if joined && deleted == TOMBSTONE {
                page.missed.push(key(text));
            } else if !joined && deleted == LIVE && !has_row(connection, relation, text)? {
                page.ghosts.push(key(text));
            }
            recorded = feed.next()?;
        }
        if let Some(mut head) = head {
            page.seen += 1;
            if !joined {
                let text = head.text(relation);
                if !is_recorded(connection, relation, &text)? {
                    page.missed.push(key(&text));
                }
                place.clone_from(&head.place);
            }
            if !head.step(column)? {
                PeekMut::pop(head);
            }
        }
    }
    let more = recorded.is_some() || !heads.is_empty();
    Ok((page, more.then_some(place)))
}

/// Rows without a key have one place in the feed.
fn nameless(
    connection: &Connection,
    relation: &Resolved,
    column: &KeyColumn,
    page: &mut AuditPage,
) -> Result<(), Failure> {
    let own = quote(&relation.table.name);
    let exists = format!("SELECT 1 FROM {own} WHERE {} IS NULL", column.sql);
    let text = relation.key.render(&[Part::Null]);
    if connection.prepare_cached(&exists)?.exists([])? && !is_recorded(connection, relation, &text)?
    {
        page.missed.push(key(&text));
    }
    Ok(())
}
