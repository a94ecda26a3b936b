//! The feed: pages of changes, single keys, consumers, pruning.
//!
//! Invariant: S3. A page without a target that reaches the end in its snapshot S says: everything
//! visible in S is delivered with it. Rows that do not fit fix their snapshot as the target T; its
//! rows are handed out in pages, and when they end, what is visible now and not in T is read in the
//! same snapshot (X45). Marks that wait hold the moment back (X41).

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{
    CaptureState, Change, ChangePage, Consumer, Feed, Pulsed, Registration, SourceView,
};
use truekeep_core::{Key, Moment, Place, RegistrationCounter, Stamp, Version};
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::sqlx::postgres::PgRow;

use super::meta::{Seen, unless_missing};
use super::resolve::Resolved;
use super::snapshot::{Rest, to_moment, to_snapshot};
use super::{Patience, PostgresSource, WRITE_MAX, Worked, number};

const READ: &str = "read the feed";

/// A page, and what it calls for.
struct Read {
    page: ChangePage,
    /// The snapshot it was read in, if marks wait in it.
    marked: Option<Moment>,
    /// The start of the server that has to be noted before the page is handed out.
    start: Option<String>,
}

/// A row of the feed, and its place in the order.
struct Line {
    change: Change,
    row: (u64, i64),
}

fn line(row: &PgRow) -> Worked<Line> {
    let (version, xid): (i64, String) = (row.try_get(1)?, row.try_get(2)?);
    let xid = xid.parse().unwrap_or(0);
    let change = Change {
        key: Key::new(row.try_get::<String, _>(0)?),
        version: Version::new(number(version)),
        stamp: Stamp::new(xid),
        deleted: row.try_get(3)?,
    };
    Ok(Line { change, row: (xid, version) })
}

/// Rows that are not visible in `passed`, in order, after a row, of those visible in `target`.
async fn lines(
    reading: &mut Transaction,
    relation: &Resolved,
    passed: &Moment,
    rest: &Rest,
    limit: usize,
) -> Worked<Vec<Line>> {
    let (xid, version) = rest.row.unwrap_or((0, 0));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let bind = |sql: &str| {
        Transaction::query(sql)
            .bind(to_snapshot(passed))
            .bind(xid.to_string())
            .bind(version)
            .bind(limit)
    };
    let query = match &rest.target {
        None => bind(&relation.statements.changes),
        Some(target) => bind(&relation.statements.changes_within).bind(to_snapshot(target)),
    };
    reading.rows(query).await?.iter().map(line).collect()
}

/// The changes of a page, the place after them, and whether it reached the end.
async fn walk(
    reading: &mut Transaction,
    relation: &Resolved,
    seen: &Seen,
    after: &Place,
    limit: usize,
) -> Worked<(Vec<Change>, Place, bool)> {
    let before = Rest::of(after)?;
    let mut passed = after.passed.clone();
    let here = seen.here();
    let mut all = Vec::new();
    if before.target.is_some() {
        let mut rest = lines(reading, relation, &passed, &before, limit + 1).await?;
        if rest.len() > limit {
            rest.truncate(limit);
            let row = rest.last().map(|line| line.row);
            let place = Rest { target: before.target, row, ..here }.at(passed);
            return Ok((rest.into_iter().map(|line| line.change).collect(), place, false));
        }
        all = rest;
        passed = before.target.clone().unwrap_or_default();
    }
    let room = limit - all.len();
    let mut fresh = lines(reading, relation, &passed, &Rest::default(), room + 1).await?;
    let end = fresh.len() <= room;
    let place = if end {
        let moved = before.target.is_some() || !fresh.is_empty();
        // A place that stays is the same text, so that an idle run writes nothing; but for the server's next
        // start, as only the last one is noted.
        if moved || before.start.is_some_and(|start| Some(start) != here.start) {
            here.at(seen.now.clone())
        } else {
            after.clone()
        }
    } else {
        fresh.truncate(room);
        let row = fresh.last().map(|line| line.row);
        Rest { target: Some(seen.now.clone()), row, ..here }.at(passed)
    };
    all.append(&mut fresh);
    Ok((all.into_iter().map(|line| line.change).collect(), place, end))
}

impl PostgresSource {
    /// Reads a page, with statements that are made for the table as it is.
    async fn read_page(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: usize,
    ) -> Result<Read, PortError> {
        let mut again = true;
        loop {
            let (mut reading, relation) = self.reading(READ).await?;
            let work = async {
                let seen = Seen::look(&mut reading, READ, &relation, Some(consumer)).await?;
                if again && seen.shape != relation.shape {
                    return Ok(None);
                }
                let view = seen.view(after)?;
                // What comes from another source is not looked for by its place.
                let (changes, next, end) = if view.continues {
                    walk(&mut reading, &relation, &seen, after, limit).await?
                } else {
                    (Vec::new(), after.clone(), false)
                };
                let marked = seen.marks.then(|| seen.now.clone());
                let moment = (end && !seen.marks).then(|| seen.now.clone());
                let start = seen.start_to_note().filter(|_| view.continues);
                let page = ChangePage { changes, next, end, moment, view };
                Ok(Some(Read { page, marked, start }))
            };
            let work = work.await;
            if let Some(read) = self.settled(reading, work).await? {
                if let Some(start) = &read.start {
                    self.note_start(consumer, start).await?;
                }
                return Ok(read);
            }
            self.look_again().await?;
            again = false;
        }
    }
}

impl PostgresSource {
    /// Notes the start of the server under which a consumer reads: a copy of before has no such note.
    async fn note_start(&self, consumer: &Consumer, start: &str) -> Result<(), PortError> {
        const OPERATION: &str = "note the server's start";
        let relation = self.seen();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(OPERATION, patience.statement_max()).await?;
            let query = Transaction::query(relation.statements.started.clone())
                .bind(relation.names.stem().to_owned())
                .bind(consumer.ledger.as_str().to_owned())
                .bind(consumer.pipeline.as_str().to_owned())
                .bind(start.to_owned());
            let noted = writing.rows(query).await.map(|rows| !rows.is_empty()).map_err(Into::into);
            match writing.end(noted).await {
                Err(error) => patience.again(error).await?,
                Ok(true) => return Ok(()),
                // It was started once more meanwhile.
                Ok(false) => {
                    let code = Code::SOURCE_UNAVAILABLE;
                    return Err(PortError::new(OPERATION, FailureClass::Retry, code));
                }
            }
        }
    }
}

/// Writes the acknowledgement that follows the one that is held (F2).
async fn acknowledge(
    writing: &mut Transaction,
    relation: &Resolved,
    consumer: &Consumer,
    registration: &Registration,
) -> Worked<()> {
    const OPERATION: &str = "register a consumer";
    let of = |text: String| {
        Transaction::query(text)
            .bind(relation.names.stem().to_owned())
            .bind(consumer.ledger.as_str().to_owned())
            .bind(consumer.pipeline.as_str().to_owned())
    };
    let unless_missing = |error| unless_missing(OPERATION, relation, error);
    let hold = of(include_str!("../../sql/consumer/hold.sql").to_owned());
    let rows = writing.rows(hold).await.map_err(unless_missing)?;
    let held = match rows.first() {
        None => None,
        Some(row) => Some(Registration {
            counter: RegistrationCounter::new(row.try_get::<i64, _>(0)?.unsigned_abs()),
            passed: to_moment(&row.try_get::<String, _>(1)?)?,
        }),
    };
    let next = Registration::after(held.as_ref(), registration)?;
    let write = of(relation.statements.register.clone())
        .bind(i64::try_from(next.counter.get()).unwrap_or(i64::MAX))
        .bind(to_snapshot(&next.passed));
    writing.rows(write).await.map_err(unless_missing)?;
    Ok(())
}

#[async_trait]
impl Feed for PostgresSource {
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError> {
        let (mut reading, relation) = self.reading(READ).await?;
        let seen = Seen::look(&mut reading, READ, &relation, Some(consumer)).await;
        let work = seen.and_then(|seen| seen.view(at));
        self.settled(reading, work).await
    }

    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        self.woken().await;
        let limit = limit.max(1) as usize;
        let read = self.read_page(consumer, after, limit).await?;
        if read.marked.is_none() {
            return Ok(read.page);
        }
        // A fold that is given up moves no moment; the page is good without one.
        let folded = match self.fold().await {
            Ok(folded) => folded,
            Err(error) if error.class == FailureClass::Retry => return Ok(read.page),
            Err(error) => return Err(error),
        };
        let mut page = self.read_page(consumer, after, limit).await?.page;
        if page.end && page.moment.is_none() {
            page.moment = folded;
        }
        Ok(page)
    }

    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        const OPERATION: &str = "look into the feed";
        let (mut reading, relation) = self.reading(OPERATION).await?;
        let work = async {
            let texts: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
            let query = Transaction::query(relation.statements.find.clone()).bind(texts);
            let rows = reading.rows(query).await;
            let rows = rows.map_err(|error| unless_missing(OPERATION, &relation, error))?;
            let mut found = vec![None; keys.len()];
            for row in &rows {
                let place = usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(0) - 1;
                let (version, xid): (i64, String) = (row.try_get(1)?, row.try_get(2)?);
                found[place] = Some(Change {
                    key: keys[place].clone(),
                    version: Version::new(number(version)),
                    stamp: Stamp::new(xid.parse().unwrap_or(0)),
                    deleted: row.try_get(3)?,
                });
            }
            Ok(found)
        };
        let work = work.await;
        self.settled(reading, work).await
    }

    async fn pending(&self) -> Result<bool, PortError> {
        const OPERATION: &str = "look for marks";
        let (mut reading, relation) = self.reading(OPERATION).await?;
        let work = async {
            let row = reading.row(Transaction::query(relation.statements.pending.clone())).await;
            let row = row.map_err(|error| unless_missing(OPERATION, &relation, error))?;
            Ok(row.try_get(0)?)
        };
        let work = work.await;
        self.settled(reading, work).await
    }

    async fn register(
        &self,
        consumer: &Consumer,
        registration: &Registration,
    ) -> Result<(), PortError> {
        const OPERATION: &str = "register a consumer";
        let relation = self.seen();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(OPERATION, patience.statement_max()).await?;
            let work = acknowledge(&mut writing, &relation, consumer, registration).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }

    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError> {
        const OPERATION: &str = "forget a consumer";
        if !self.is_installed(OPERATION).await? {
            return Ok(());
        }
        let mut writing = self.writing(OPERATION, WRITE_MAX * 20).await?;
        let query = Transaction::query(include_str!("../../sql/consumer/forget.sql"))
            .bind(self.seen().names.stem().to_owned())
            .bind(consumer.ledger.as_str().to_owned())
            .bind(consumer.pipeline.as_str().to_owned());
        let work = writing.rows(query).await.map(drop).map_err(Into::into);
        writing.end(work).await
    }

    async fn prune(&self) -> Result<u64, PortError> {
        const OPERATION: &str = "prune the feed";
        let relation = self.seen();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(OPERATION, patience.statement_max()).await?;
            let rows = patience.rows(SOURCE_WRITE_ROWS_MAX as usize);
            let work = prune(&mut writing, &relation, rows).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }

    async fn pulse(&self) -> Result<Pulsed, PortError> {
        if self.ear.is_to_look() {
            return Ok(self.look().await?.1);
        }
        Ok(Pulsed(self.pulsed.lock().expect("no holder of the lock panics").1))
    }

    async fn stirred(&self) {
        self.told().await;
    }
}

/// Removes some tombstones.
async fn prune(writing: &mut Transaction, relation: &Resolved, rows: usize) -> Worked<u64> {
    // Documents may be newer than a tombstone: what nothing recorded is told by it alone, so that it
    // stays until the feed is filled anew.
    let seen = Seen::look(writing, "prune the feed", relation, None).await?;
    if !matches!(seen.capture()?, CaptureState::Trusted(_)) {
        return Ok(0);
    }
    let stem = relation.names.stem().to_owned();
    let query = Transaction::query(relation.statements.prune.clone())
        .bind(stem.clone())
        .bind(i64::try_from(rows).unwrap_or(i64::MAX));
    let row = writing.row(query).await?;
    let (pruned, passed): (i64, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    if let Some(passed) = passed.filter(|_| pruned > 0) {
        let query = Transaction::query(include_str!("../../sql/capture/raise_floor.sql"));
        writing.rows(query.bind(stem).bind(passed)).await?;
    }
    Ok(number(pruned))
}
