//! The fill: every row of the table gets a number in bounded transactions, then the feed is swept.
//!
//! It ends by trusting the signature that it began under; another one begins it anew. Only the
//! very first fill leaves alone what is in the feed already: triggers wrote that since. Any later
//! one follows a gap, in which each row may have changed, or a restore, after which a sink may hold
//! any key at a greater number, so each row and each tombstone gets a fresh number.

use rusqlite::{Connection, params, params_from_iter};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{CaptureState, FillProgress};
use truekeep_sqlite::Failure;

use super::key::{Part, Stored, bytes};
use super::meta::{Meta, Stage, number};
use super::records::has_row;
use super::resolve::Resolved;
use super::triggers::{LIVE, TOMBSTONE};

const OPERATION: &str = "fill the feed";

/// A row on a walk over the table: the text of its key, and of its place.
pub(super) struct Walked {
    pub key: Vec<u8>,
    pub place: Vec<u8>,
}

/// The next rows of the table after a place.
pub(super) fn walk(
    connection: &Connection,
    relation: &Resolved,
    place: Option<&[u8]>,
    limit: u32,
) -> Result<Vec<Walked>, Failure> {
    let after = place.and_then(|place| relation.walk.parse_stored(place));
    if place.is_some() && after.is_none() {
        let error = PortError::new("walk the table", FailureClass::Terminal, Code::UNEXPECTED);
        return Err(error.detail("the place is none of this table").into());
    }
    let listing = &relation.statements.walk;
    let after = after.unwrap_or_default();
    let text = if after.is_empty() { &listing.first } else { &listing.after };
    let mut statement = connection.prepare_cached(text)?;
    let limit = Part::Integer(i64::from(limit));
    let mut rows = statement.query(params_from_iter(after.iter().chain([&limit])))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(Walked { key: bytes(row, 0)?.to_vec(), place: bytes(row, 1)?.to_vec() });
    }
    Ok(all)
}

/// Gives each key a fresh number, in their order, and returns the last.
pub(super) fn record<'a>(
    connection: &Connection,
    relation: &Resolved,
    keys: impl ExactSizeIterator<Item = &'a [u8]>,
    deleted: i64,
) -> Result<Option<i64>, Failure> {
    if keys.len() == 0 {
        return Ok(None);
    }
    let mut draw = connection.prepare_cached(&relation.statements.draw)?;
    let drawn = keys.len() as i64;
    let newest: i64 = draw.query_row([drawn], |row| row.get(0))?;
    let mut record = connection.prepare_cached(&relation.statements.record)?;
    let mut append = connection.prepare_cached(&relation.statements.append)?;
    for (version, key) in (newest - drawn + 1..).zip(keys) {
        record.execute(params![Stored(key), version, deleted])?;
        append.execute(params![Stored(key), version])?;
    }
    Ok(Some(newest))
}

/// Fills one page.
pub(super) fn fill(connection: &Connection, relation: &Resolved) -> Result<FillProgress, Failure> {
    let meta = Meta::demand(connection, relation, OPERATION)?;
    let progress = |filled: i64, done: bool| FillProgress {
        filled: number(filled),
        total: number(meta.total.max(filled)),
        done,
    };
    let Some(stage) = meta.stage else {
        return match meta.judge(relation).state {
            CaptureState::Broken(code) => {
                let error = PortError::new(OPERATION, FailureClass::Halted, code);
                Err(error.detail("install capture first").into())
            }
            CaptureState::Trusted(_) | CaptureState::Filling => Ok(progress(meta.filled, true)),
        };
    };
    if !relation.present.differences.is_empty() {
        let error = PortError::new(OPERATION, FailureClass::Halted, Code::CAPTURE_CHANGED);
        return Err(error.detail(relation.present.differences.join(", ")).into());
    }
    if relation.present.stored() != meta.filling {
        Meta::begin_fill(connection, relation, meta.total)?;
        return Ok(progress(0, false));
    }
    let place = meta.place.as_deref();
    let (stage, place, filled) = match stage {
        Stage::Rows => {
            let rows = walk(connection, relation, place, SOURCE_WRITE_ROWS_MAX)?;
            let fresh = unknown(connection, relation, &rows, meta.generation > 1)?;
            record(connection, relation, fresh.into_iter(), LIVE)?;
            let filled = meta.filled + rows.len() as i64;
            match rows.into_iter().next_back() {
                Some(last) => (Stage::Rows, Some(last.place), filled),
                None => (Stage::Sweep, None, filled),
            }
        }
        Stage::Sweep => match sweep(connection, relation, place, meta.generation > 1)? {
            Some(last) => (Stage::Sweep, Some(last), meta.filled),
            None => {
                Meta::trust(connection, relation)?;
                return Ok(progress(meta.filled, true));
            }
        },
    };
    let mut moved = connection.prepare_cached(include_str!("sql/capture/move_fill.sql"))?;
    let place = place.as_deref().map(Stored);
    moved.execute(params![relation.names.stem(), stage.word(), place, filled])?;
    Ok(progress(filled, false))
}

/// The keys of rows that are to be recorded.
fn unknown<'a>(
    connection: &Connection,
    relation: &Resolved,
    rows: &'a [Walked],
    all: bool,
) -> Result<Vec<&'a [u8]>, Failure> {
    let mut find = connection.prepare_cached(&relation.statements.find)?;
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        if all || !find.exists([Stored(&row.key)])? {
            keys.push(row.key.as_slice());
        }
    }
    Ok(keys)
}

/// Buries feed rows of one page whose row is gone, those that are buried already too if it is `all`;
/// returns the place after it, none at the end.
fn sweep(
    connection: &Connection,
    relation: &Resolved,
    place: Option<&[u8]>,
    all: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    let listing = &relation.statements.feed;
    let mut statement =
        connection.prepare_cached(if place.is_some() { &listing.after } else { &listing.first })?;
    let mut rows = match place {
        Some(place) => statement.query(params![Stored(place), SOURCE_WRITE_ROWS_MAX])?,
        None => statement.query([SOURCE_WRITE_ROWS_MAX])?,
    };
    let (mut gone, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let key = bytes(row, 0)?.to_vec();
        if (all || row.get::<_, i64>(1)? != TOMBSTONE) && !has_row(connection, relation, &key)? {
            gone.push(key.clone());
        }
        last = Some(key);
    }
    record(connection, relation, gone.iter().map(Vec::as_slice), TOMBSTONE)?;
    Ok(last)
}
