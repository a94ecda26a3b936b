//! The feed: pages of changes, single keys, consumers, pruning.
//!
//! Invariants: S2 (each answer is synced before it is given), S3 (a moment comes only with the end,
//! and stays before the least number of a mark in the page's own snapshot, X41). In SQLite one read transaction is
//! one snapshot of rows and schema alike, so a page, its signature and its view agree even beside
//! a rebuild of the table (X48).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{Change, ChangePage, Consumer, Feed, Pulsed, Registration, SourceView};
use truekeep_core::{Key, Moment, Place};
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::key::{Stored, bytes, key, stored};
use super::meta::{Meta, number, passed, signed, version};
use super::records::has_row;
use super::resolve::Resolved;
use super::triggers::{LIVE, TOMBSTONE};

const READ: &str = "read the feed";

/// How many numbers are looked at for each row that is wanted: outdated ones stand between.
const SCANNED_PER_ROW: usize = 8;

/// How many numbers a sweep looks at: some milliseconds of the write lock.
const SWEPT_AT_ONCE: i64 = 4_000;

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
    let (mut scanned, mut next, mut end) = (0, after.clone(), true);
    while let Some(row) = rows.next()? {
        if changes.len() == limit || scanned == scan {
            end = false;
            break;
        }
        scanned += 1;
        let version = version(row.get(0)?);
        next = Place::at(version);
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
        let swept = Arc::clone(&self.shared.swept);
        self.write("prune the feed", move |connection, relation| {
            Meta::demand(connection, relation, "prune the feed")?;
            settle_doubts(connection, relation)?;
            let mut passed = connection.prepare_cached(include_str!("sql/consumer/passed.sql"))?;
            let stem = relation.names.stem();
            let passed: Option<i64> = passed.query_row([stem], |row| row.get(0))?;
            let Some(passed) = passed else { return Ok(0) };
            let mut prune = connection.prepare_cached(&relation.statements.prune)?;
            let versions = prune
                .query_map(params![passed, SOURCE_WRITE_ROWS_MAX], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            if let Some(floor) = versions.iter().max() {
                let mut raise =
                    connection.prepare_cached(include_str!("sql/capture/raise_floor.sql"))?;
                raise.execute(params![stem, floor])?;
            }
            let from = swept.load(Ordering::Relaxed);
            swept.store(sweep(connection, relation, from)?, Ordering::Relaxed);
            Ok(versions.len() as u64)
        })
        .await
    }

    async fn pulse(&self) -> Result<Pulsed, PortError> {
        self.look("read the pulse", |connection| {
            let mut pragma = connection.prepare_cached("PRAGMA main.data_version")?;
            Ok(Pulsed(number(pragma.query_row([], |row| row.get(0))?)))
        })
        .await
    }
}

/// Removes outdated numbers among the next few after a place, and says where to go on: at the
/// beginning, after the last.
fn sweep(connection: &Connection, relation: &Resolved, from: i64) -> Result<i64, Failure> {
    let mut span = connection.prepare_cached(&relation.statements.span)?;
    let to: Option<i64> = span.query_row([from, SWEPT_AT_ONCE], |row| row.get(0))?;
    let Some(to) = to else { return Ok(0) };
    connection.prepare_cached(&relation.statements.sweep)?.execute([from, to])?;
    Ok(to)
}

/// Asks the table about some rows that a REPLACE may have removed. No number is drawn: they have
/// theirs, and were delivered by what the table said then.
fn settle_doubts(connection: &Connection, relation: &Resolved) -> Result<(), Failure> {
    let mut doubtful = connection.prepare_cached(&relation.statements.doubtful)?;
    let keys = doubtful
        .query_map([SOURCE_WRITE_ROWS_MAX], |row| Ok(bytes(row, 0)?.to_vec()))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut settle = connection.prepare_cached(&relation.statements.settle)?;
    for key in keys {
        let there = has_row(connection, relation, &key)?;
        settle.execute(params![Stored(&key), if there { LIVE } else { TOMBSTONE }])?;
    }
    Ok(())
}
