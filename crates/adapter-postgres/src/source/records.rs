//! Records: documents of keys, and live keys in the order of their bytes.
//!
//! Invariant: S1. A document is loaded in a snapshot that is no older than the page that named its key.

use std::collections::BTreeSet;

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits;
use truekeep_core::ports::{KeyPage, Loaded, Records};
use truekeep_core::{Document, Key, Value, Version};
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::postgres::PgRow;
use truekeep_postgres::sqlx::{Error, Row};

use super::meta::unless_missing;
use super::resolve::Resolved;
use super::types::Carrier;
use super::{PostgresSource, Worked, is_of_data, number};

const LOAD: &str = "load documents";

/// What became of one of the keys that were asked for.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    Loaded(Loaded),
    /// More bytes than were asked for.
    Cut,
}

fn value(row: &PgRow, place: usize, carrier: Carrier) -> Result<Value, Error> {
    let text = || -> Result<Option<Box<str>>, Error> {
        Ok(row.try_get::<Option<String>, _>(place)?.map(String::into_boxed_str))
    };
    Ok(match carrier {
        Carrier::Integer => row.try_get::<Option<i64>, _>(place)?.map(Value::Integer),
        Carrier::Real => row.try_get::<Option<f64>, _>(place)?.map(Value::Real),
        Carrier::Bytes => {
            let bytes = row.try_get::<Option<Vec<u8>>, _>(place)?;
            bytes.map(|bytes| Value::Blob(bytes.into_boxed_slice()))
        }
        Carrier::Json | Carrier::Made => text()?.map(Value::Json),
        // NaN and infinity are no numbers of JSON.
        Carrier::Number => text()?.map(|text| {
            if text.ends_with(|c: char| c.is_ascii_digit()) {
                Value::Json(text)
            } else {
                Value::Text(text)
            }
        }),
        Carrier::Time | Carrier::Text => text()?.map(Value::Text),
    }
    .unwrap_or(Value::Null))
}

/// One document.
fn loaded(relation: &Resolved, document_max: usize, row: &PgRow) -> Result<Found, Error> {
    let size: i64 = row.try_get(1)?;
    if number(size) > document_max as u64 {
        let reason = format!("{size} bytes, at most {document_max} are possible");
        return Ok(Found::Loaded(Loaded::Unloadable(Code::DOCUMENT_TOO_LARGE, reason)));
    }
    if !row.try_get::<bool, _>(2)? {
        return Ok(Found::Cut);
    }
    let selection = &relation.selection;
    let carriers = selection.carriers.iter().enumerate();
    let values =
        carriers.map(|(at, carrier)| value(row, at + 3, *carrier)).collect::<Result<_, _>>()?;
    let document = Document::new(std::sync::Arc::clone(&selection.names), values);
    Ok(Found::Loaded(Loaded::Live(document)))
}

/// What one statement says of some keys, in their order.
async fn load(
    reading: &mut Transaction,
    relation: &Resolved,
    document_max: usize,
    keys: &[Key],
    bytes_max: usize,
) -> Result<Vec<Found>, Error> {
    let texts: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
    let query = Transaction::query(relation.statements.load.clone())
        .bind(texts)
        .bind(i64::try_from(bytes_max).unwrap_or(i64::MAX));
    let mut found = vec![Found::Loaded(Loaded::Absent); keys.len()];
    for row in &reading.rows(query).await? {
        let place = usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(0) - 1;
        found[place] = if found[place] == Found::Loaded(Loaded::Absent) {
            loaded(relation, document_max, row)?
        } else {
            let reason = "the document's SQL gives more than one row".to_owned();
            Found::Loaded(Loaded::Unloadable(Code::DOCUMENT_UNREADABLE, reason))
        };
    }
    Ok(found)
}

/// As [`load`]; where the data of one key make it fail, the others are loaded without it.
async fn load_each(
    reading: &mut Transaction,
    relation: &Resolved,
    document_max: usize,
    keys: &[Key],
    bytes_max: usize,
) -> Worked<Vec<Found>> {
    let mut found = Vec::with_capacity(keys.len());
    // Parts that are still to be loaded, the next one last.
    let mut parts = vec![keys];
    while let Some(part) = parts.pop() {
        let tried = reading
            .undoing(async |reading| load(reading, relation, document_max, part, bytes_max).await)
            .await?;
        match tried {
            Ok(some) => found.extend(some),
            Err(error) if is_of_data(&error) && part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Err(error) if is_of_data(&error) => {
                found.push(Found::Loaded(unloadable(reading, relation, &part[0], &error).await?));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// A key alone for which its document cannot be made; unless it is none of this relation's.
async fn unloadable(
    reading: &mut Transaction,
    relation: &Resolved,
    key: &Key,
    error: &Error,
) -> Worked<Loaded> {
    let there = existing(reading, relation, std::slice::from_ref(key)).await?;
    if there.is_empty() {
        return Ok(Loaded::Absent);
    }
    let said =
        error.as_database_error().map_or_else(|| error.to_string(), |said| said.message().into());
    Ok(Loaded::Unloadable(Code::DOCUMENT_UNREADABLE, limits::bounded(&said).to_owned()))
}

/// Those of some texts that are keys of the relation: of its type, and canonical.
pub(super) async fn existing(
    transaction: &mut Transaction,
    relation: &Resolved,
    keys: &[Key],
) -> Worked<Vec<Key>> {
    let mut found = Vec::with_capacity(keys.len());
    let mut parts = vec![keys];
    while let Some(part) = parts.pop() {
        let texts: Vec<String> = part.iter().map(|key| key.as_str().to_owned()).collect();
        let query = Transaction::query(relation.statements.exist.clone()).bind(texts);
        let tried = transaction.undoing(async |transaction| transaction.rows(query).await).await?;
        match tried {
            Ok(rows) => {
                for row in &rows {
                    found.push(Key::new(row.try_get::<String, _>(0)?));
                }
            }
            Err(error) if is_of_data(&error) && part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            // Not of the key's type.
            Err(error) if is_of_data(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

impl PostgresSource {
    async fn load_once(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Found>, PortError> {
        let (mut reading, relation) = self.reading(LOAD).await?;
        let max = self.spec.document_max;
        let work = async {
            let tried = reading
                .undoing(async |reading| load(reading, &relation, max, keys, bytes_max).await)
                .await?;
            match tried {
                Ok(found) => Ok(found),
                Err(error) if is_of_data(&error) => {
                    load_each(&mut reading, &relation, max, keys, bytes_max).await
                }
                Err(error) => Err(error.into()),
            }
        };
        let found = work.await;
        self.settled(reading, found).await
    }
}

#[async_trait]
impl Records for PostgresSource {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found = match self.load_once(keys, bytes_max).await {
            // A statement that was made for other columns.
            Err(error) if error.class == FailureClass::Terminal => {
                self.look_again().await?;
                self.load_once(keys, bytes_max).await?
            }
            found => found?,
        };
        // Each part that was loaded alone kept to the bytes alone.
        let (mut all, mut bytes) = (Vec::with_capacity(found.len()), 0_usize);
        for found in found {
            let Found::Loaded(loaded) = found else { break };
            if let Loaded::Live(document) = &loaded {
                bytes = bytes.saturating_add(document.bytes());
                if bytes > bytes_max && !all.is_empty() && all.iter().any(is_live) {
                    break;
                }
            }
            all.push(loaded);
        }
        Ok(all)
    }

    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        let (mut reading, relation) = self.reading("look at keys").await?;
        let ours = existing(&mut reading, &relation, keys).await;
        let ours: BTreeSet<Key> = reading.end(ours).await?.into_iter().collect();
        Ok(keys.iter().map(|key| ours.contains(key)).collect())
    }

    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        const OPERATION: &str = "list keys";
        let limit = limit.max(1) as usize;
        let (mut reading, relation) = self.reading(OPERATION).await?;
        let work = async {
            let query = Transaction::query(relation.statements.keys.clone())
                .bind(after.as_ref().map(|key| key.as_str().to_owned()))
                .bind(i64::try_from(limit + 1).unwrap_or(i64::MAX));
            let rows = reading.rows(query).await;
            let rows = rows.map_err(|error| unless_missing(OPERATION, &relation, error))?;
            let mut page = KeyPage { keys: Vec::with_capacity(rows.len()), next: None };
            for row in rows.iter().take(limit) {
                let key = Key::new(row.try_get::<String, _>(0)?);
                if rows.len() > limit {
                    page.next = Some(key.clone());
                }
                if row.try_get::<bool, _>(2)? {
                    page.keys.push((key, Version::new(number(row.try_get(1)?))));
                }
            }
            Ok(page)
        };
        let work = work.await;
        self.settled(reading, work).await
    }
}

fn is_live(loaded: &Loaded) -> bool {
    matches!(loaded, Loaded::Live(_))
}
