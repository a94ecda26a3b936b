//! A batch's way into the mirror.
//!
//! Invariant: P3. Order: who may write is decided first; then each record, by the greatest rank
//! that is held for its key, live or remembered; the mark last; all in one transaction.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, Row, Transaction, TransactionBehavior};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::bounded;
use truekeep_core::ports::{Applied, Batch, Body, Delivery, Mark, Outcome, Receipt, Verdict};
use truekeep_core::{Document, Key, Rank, RulesNumber, Version};
use truekeep_mirror::{Converter, Unfit};
use truekeep_sqlite::Failure;

use crate::columns::Stored;
use crate::generations::Placed;
use crate::mark::StoredMark;
use crate::spec::OWN_COLUMNS;
use crate::structure::Mirror;

/// Records that the mirror does not take, by their place in the batch, with the reason.
type Refused = BTreeMap<usize, String>;

/// How a transaction over the batch ended.
enum Attempt {
    /// Committed.
    Landed(Applied),
    /// Rolled back because of one record.
    Again,
}

/// Why one record was not written.
enum Trouble {
    /// Because of the record.
    Own(String),
    /// Because of something else: the batch ends.
    Shared(rusqlite::Error),
}

impl Placed {
    /// Writes a batch.
    ///
    /// The first transaction takes every record at its word. Should one fail, nothing of it stays
    /// and the batch is written again with a savepoint around each record, so that only those
    /// that fail are left out.
    pub(crate) fn apply(&self, db: &mut Connection, batch: &Batch) -> Result<Applied, Failure> {
        let mut refused = Refused::new();
        let mut careful = false;
        loop {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mirror = self.mirror(&transaction)?;
            if let Attempt::Landed(applied) =
                mirror.attempt(transaction, batch, &mut refused, careful)?
            {
                return Ok(applied);
            }
            if !careful {
                // Statements are prepared anew, so that what the mirror lost since shows there and
                // is not taken for a fault of the records.
                db.flush_prepared_statement_cache();
            }
            // Each round but the last leaves out one record more.
            careful = true;
        }
    }
}

impl Mirror {
    fn attempt(
        &self,
        transaction: Transaction<'_>,
        batch: &Batch,
        refused: &mut Refused,
        careful: bool,
    ) -> Result<Attempt, Failure> {
        let mut mark = self.admit(&transaction, batch)?;
        let mut writer = Writer::new(self, &transaction)?;
        let mut outcomes = Vec::with_capacity(batch.deliveries.len());
        for (place, delivery) in batch.deliveries.iter().enumerate() {
            if let Some(reason) = refused.get(&place) {
                outcomes.push(refusal(reason));
                continue;
            }
            if careful {
                transaction.execute_batch("SAVEPOINT record")?;
            }
            match writer.deliver(delivery) {
                Ok(outcome) => outcomes.push(outcome),
                Err(Trouble::Shared(error)) => return Err(error.into()),
                Err(Trouble::Own(_)) if !careful => return Ok(Attempt::Again),
                Err(Trouble::Own(reason)) => {
                    if transaction.is_autocommit() {
                        // A trigger of somebody else rolled everything back.
                        refused.insert(place, reason);
                        return Ok(Attempt::Again);
                    }
                    transaction.execute_batch("ROLLBACK TO record")?;
                    outcomes.push(refusal(&reason));
                }
            }
            if careful {
                transaction.execute_batch("RELEASE record")?;
            }
        }
        drop(writer);
        if mark.mark.removed {
            let forget = transaction.execute_batch(&self.sql.forget_tombstones);
            forget.map_err(|error| self.broken(error))?;
        }
        mark.holds_records = self.holds_any(&transaction, &self.sql.any_record)?;
        mark.write(&transaction, &self.sql.write_mark).map_err(|error| self.broken(error))?;
        transaction.commit()?;
        Ok(Attempt::Landed(Applied { outcomes, receipt: Receipt(mark.mark.number.get()) }))
    }

    /// Whether the sender may write, and the mark that its batch leaves.
    fn admit(&self, transaction: &Transaction<'_>, batch: &Batch) -> Result<StoredMark, Failure> {
        let held = self.stored(transaction)?;
        let mark = Mark::after(held.as_ref().map(|held| &held.mark), &batch.mark, batch.follows);
        let mark = mark.map_err(PortError::from)?;
        let holds_records = held.is_some_and(|held| held.holds_records);
        if holds_records && !self.holds_any(transaction, &self.sql.any_record)? {
            let class = FailureClass::Halted;
            let error = PortError::new("write a batch", class, Code::SINK_WENT_BACK);
            let lost = format!("table `{}` was emptied", self.spec.table);
            return Err(error.detail(lost).into());
        }
        Ok(StoredMark { mark, holds_records })
    }
}

/// The statements of one transaction over records.
struct Writer<'db> {
    find_record: CachedStatement<'db>,
    add_record: CachedStatement<'db>,
    put_record: CachedStatement<'db>,
    drop_record: CachedStatement<'db>,
    find_tombstone: CachedStatement<'db>,
    put_tombstone: CachedStatement<'db>,
    drop_tombstone: CachedStatement<'db>,
    converter: Converter<'db>,
    /// Whether there is a tombstone at all: if not, none is looked for.
    buried: bool,
    /// Whether the last record was new: if so, the next one likely is too.
    news: bool,
}

impl<'db> Writer<'db> {
    fn new(mirror: &'db Mirror, db: &'db Connection) -> Result<Self, Failure> {
        let prepare = |sql: &str| db.prepare_cached(sql).map_err(|error| mirror.broken(error));
        let sql = &mirror.sql;
        let buried = mirror.holds_any(db, &sql.any_tombstone)?;
        Ok(Self {
            find_record: prepare(&sql.find_record)?,
            add_record: prepare(&sql.add_record)?,
            put_record: prepare(&sql.put_record)?,
            drop_record: prepare(&sql.drop_record)?,
            find_tombstone: prepare(&sql.find_tombstone)?,
            put_tombstone: prepare(&sql.put_tombstone)?,
            drop_tombstone: prepare(&sql.drop_tombstone)?,
            converter: Converter::new(mirror.spec.shape()),
            buried,
            news: true,
        })
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<Outcome, Trouble> {
        let Delivery { key, rank, body } = delivery;
        let buried = if self.buried { find(&mut self.find_tombstone, key)? } else { None };
        if let (true, None, Body::Upsert(document)) = (self.news, &buried, body) {
            // Saves the look-up: it is added only if nothing is held for its key.
            if put(&mut self.add_record, &mut self.converter, delivery, document)? {
                return Ok(Verdict::of(*rank, None).outcome());
            }
        }
        let live = find(&mut self.find_record, key)?;
        self.news = live.is_none();
        let verdict = Verdict::of(*rank, live.flatten().max(buried.flatten()));
        if let Verdict::Keep(_) = verdict {
            return Ok(verdict.outcome());
        }
        let written = match body {
            Body::Upsert(document) => {
                if buried.is_some() {
                    self.drop_tombstone.execute([key.as_str()])?;
                }
                put(&mut self.put_record, &mut self.converter, delivery, document)?
            }
            Body::Delete => {
                bind_key(&mut self.put_tombstone, key, *rank)?;
                self.put_tombstone.raw_execute()?;
                self.buried = true;
                live.is_none() || self.drop_record.execute([key.as_str()])? == 1
            }
        };
        if !written {
            return Err(Trouble::Own("a trigger of the mirror ignored it".into()));
        }
        Ok(verdict.outcome())
    }
}

/// Writes a record by a statement that does; false if the statement left the table as it was.
fn put(
    statement: &mut CachedStatement<'_>,
    converter: &mut Converter<'_>,
    delivery: &Delivery,
    document: &Document,
) -> Result<bool, Trouble> {
    bind_key(statement, &delivery.key, delivery.rank)?;
    converter.convert::<Trouble>(document, |column, name, cell| {
        let stored = Stored::of(name, cell)?;
        Ok(statement.raw_bind_parameter(OWN_COLUMNS.len() + 1 + column, stored)?)
    })?;
    Ok(statement.raw_execute()? == 1)
}

/// Whether a key is there, and its rank, which somebody else's record may lack.
fn find(find: &mut CachedStatement<'_>, key: &Key) -> rusqlite::Result<Option<Option<Rank>>> {
    let mut rows = find.query([key.as_str()])?;
    rows.next()?.map(|row| rank(row, 0)).transpose()
}

/// The rank in two columns; `None` if they hold none of ours.
pub(crate) fn rank(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Rank>> {
    let (rules, version) = (number(row, first)?, number(row, first + 1)?);
    Ok(rules.zip(version).map(|(rules, version)| Rank {
        rules: RulesNumber::new(rules),
        version: Version::new(version),
    }))
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    })
}

fn bind_key(to: &mut CachedStatement<'_>, key: &Key, rank: Rank) -> rusqlite::Result<()> {
    to.raw_bind_parameter(1, key.as_str())?;
    to.raw_bind_parameter(2, rank.rules.get())?;
    to.raw_bind_parameter(3, rank.version.get())
}

fn refusal(reason: &str) -> Outcome {
    Outcome::Refused(Code::SINK_REFUSED, bounded(reason).to_owned())
}

impl From<Unfit> for Trouble {
    fn from(Unfit(reason): Unfit) -> Self {
        Self::Own(reason)
    }
}

impl From<rusqlite::Error> for Trouble {
    /// What is a record's own: its size, a check or trigger that somebody else added, an
    /// expression over its document that fails, a number that SQLite has no place for.
    fn from(error: rusqlite::Error) -> Self {
        let own = match &error {
            rusqlite::Error::SqliteFailure(sqlite, _) => match sqlite.code {
                ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch => {
                    true
                }
                ErrorCode::Unknown => sqlite.extended_code == rusqlite::ffi::SQLITE_ERROR,
                _ => false,
            },
            rusqlite::Error::ToSqlConversionFailure(_) => true,
            _ => false,
        };
        if own { Self::Own(error.to_string()) } else { Self::Shared(error) }
    }
}

/// A key; `None` if it is not text in UTF-8, so that it cannot be named.
pub(crate) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Key>> {
    Ok(row.get_ref(column)?.as_str().ok().map(Key::new))
}
