//! The feed: pages of changes, single keys, consumers, pruning.
//!
//! Invariants: S2 (each answer is synced before it is given), S3 (a moment comes only with the end,
//! and stays before the least number of a mark in the page's own snapshot, X41). In SQLite one read transaction is
//! one snapshot of rows and schema alike, so a page, its signature and its view agree even beside
//! a rebuild of the table (X48).

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Change, ChangePage, Consumer, Feed, Pulsed, Registration, SourceView};
use truekeep_core::{Key, Moment, Place};
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::key::{Stored, bytes, key, stored};
use super::meta::{Meta, number, passed, signed, version};
use super::names::to_hex;
use super::resolve::Resolved;
use super::triggers::TOMBSTONE;

const READ: &str = "read the feed";

/// How many numbers are looked at for each row that is wanted: outdated ones stand between.
const SCANNED_PER_ROW: usize = 8;

/// A page, and what it calls for.
struct Read {
    page: ChangePage,
    marks: bool,
    adopt: bool,
}

fn read(
    connection: &Connection,
    relation: &Resolved,
    consumer: &Consumer,
    after: &Place,
    limit: u32,
) -> Result<Read, Failure> {
    let meta = Meta::demand(connection, relation, READ)?;
    let mut head = connection.prepare_cached(&relation.statements.head)?;
    let (newest, mark): (i64, Option<i64>) =
        head.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let view = meta.view(connection, relation, consumer, after, newest)?;
    let limit = limit.max(1) as usize;
    let mut changes = Vec::with_capacity(limit.min(1_024));
    let mut statement = connection.prepare_cached(&relation.statements.changes)?;
    let scan = limit.saturating_mul(SCANNED_PER_ROW);
    let mut rows = statement.query(params![passed(&after.passed), scan as i64 + 1])?;
    let (mut scanned, mut last, mut stamp, mut end) = (0, None, Vec::new(), true);
    while let Some(row) = rows.next()? {
        if changes.len() == limit || scanned == scan {
            end = false;
            break;
        }
        scanned += 1;
        let version = version(row.get(0)?);
        last = Some(version);
        stamp.clear();
        stamp.extend_from_slice(bytes(row, 4)?);
        // Else the key has a greater number, or was pruned.
        if row.get(3)? {
            changes.push(Change {
                version,
                stamp: version.into(),
                deleted: row.get::<_, i64>(1)? == TOMBSTONE,
                key: key(bytes(row, 2)?),
            });
        }
    }
    let next = last.map_or_else(
        || after.clone(),
        |version| Place { passed: Moment::at(version), rest: to_hex(&stamp) },
    );
    let page = ChangePage {
        next,
        moment: end.then(|| Moment::at(version(mark.map_or(newest, |mark| mark - 1)))),
        changes,
        end,
        view,
    };
    Ok(Read { page, marks: mark.is_some(), adopt: meta.judge(relation).adopt })
}

impl SqliteSource {
    async fn read_page(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<Read, PortError> {
        let (consumer, after) = (consumer.clone(), after.clone());
        self.read(READ, move |connection, relation| {
            read(connection, relation, &consumer, &after, limit)
        })
        .await
    }

    /// Notes that the schema moved and capture did not; decided again in the transaction that
    /// writes it.
    async fn adopt(&self) -> Result<(), PortError> {
        self.write("adopt the schema", |connection, relation| {
            let meta = Meta::demand(connection, relation, "adopt the schema")?;
            if meta.judge(relation).adopt { meta.adopt(connection, relation) } else { Ok(()) }
        })
        .await
    }
}

#[async_trait]
impl Feed for SqliteSource {
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError> {
        let (consumer, at) = (consumer.clone(), at.clone());
        self.read(READ, move |connection, relation| {
            let meta = Meta::demand(connection, relation, READ)?;
            let mut head = connection.prepare_cached(&relation.statements.head)?;
            let newest = head.query_row([], |row| row.get(0))?;
            meta.view(connection, relation, &consumer, &at, newest)
        })
        .await
    }

    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        let mut read = self.read_page(consumer, after, limit).await?;
        if read.marks {
            // A fold that is given up moves no moment; the page is good without one.
            match self.fold().await {
                Ok(()) => read = self.read_page(consumer, after, limit).await?,
                Err(error) if error.class == FailureClass::Retry => {}
                Err(error) => return Err(error),
            }
        }
        if read.adopt {
            match self.adopt().await {
                Err(error) if error.class != FailureClass::Retry => return Err(error),
                _ => {}
            }
        }
        Ok(read.page)
    }

    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        let keys = keys.to_vec();
        self.read("look into the feed", move |connection, relation| {
            Meta::demand(connection, relation, "look into the feed")?;
            let mut find = connection.prepare_cached(&relation.statements.find)?;
            keys.into_iter()
                .map(|key| {
                    let found: Option<(i64, i64)> = find
                        .query_row([Stored(&stored(&key))], |row| Ok((row.get(0)?, row.get(1)?)))
                        .optional()?;
                    Ok(found.map(|(number, deleted)| Change {
                        key,
                        version: version(number),
                        stamp: version(number).into(),
                        deleted: deleted == TOMBSTONE,
                    }))
                })
                .collect()
        })
        .await
    }

    async fn pending(&self) -> Result<bool, PortError> {
        self.read("look for marks", |connection, relation| {
            Meta::demand(connection, relation, "look for marks")?;
            let mut head = connection.prepare_cached(&relation.statements.head)?;
            let mark: Option<i64> = head.query_row([], |row| row.get(1))?;
            Ok(mark.is_some())
        })
        .await
    }

    async fn register(
        &self,
        consumer: &Consumer,
        registration: &Registration,
    ) -> Result<(), PortError> {
        let (consumer, registration) = (consumer.clone(), registration.clone());
        self.write("register a consumer", move |connection, relation| {
            Meta::demand(connection, relation, "register a consumer")?;
            let held = Meta::registration(connection, relation, &consumer)?;
            let registration = Registration::after(held.as_ref(), &registration)?;
            connection.prepare_cached(include_str!("sql/consumer/register.sql"))?.execute(
                params![
                    relation.names.stem(),
                    consumer.ledger.as_str(),
                    consumer.pipeline.as_str(),
                    signed(registration.counter.get()),
                    passed(&registration.passed),
                ],
            )?;
            Ok(())
        })
        .await
    }

    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError> {
        let consumer = consumer.clone();
        self.write("forget a consumer", move |connection, relation| {
            if relation.present.has("truekeep_consumer") {
                let mut forget =
                    connection.prepare_cached(include_str!("sql/consumer/forget.sql"))?;
                let stem = relation.names.stem();
                forget.execute(params![
                    stem,
                    consumer.ledger.as_str(),
                    consumer.pipeline.as_str()
                ])?;
            }
            Ok(())
        })
        .await
    }

    async fn prune(&self) -> Result<u64, PortError> {
        self.clear().await
    }

    async fn pulse(&self) -> Result<Pulsed, PortError> {
        self.look("read the pulse", |connection| {
            let mut pragma = connection.prepare_cached("PRAGMA main.data_version")?;
            Ok(Pulsed(number(pragma.query_row([], |row| row.get(0))?)))
        })
        .await
    }
}
