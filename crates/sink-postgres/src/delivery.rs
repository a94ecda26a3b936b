//! A batch's way into the mirror.
//!
//! Invariant: P3. Order: who may write is decided first, under the mark's lock; then each record, by
//! the greatest rank that is held for its key, live or remembered; the mark last; all in one
//! transaction.

use std::collections::{BTreeMap, BTreeSet};

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::bounded;
use truekeep_core::ports::{Applied, Batch, Body, Delivery, Mark, Outcome, Receipt, Verdict};
use truekeep_core::{Rank, RulesNumber, Version};
use truekeep_mirror::Converter;
use truekeep_postgres::sqlx::postgres::{PgArguments, PgRow};
use truekeep_postgres::sqlx::query::Query;
use truekeep_postgres::sqlx::{self, Error, Postgres, Row};
use truekeep_postgres::{Failure, Transaction, says};

use crate::columns::{Written, written};
use crate::keys;
use crate::mark::{StoredMark, held, number};
use crate::placed::{Mirror, Placed, said};

/// What is held for a key.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Whether there is a record, and its rank, which somebody else's may lack.
    live: Option<Option<Rank>>,
    buried: Option<Rank>,
}

/// A record that is to be written or removed.
#[derive(Debug)]
struct Change {
    /// Its place in the batch.
    place: usize,
    key: String,
    rules: i64,
    version: i64,
    cells: Vec<Written>,
    held: Held,
}

/// What is to be done with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Put,
    Drop,
}

/// What a batch comes to.
#[derive(Debug, Default)]
struct Plan {
    outcomes: Vec<Outcome>,
    /// Records of keys that have none.
    fresh: Vec<Change>,
    /// Records in the place of others.
    known: Vec<Change>,
    drops: Vec<Change>,
}

impl Placed {
    /// Writes a batch, as far as a transaction goes that is not yet committed; none if a record made
    /// it fail, so that it is to be done again with care: then only those that fail are left out.
    pub(crate) async fn attempt(
        &self,
        transaction: &mut Transaction,
        batch: &Batch,
        careful: bool,
    ) -> Result<Option<Applied>, Failure> {
        let (mirror, mut mark) = self.admit(transaction, batch).await?;
        // What would fail at the commit fails where its record can be told.
        transaction.run("SET CONSTRAINTS ALL IMMEDIATE").await?;
        let generation = self.number()?;
        let held = mirror.look(transaction, generation, &batch.deliveries).await?;
        let plan = mirror.plan(&batch.deliveries, &held)?;
        let mut writer = Writer { transaction, mirror, generation, plan, careful };
        if !writer.carry_out().await? {
            return Ok(None);
        }
        let wrote = !(writer.plan.fresh.is_empty() && writer.plan.known.is_empty());
        let outcomes = std::mem::take(&mut writer.plan.outcomes);
        if mark.mark.removed {
            let forget = Transaction::query(&*mirror.sql.forget_tombstones).bind(generation);
            transaction.rows(forget).await?;
        }
        mark.holds_records = wrote || mirror.holds_any(transaction).await?;
        let write = mark.bind(generation, Transaction::query(&*mirror.sql.write_mark))?;
        transaction.rows(write).await?;
        Ok(Some(Applied { outcomes, receipt: Receipt(mark.mark.number.get()) }))
    }

    /// Whether the sender may write, and the mark that its batch leaves. From here on no other writes.
    async fn admit(
        &self,
        transaction: &mut Transaction,
        batch: &Batch,
    ) -> Result<(&Mirror, StoredMark), Failure> {
        let query = Transaction::query(&*self.seen.sql.hold_mark).bind(self.number()?);
        let marked = crate::mark::Marked::read(&transaction.rows(query).await?)?;
        if !marked.prepared {
            return Err(self.seen.mismatch(format!("generation {} is not there", self.generation)));
        }
        let mirror = self.under(marked.served);
        let stored = marked.stored.as_ref();
        let mark = Mark::after(stored.map(|held| &held.mark), &batch.mark, batch.follows);
        let mark = mark.map_err(PortError::from)?;
        let holds_records = stored.is_some_and(|held| held.holds_records);
        if holds_records && !mirror.holds_any(transaction).await? {
            let class = FailureClass::Halted;
            let error = PortError::new("write a batch", class, Code::SINK_WENT_BACK);
            return Err(error.detail(format!("{} was emptied", mirror.told())).into());
        }
        Ok((mirror, StoredMark { mark, holds_records }))
    }
}

impl Mirror {
    /// What is held for the key of each delivery.
    async fn look(
        &self,
        transaction: &mut Transaction,
        generation: i64,
        deliveries: &[Delivery],
    ) -> Result<Vec<Held>, Failure> {
        let mut held = vec![Held::default(); deliveries.len()];
        if deliveries.is_empty() {
            return Ok(held);
        }
        let keys: Vec<String> =
            deliveries.iter().map(|delivery| keys::stored(&delivery.key).into_owned()).collect();
        let query = Transaction::query(&*self.sql.look).bind(generation).bind(keys);
        for row in &transaction.rows(query).await? {
            let found = Held {
                live: row.try_get::<bool, _>(1)?.then_some(rank(row, 2)?),
                buried: rank(row, 4)?,
            };
            held[place(row)?] = found;
        }
        Ok(held)
    }

    fn plan(&self, deliveries: &[Delivery], held: &[Held]) -> Result<Plan, Error> {
        let columns = self.spec.columns();
        let mut converter = Converter::new(self.spec.shape());
        let mut plan = Plan::default();
        for (place, (delivery, held)) in deliveries.iter().zip(held).enumerate() {
            let rank = delivery.rank;
            let verdict = Verdict::of(rank, held.live.flatten().max(held.buried));
            plan.outcomes.push(verdict.outcome());
            if let Verdict::Keep(_) = verdict {
                continue;
            }
            let cells = match &delivery.body {
                Body::Delete => Vec::new(),
                Body::Upsert(document) => match written(&mut converter, &columns, document) {
                    Ok(cells) => cells,
                    Err(unfit) => {
                        plan.outcomes[place] = refusal(&unfit.0);
                        continue;
                    }
                },
            };
            let change = Change {
                place,
                key: keys::stored(&delivery.key).into_owned(),
                rules: self::held(rank.rules.get())?,
                version: self::held(rank.version.get())?,
                cells,
                held: *held,
            };
            match (&delivery.body, held.live) {
                (Body::Delete, _) => plan.drops.push(change),
                (Body::Upsert(_), None) => plan.fresh.push(change),
                (Body::Upsert(_), Some(_)) => plan.known.push(change),
            }
        }
        Ok(plan)
    }

    /// The statement that does a deed to records and returns the keys of those it was done to.
    fn statement(&self, deed: Deed, changes: &[Change]) -> Query<'static, Postgres, PgArguments> {
        let keys: Vec<String> = changes.iter().map(|change| change.key.clone()).collect();
        if deed == Deed::Drop {
            return Transaction::query(&*self.sql.drop_records).bind(keys);
        }
        let (rules, versions): (Vec<i64>, Vec<i64>) =
            changes.iter().map(|change| (change.rules, change.version)).unzip();
        let mut query =
            Transaction::query(&*self.sql.put_records).bind(keys).bind(rules).bind(versions);
        for column in 0..self.spec.columns().len() {
            let cells: Vec<Written> =
                changes.iter().map(|change| change.cells[column].clone()).collect();
            query = query.bind(cells);
        }
        query
    }
}

/// Carries a plan out.
struct Writer<'a> {
    transaction: &'a mut Transaction,
    mirror: &'a Mirror,
    generation: i64,
    plan: Plan,
    careful: bool,
}

impl Writer<'_> {
    /// Deletes first: what is unique besides the key may move from one record to another. False if a
    /// record made it fail, and care was not taken.
    async fn carry_out(&mut self) -> Result<bool, Failure> {
        let done = async {
            let mut drops = std::mem::take(&mut self.plan.drops);
            self.each(Deed::Drop, &mut drops).await?;
            self.bury(&drops).await?;
            let mut known = std::mem::take(&mut self.plan.known);
            self.each(Deed::Put, &mut known).await?;
            let mut fresh = std::mem::take(&mut self.plan.fresh);
            if self.careful || fresh.is_empty() {
                self.each(Deed::Put, &mut fresh).await?;
            } else if !self.copied(&fresh).await? {
                return Ok(false);
            }
            self.revive(known.iter().chain(&fresh)).await?;
            (self.plan.known, self.plan.fresh) = (known, fresh);
            Ok(true)
        };
        match done.await {
            Err(Failure::Postgres(error)) if !self.careful && is_of_a_record(&error) => Ok(false),
            done => done,
        }
    }

    /// Adds records of keys that have none. False if not every one is there then.
    async fn copied(&mut self, fresh: &[Change]) -> Result<bool, Failure> {
        let mut lines = Vec::new();
        for change in fresh {
            line(&mut lines, change);
        }
        let connection = self.transaction.connection();
        let mut copy = connection.copy_in_raw(&self.mirror.sql.copy_records).await?;
        if let Err(error) = copy.send(lines).await {
            // What ended the copy on the server's side says more.
            return Err(copy.finish().await.err().unwrap_or(error).into());
        }
        Ok(usize::try_from(copy.finish().await?).ok() == Some(fresh.len()))
    }

    /// Does a deed to each record, and leaves only those in the list to which it was done. With care,
    /// those that fail are refused, and found by halves.
    async fn each(&mut self, deed: Deed, changes: &mut Vec<Change>) -> Result<(), Failure> {
        let mirror = self.mirror;
        let mut refused: BTreeMap<usize, String> = BTreeMap::new();
        let mut parts = vec![changes.as_slice()];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let query = mirror.statement(deed, part);
            let work = async |transaction: &mut Transaction| transaction.rows(query).await;
            let done = match self.careful {
                true => self.transaction.undoing(work).await?,
                false => Ok(work(self.transaction).await?),
            };
            match done {
                Ok(rows) => refused.extend(ignored(deed, part, &rows)?),
                Err(error) if is_of_a_record(&error) && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                Err(error) if is_of_a_record(&error) => {
                    refused.insert(part[0].place, said(&error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for (place, reason) in &refused {
            self.plan.outcomes[*place] = refusal(reason);
        }
        changes.retain(|change| !refused.contains_key(&change.place));
        Ok(())
    }

    /// Remembers deletions.
    async fn bury(&mut self, drops: &[Change]) -> Result<(), Failure> {
        if drops.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = drops.iter().map(|change| change.key.clone()).collect();
        let (rules, versions): (Vec<i64>, Vec<i64>) =
            drops.iter().map(|change| (change.rules, change.version)).unzip();
        let query = Transaction::query(&*self.mirror.sql.put_tombstones)
            .bind(self.generation)
            .bind(keys)
            .bind(rules)
            .bind(versions);
        self.transaction.rows(query).await?;
        Ok(())
    }

    /// Forgets the deletions of records that are back.
    async fn revive<'c>(&mut self, put: impl Iterator<Item = &'c Change>) -> Result<(), Failure> {
        let buried = put.filter(|change| change.held.buried.is_some());
        let keys: Vec<String> = buried.map(|change| change.key.clone()).collect();
        if !keys.is_empty() {
            let query = Transaction::query(&*self.mirror.sql.drop_tombstones);
            self.transaction.rows(query.bind(self.generation).bind(keys)).await?;
        }
        Ok(())
    }
}

/// Records that a statement should have changed and did not.
fn ignored(
    deed: Deed,
    part: &[Change],
    rows: &[PgRow],
) -> Result<Vec<(usize, String)>, sqlx::Error> {
    let wanted = |change: &&Change| deed == Deed::Put || change.held.live.is_some();
    if part.iter().filter(wanted).count() == rows.len() {
        return Ok(Vec::new());
    }
    let done: BTreeSet<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let left = part.iter().filter(wanted).filter(|change| !done.contains(&change.key));
    let reason = || "a trigger of the mirror ignored it".to_owned();
    Ok(left.map(|change| (change.place, reason())).collect())
}

/// What may be one record's own fault: a value that its column does not take, a constraint or trigger
/// that somebody else added, a key that no index takes, JSON that is none or is too deep.
fn is_of_a_record(error: &Error) -> bool {
    let state = says(error).unwrap_or_default();
    ["21", "22", "23", "2F", "38", "39", "44", "54", "P0"].iter().any(|of| state.starts_with(of))
}

fn refusal(reason: &str) -> Outcome {
    Outcome::Refused(Code::SINK_REFUSED, bounded(reason).to_owned())
}

/// The rank in two columns; `None` if they hold none of ours.
pub(crate) fn rank(row: &PgRow, first: usize) -> Result<Option<Rank>, Error> {
    let (rules, version) = (number(row.try_get(first)?), number(row.try_get(first + 1)?));
    Ok(rules.zip(version).map(|(rules, version)| Rank {
        rules: RulesNumber::new(rules),
        version: Version::new(version),
    }))
}

/// The place, from 0, of what a row speaks of.
pub(crate) fn place(row: &PgRow) -> Result<usize, Error> {
    let place = usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(0);
    place.checked_sub(1).ok_or_else(|| Error::Decode("places are counted from 1".into()))
}

/// One record in COPY's text format.
fn line(lines: &mut Vec<u8>, change: &Change) {
    escape(lines, &change.key);
    lines.extend(format!("\t{}\t{}", change.rules, change.version).into_bytes());
    for cell in &change.cells {
        lines.push(b'\t');
        match cell {
            Some(text) => escape(lines, text),
            None => lines.extend(b"\\N"),
        }
    }
    lines.push(b'\n');
}

fn escape(lines: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| b"\\\n\r\t".contains(byte)) {
        lines.extend(&rest[..at]);
        lines.extend(match rest[at] {
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            _ => b"\\\\",
        });
        rest = &rest[at + 1..];
    }
    lines.extend(rest);
}
