//! Records: documents of keys, and the listing of live keys.
//!
//! Invariants: S1 (a caller has its versions from an earlier snapshot), S2 (as the feed).

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, Row, params, params_from_iter};
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::limits::bounded;
use truekeep_core::ports::{CaptureState, KeyPage, Loaded, Records};
use truekeep_core::{Document, Key, Value};
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::key::{Part, Stored, bytes, key, speakable, stored};
use super::meta::{Meta, version};
use super::projection::{Selection, Source};
use super::resolve::Resolved;
use super::triggers::{LIVE, TOMBSTONE};

/// How many rows a listing looks at for each key that is wanted: those that are not live stand
/// between.
const LOOKED_AT_PER_KEY: usize = 8;

/// Whether the row of a key is in the table.
pub(super) fn is_there(
    connection: &Connection,
    relation: &Resolved,
    parts: &[Part],
) -> Result<bool, Failure> {
    let mut exists = connection.prepare_cached(&relation.statements.exists)?;
    Ok(exists.exists(params_from_iter(parts))?)
}

/// Whether the row of a feed row is in the table. What has no text of its own is not looked for.
pub(super) fn has_row(
    connection: &Connection,
    relation: &Resolved,
    text: &[u8],
) -> Result<bool, Failure> {
    Ok(match relation.key.parse_stored(text) {
        Some(parts) => {
            parts.contains(&Part::Unspeakable) || is_there(connection, relation, &parts)?
        }
        None => false,
    })
}

/// What a failure while a row's document is made says about that record; `Err` if it says
/// something about the source instead.
fn unloadable(error: rusqlite::Error) -> Result<Loaded, Failure> {
    let code = match error.sqlite_error_code() {
        Some(ErrorCode::TooBig) => Code::DOCUMENT_TOO_LARGE,
        Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ConstraintViolation) => {
            Code::DOCUMENT_UNREADABLE
        }
        _ => return Err(error.into()),
    };
    Ok(Loaded::Unloadable(code, bounded(&error.to_string()).to_owned()))
}

/// Loads documents one by one.
struct Loader<'a> {
    relation: &'a Resolved,
    document_max: usize,
    document: CachedStatement<'a>,
    wanted: CachedStatement<'a>,
    exists: CachedStatement<'a>,
}

impl<'a> Loader<'a> {
    fn new(
        connection: &'a Connection,
        relation: &'a Resolved,
        document_max: usize,
    ) -> Result<Self, Failure> {
        Ok(Self {
            relation,
            document_max,
            document: connection.prepare_cached(&relation.statements.document)?,
            wanted: connection.prepare_cached(&relation.statements.wanted)?,
            exists: connection.prepare_cached(&relation.statements.exists)?,
        })
    }

    fn load(&mut self, key: &Key) -> Result<Loaded, Failure> {
        let Some(parts) = self.relation.key.parse(key) else { return Ok(Loaded::Absent) };
        if !speakable(key, &parts) {
            let unknown = parts.contains(&Part::Unspeakable);
            return Ok(if unknown || self.exists.exists(params_from_iter(&parts))? {
                let reason = "a key column is NULL, or holds what has no text as a key";
                Loaded::Unloadable(Code::KEY_REFUSED, reason.into())
            } else {
                Loaded::Absent
            });
        }
        match self.document(&parts) {
            Ok(loaded) => Ok(loaded),
            Err(Failure::Sqlite(error)) => unloadable(error),
            Err(failure) => Err(failure),
        }
    }

    fn document(&mut self, parts: &[Part]) -> Result<Loaded, Failure> {
        let selection = &self.relation.selection;
        let mut rows = match &selection.source {
            Source::Columns(_) => self.document.query(params_from_iter(parts))?,
            Source::Query { parameters, .. } => {
                if !self.wanted.exists(params_from_iter(parts))? {
                    return Ok(Loaded::Absent);
                }
                self.document.query(params_from_iter(parameters.iter().map(|at| &parts[*at])))?
            }
        };
        let Some(row) = rows.next()? else { return Ok(Loaded::Absent) };
        let loaded = document(row, selection, self.document_max)?;
        if rows.next()?.is_some() {
            let reason = "the document's SQL gives more than one row for this key";
            return Ok(Loaded::Unloadable(Code::DOCUMENT_UNREADABLE, reason.into()));
        }
        Ok(loaded)
    }
}

/// The document of a row; its size is known before any of it is copied.
fn document(row: &Row<'_>, selection: &Selection, max: usize) -> Result<Loaded, Failure> {
    let mut bytes = 0;
    for place in 0..selection.names.len() {
        bytes += match row.get_ref(place)? {
            ValueRef::Null => 1,
            ValueRef::Integer(_) | ValueRef::Real(_) => 8,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        };
    }
    if bytes > max {
        let reason = format!("{bytes} bytes, {max} are allowed");
        return Ok(Loaded::Unloadable(Code::DOCUMENT_TOO_LARGE, reason));
    }
    let mut values = Vec::with_capacity(selection.names.len());
    for (place, json) in selection.json.iter().enumerate() {
        values.push(value(row.get_ref(place)?, *json));
    }
    Ok(Loaded::Live(Document::new(selection.names.clone(), values)))
}

fn value(value: ValueRef<'_>, json: bool) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Blob(bytes) => Value::Blob(bytes.into()),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Err(_) => Value::InvalidText(bytes.into()),
            // A raw value is checked without recursion and without touching numbers or order.
            Ok(text)
                if json && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok() =>
            {
                Value::Json(text.into())
            }
            Ok(text) => Value::Text(text.into()),
        },
    }
}

#[async_trait]
impl Records for SqliteSource {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        let keys = keys.to_vec();
        let document_max = self.spec().document_max;
        self.read("load records", move |connection, relation| {
            let mut loader = Loader::new(connection, relation, document_max)?;
            let mut all = Vec::with_capacity(keys.len());
            let mut bytes = 0;
            for key in &keys {
                let loaded = loader.load(key)?;
                if let Loaded::Live(document) = &loaded {
                    bytes += document.bytes();
                    if bytes > bytes_max && !all.is_empty() {
                        break;
                    }
                }
                all.push(loaded);
            }
            Ok(all)
        })
        .await
    }

    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        let keys = keys.to_vec();
        self.read("look at keys", move |_, relation| {
            Ok(keys.iter().map(|key| relation.key.parse(key).is_some()).collect())
        })
        .await
    }

    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        self.read("list keys", move |connection, relation| {
            list(connection, relation, after.as_ref(), limit.max(1) as usize)
        })
        .await
    }
}

/// Lists live keys among the next rows of the feed.
fn list(
    connection: &Connection,
    relation: &Resolved,
    after: Option<&Key>,
    limit: usize,
) -> Result<KeyPage, Failure> {
    let meta = Meta::demand(connection, relation, "list keys")?;
    // While capture is trusted, a live feed row is a row: only doubts and rules ask the table,
    // which is a look-up per key.
    let trusted = matches!(meta.judge(relation).state, CaptureState::Trusted(_));
    let ask = !trusted || relation.ruled;
    let mut wanted = connection.prepare_cached(&relation.statements.wanted)?;
    let mut is_live = |text: &[u8], deleted: i64| -> Result<bool, Failure> {
        let ask = ask || deleted != LIVE;
        if deleted == TOMBSTONE || (!ask && relation.key.is_plain()) {
            return Ok(deleted != TOMBSTONE);
        }
        let parts = relation.key.parse_stored(text);
        Ok(match parts.filter(|parts| speakable(&key(text), parts)) {
            Some(parts) => !ask || wanted.exists(params_from_iter(&parts))?,
            None => false,
        })
    };
    let listing = &relation.statements.feed;
    let after = after.map(stored);
    let mut statement =
        connection.prepare_cached(if after.is_some() { &listing.after } else { &listing.first })?;
    let mut rows = match &after {
        Some(after) => statement.query(params![Stored(after), -1])?,
        None => statement.query([-1])?,
    };
    let mut keys = Vec::with_capacity(limit.min(1_024));
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        looked += 1;
        let text = bytes(row, 0)?;
        if is_live(text, row.get(1)?)? {
            keys.push((key(text), version(row.get(2)?)));
        }
        let full = keys.len() == limit || looked >= limit.saturating_mul(LOOKED_AT_PER_KEY);
        // What is not UTF-8 sorts elsewhere as a key: no page ends with it.
        if full && str::from_utf8(text).is_ok() {
            let place = key(text);
            return Ok(KeyPage { keys, next: rows.next()?.map(|_| place) });
        }
    }
    Ok(KeyPage { keys, next: None })
}
