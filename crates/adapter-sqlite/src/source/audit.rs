//! The audit: the feed held against the table. It only reads.
//!
//! Where an index walks the table in the order of keys it is one merge. Elsewhere every feed row is
//! looked up in the table, then every row in the feed.

use rusqlite::{Connection, OptionalExtension};
use truekeep_core::Key;
use truekeep_core::ports::AuditPage;
use truekeep_sqlite::Failure;

use super::fill::walk;
use super::key::{Part, Stored, bytes, key, stored};
use super::meta::Meta;
use super::names::{from_hex, to_hex};
use super::records::has_row;
use super::resolve::Resolved;
use super::triggers::{LIVE, TOMBSTONE};

mod lanes;
mod merge;

/// Where a page begins.
enum Place {
    Feed(Option<Key>),
    Table(Option<Key>),
}

impl Place {
    fn parse(after: Option<&Key>) -> Self {
        match after.map(Key::as_str).and_then(|text| text.split_at_checked(1)) {
            Some(("f", key)) => Self::Feed(Some(Key::new(key))),
            Some(("t", "")) => Self::Table(None),
            Some(("t", place)) => Self::Table(Some(Key::new(&place[1..]))),
            None | Some(_) => Self::Feed(None),
        }
    }

    fn key(self) -> Key {
        match self {
            Self::Feed(key) => Key::new(format!("f{}", key.as_ref().map_or("", Key::as_str))),
            Self::Table(None) => Key::new("t"),
            Self::Table(Some(place)) => Key::new(format!("t:{place}")),
        }
    }
}

/// One page. A place that another way of walking gave is none: the audit begins again.
pub(super) fn page(
    connection: &Connection,
    relation: &Resolved,
    after: Option<&Key>,
    limit: u32,
) -> Result<AuditPage, Failure> {
    Meta::demand(connection, relation, "audit the feed")?;
    if let [column] = relation.key.columns.as_slice()
        && lanes::walkable(column)
    {
        let after = after.and_then(|after| from_hex(after.as_str().strip_prefix('m')?.as_bytes()));
        let (page, last) = merge::page(connection, relation, column, after.as_deref(), limit)?;
        let next = last.map(|place| Key::new(format!("m{}", to_hex(&place))));
        return Ok(AuditPage { next, ..page });
    }
    match Place::parse(after) {
        Place::Feed(after) => feed(connection, relation, after.as_ref(), limit),
        Place::Table(after) => table(connection, relation, after.as_ref(), limit),
    }
}

/// Whether a row's feed row is there and no tombstone.
fn is_recorded(connection: &Connection, relation: &Resolved, text: &[u8]) -> Result<bool, Failure> {
    let mut find = connection.prepare_cached(&relation.statements.find)?;
    let deleted: Option<i64> = find.query_row([Stored(text)], |row| row.get(1)).optional()?;
    Ok(deleted.is_some_and(|deleted| deleted != TOMBSTONE))
}

/// Live feed rows without a row. What a REPLACE removed is none: it has a number of its own.
fn feed(
    connection: &Connection,
    relation: &Resolved,
    after: Option<&Key>,
    limit: u32,
) -> Result<AuditPage, Failure> {
    let listing = &relation.statements.feed;
    let mut statement =
        connection.prepare_cached(if after.is_some() { &listing.after } else { &listing.first })?;
    let limit_part = Part::Integer(i64::from(limit));
    let bound: Vec<Part> =
        after.map(|key| Part::Text(stored(key).into_owned())).into_iter().collect();
    let mut rows =
        statement.query(rusqlite::params_from_iter(bound.iter().chain([&limit_part])))?;
    let mut page = AuditPage::default();
    let mut last = None;
    while let Some(row) = rows.next()? {
        page.seen += 1;
        let text = bytes(row, 0)?;
        last = Some(key(text));
        if row.get::<_, i64>(1)? == LIVE && !has_row(connection, relation, text)? {
            page.ghosts.push(key(text));
        }
    }
    let full = page.seen == u64::from(limit);
    page.next = Some(if full { Place::Feed(last) } else { Place::Table(None) }.key());
    Ok(page)
}

/// Rows whose feed row is absent or a tombstone.
fn table(
    connection: &Connection,
    relation: &Resolved,
    after: Option<&Key>,
    limit: u32,
) -> Result<AuditPage, Failure> {
    let after = after.map(stored);
    let rows = walk(connection, relation, after.as_deref(), limit)?;
    let mut page = AuditPage { seen: rows.len() as u64, ..AuditPage::default() };
    for row in &rows {
        if !is_recorded(connection, relation, &row.key)? {
            page.missed.push(key(&row.key));
        }
    }
    let last = rows.last().filter(|_| page.seen == u64::from(limit));
    page.next = last.map(|last| Place::Table(Some(key(&last.place))).key());
    Ok(page)
}
