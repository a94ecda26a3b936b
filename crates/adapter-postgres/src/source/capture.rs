//! Capture: a schema with feeds beside the application's, triggers on its tables; held against the
//! table, taken away.
//!
//! A trigger's creation waits for the writers that are at work and excludes others meanwhile, so
//! each of these transactions is short, gives its locks up soon and comes again.

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    AuditPage, Capture, CaptureReport, CaptureState, FillProgress, Numbered,
};
use truekeep_core::{Key, Stamp, Version};
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::Row;

use super::meta::{Seen, missing, unless_missing};
use super::names::{literal, quote};
use super::records::existing;
use super::resolve::Resolved;
use super::signature::Differences;
use super::statements::template;
use super::{Patience, PostgresSource, WRITE_MAX, Worked, audit, fill, number};

const INSTALL: &str = "install capture";

/// How long a statement of an installation may take once it has its locks.
const DDL_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// Makes what all feeds share, and this feed, where they are not; returns whether this feed was made.
async fn tables(writing: &mut Transaction, relation: &Resolved) -> Worked<()> {
    // Two that install at once would stand in each other's way half made.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('truekeep', 0))::text";
    writing.rows(Transaction::query(lock)).await?;
    if !exists(writing).await? {
        writing.run(include_str!("../../sql/capture/create.sql")).await?;
    }
    let names = &relation.names;
    let whole = Transaction::query(include_str!("../../sql/feed/exists.sql"))
        .bind(names.feed())
        .bind(names.version())
        .bind(names.mark());
    let whole: bool = writing.row(whole).await?.try_get(0)?;
    let before = fill::stored(writing, relation).await?;
    let key_form = relation.key.describe();
    let keeps = |before: &&fill::Stored| whole && before.ours;
    if let Some(before) = before.as_ref().filter(keeps).filter(|before| before.key_form != key_form)
    {
        let detail = format!(
            "the feed of {} has the key {}, the rules say {key_form}: run `truekeep capture remove` first",
            relation.table.name.quoted(),
            before.key_form
        );
        let error = PortError::new(INSTALL, FailureClass::Halted, Code::KEY_REFUSED);
        return Err(error.detail(detail).into());
    }
    if !whole || !before.is_some_and(|before| before.ours) {
        // What is left of a feed that is not whole, or was brought here from another database, goes: a new
        // life begins. The transactions that the other numbered are none of this one's.
        drop_feed(writing, relation).await?;
        writing.run(of_feed(include_str!("../../sql/feed/create.sql"), relation)).await?;
    }
    let query = Transaction::query(relation.statements.add.clone())
        .bind(names.stem().to_owned())
        .bind(relation.table.name.quoted())
        .bind(key_form);
    writing.rows(query).await?;
    writing.run(reader(relation)).await?;
    Ok(())
}

/// What tells readers of the feed. It goes with the rules, so it is made anew each time.
fn reader(relation: &Resolved) -> String {
    let names = &relation.names;
    let look = template(
        include_str!("../../sql/feed/look.sql"),
        &[
            ("feed", &names.feed()),
            ("mark", &names.mark()),
            ("stem", &literal(names.stem())),
            ("signature", &relation.statements.signature),
        ],
    );
    template(
        include_str!("../../sql/feed/reader.sql"),
        &[("look", &names.look()), ("body", &literal(&look))],
    )
}

fn of_feed(text: &str, relation: &Resolved) -> String {
    let names = &relation.names;
    template(
        text,
        &[
            ("feed", &names.feed()),
            ("version", &names.version()),
            ("mark", &names.mark()),
            ("look", &names.look()),
            ("order", &names.index("order")),
            ("waste", &names.index("waste")),
        ],
    )
}

async fn exists(transaction: &mut Transaction) -> Worked<bool> {
    let query = Transaction::query(include_str!("../../sql/capture/exists.sql"));
    Ok(transaction.row(query).await?.try_get(0)?)
}

async fn drop_feed(writing: &mut Transaction, relation: &Resolved) -> Worked<()> {
    let stem = relation.names.stem().to_owned();
    writing.run(of_feed(include_str!("../../sql/feed/drop.sql"), relation)).await?;
    for sql in [
        include_str!("../../sql/capture/remove.sql"),
        include_str!("../../sql/consumer/remove.sql"),
    ] {
        writing.rows(Transaction::query(sql).bind(stem.clone())).await?;
    }
    Ok(())
}

/// The statements that put right what differs, those of one table together: no transaction holds the
/// locks of two.
fn repairs(differences: &Differences) -> Vec<String> {
    let functions: Vec<String> = differences.functions.iter().map(|own| own.create()).collect();
    let mut all = vec![functions.join(";\n")];
    let mut tables: Vec<_> = differences.triggers.iter().map(|own| &own.table).collect();
    tables.extend(differences.strays.iter().map(|(table, _)| table));
    tables.sort_by_key(|table| table.quoted());
    tables.dedup();
    for table in tables {
        let mut of_table = String::new();
        let drop =
            |name: &str| format!("DROP TRIGGER IF EXISTS {} ON {};\n", quote(name), table.quoted());
        for (_, name) in differences.strays.iter().filter(|(own, _)| own == table) {
            of_table.push_str(&drop(name));
        }
        for trigger in differences.triggers.iter().filter(|own| own.table == *table) {
            of_table.push_str(&drop(&trigger.name));
            of_table.push_str(&format!("{};\n", trigger.create()));
        }
        all.push(of_table);
    }
    all.retain(|sql| !sql.is_empty());
    all
}

/// Begins a fill if anything was made or changed, or what stands is not what was trusted.
async fn begin(writing: &mut Transaction, relation: &Resolved, changed: bool) -> Worked<()> {
    let stored = fill::stored(writing, relation).await?;
    let stored = stored.ok_or_else(|| missing(INSTALL, relation))?;
    let signature = fill::signature(writing, relation).await?;
    let trusted = stored.trusted.as_ref() == Some(&signature);
    if changed || !(trusted || stored.filling) {
        fill::begin(writing, relation).await?;
    }
    Ok(())
}

impl PostgresSource {
    /// Whether there is anything of ours.
    pub(super) async fn is_installed(&self, operation: &'static str) -> Result<bool, PortError> {
        let mut writing = self.writing(operation, WRITE_MAX * 20).await?;
        let found = exists(&mut writing).await;
        writing.end(found).await
    }

    /// Runs statements in a transaction of their own, until they find the locks free.
    async fn change(&self, operation: &'static str, sql: &str) -> Result<(), PortError> {
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(operation, DDL_MAX).await?;
            let work = writing.run(sql).await.map_err(Into::into);
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }

    async fn report(&self) -> Result<CaptureReport, PortError> {
        const OPERATION: &str = "verify capture";
        let (mut reading, relation) = self.reading(OPERATION).await?;
        let work = async {
            let differences = Differences::find(
                &mut reading,
                &relation.names,
                &relation.relations,
                &relation.wanted,
            );
            let mut differences = differences.await?.lines;
            if !exists(&mut reading).await? {
                return Ok(CaptureReport::without_feed(differences));
            }
            // A transaction that fails in the middle is good for nothing more.
            let looked = Transaction::query(include_str!("../../sql/feed/exists.sql"))
                .bind(relation.names.feed())
                .bind(relation.names.version())
                .bind(relation.names.mark());
            if !reading.row(looked).await?.try_get::<bool, _>(0)? {
                return Ok(CaptureReport::without_feed(differences));
            }
            let seen = Seen::look(&mut reading, OPERATION, &relation, None).await?;
            let mut state = seen.capture()?;
            if !differences.is_empty() && matches!(state, CaptureState::Trusted(_)) {
                state = CaptureState::Broken(Code::CAPTURE_CHANGED);
            }
            if matches!(state, CaptureState::Broken(_)) && differences.is_empty() {
                differences.push(
                    "triggers, columns or partitions changed since the last full pass".into(),
                );
            }
            let counts = Transaction::query(relation.statements.counts.clone())
                .bind(relation.names.stem().to_owned());
            let counts = reading.row(counts).await?;
            Ok(CaptureReport {
                state,
                differences,
                feed_rows: number(counts.try_get(0)?),
                tombstones: number(counts.try_get(1)?),
                newest: Version::new(number(counts.try_get(2)?)),
                consumers: number(counts.try_get(3)?),
            })
        };
        let work = work.await;
        self.settled(reading, work).await
    }
}

#[async_trait]
impl Capture for PostgresSource {
    async fn install(&self) -> Result<CaptureReport, PortError> {
        let relation = self.look_again().await?;
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(INSTALL, DDL_MAX).await?;
            let work = tables(&mut writing, &relation).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                Ok(()) => break,
            }
        }
        let (mut reading, relation) = self.reading(INSTALL).await?;
        let differences =
            Differences::find(&mut reading, &relation.names, &relation.relations, &relation.wanted)
                .await;
        let differences = reading.end(differences).await?;
        for repair in repairs(&differences) {
            self.change(INSTALL, &repair).await?;
        }
        let changed = !differences.lines.is_empty();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(INSTALL, DDL_MAX).await?;
            let work = begin(&mut writing, &relation, changed).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                Ok(()) => break,
            }
        }
        self.report().await
    }

    async fn fill(&self) -> Result<FillProgress, PortError> {
        self.fill_page().await
    }

    async fn verify(&self) -> Result<CaptureReport, PortError> {
        self.look_again().await?;
        self.report().await
    }

    async fn audit(&self, after: Option<Key>, limit: u32) -> Result<AuditPage, PortError> {
        let (mut reading, relation) = self.reading("audit the feed").await?;
        let limit = limit.max(1) as usize;
        let work = audit::page(&mut reading, &relation, after.as_ref(), limit).await;
        self.settled(reading, work).await
    }

    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError> {
        const OPERATION: &str = "number keys";
        let (mut reading, relation) = self.reading(OPERATION).await?;
        let ours = existing(&mut reading, &relation, keys).await;
        let ours: std::collections::BTreeSet<Key> = reading.end(ours).await?.into_iter().collect();
        let (good, foreign): (Vec<Key>, Vec<Key>) =
            keys.iter().cloned().partition(|key| ours.contains(key));
        let numbered = self.number_keys(OPERATION, &good).await;
        let (_, newest) = numbered?;
        Ok(Numbered { newest: newest.map(Stamp::new), foreign })
    }

    async fn begin_again(&self, above: Version) -> Result<(), PortError> {
        const OPERATION: &str = "begin again";
        let relation = self.seen();
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(OPERATION, DDL_MAX).await?;
            let work = begin_again(&mut writing, &relation, above).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }

    async fn remove(&self) -> Result<(), PortError> {
        const OPERATION: &str = "remove capture";
        let relation = self.look_again().await?;
        let (mut reading, relation) = match self.reading(OPERATION).await {
            Ok((reading, _)) => (reading, relation),
            Err(error) => return Err(error),
        };
        let nothing = super::triggers::Wanted::default();
        let found =
            Differences::find(&mut reading, &relation.names, &relation.relations, &nothing).await;
        let found = reading.end(found).await?;
        for repair in repairs(&found) {
            self.change(OPERATION, &repair).await?;
        }
        if !self.is_installed(OPERATION).await? {
            return Ok(());
        }
        let mut patience = Patience::default();
        loop {
            let mut writing = self.writing(OPERATION, DDL_MAX).await?;
            let work = take_away(&mut writing, &relation).await;
            match writing.end(work).await {
                Err(error) => patience.again(error).await?,
                done => return done,
            }
        }
    }
}

/// Moves the numbers on, and begins a fill.
async fn begin_again(writing: &mut Transaction, relation: &Resolved, above: Version) -> Worked<()> {
    let above = i64::try_from(above.get()).unwrap_or(i64::MAX).max(1);
    let lifted = Transaction::query(relation.statements.lift.clone()).bind(above);
    let lifted = writing.rows(lifted).await;
    lifted.map_err(|error| unless_missing("begin again", relation, error))?;
    fill::begin(writing, relation).await
}

/// Takes the functions, the feed, and with the last feed what all share.
async fn take_away(writing: &mut Transaction, relation: &Resolved) -> Worked<()> {
    drop_feed(writing, relation).await?;
    let query = Transaction::query(include_str!("../../sql/signature/functions.sql"));
    for row in writing.rows(query.bind(relation.names.functions_like())).await? {
        let name: String = row.try_get(0)?;
        writing.run(format!("DROP FUNCTION IF EXISTS truekeep.{}()", quote(&name))).await?;
    }
    let feeds =
        writing.row(Transaction::query(include_str!("../../sql/capture/count.sql"))).await?;
    if feeds.try_get::<i64, _>(0)? == 0 {
        writing.run(include_str!("../../sql/capture/drop.sql")).await?;
    }
    Ok(())
}
