//! Capture: tables and triggers put beside the application's, held against the table, taken away.
//!
//! Everything that decides trust happens in one write transaction, under the lock that excludes
//! every other writer: no change falls between a trigger's creation and the fill that follows.

use std::time::Instant;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::{
    AuditPage, Capture, CaptureReport, CaptureState, FillProgress, Numbered,
};
use truekeep_core::{Key, Version};
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::key::stored;
use super::meta::{Meta, signed, version};
use super::names::{FeedNames, literal, quote};
use super::records::is_there;
use super::resolve::Resolved;
use super::triggers::{LIVE, MARK_COLUMNS, TOMBSTONE};
use super::{audit, fill};
use truekeep_core::relation::RelationSpec;

/// The tables of one feed. A feed is read by key, by number, and for what is not live.
///
/// Numbers stand in a table of their own that is only appended to, as an index on them would cost
/// each change a second page at the number's old place. What is outdated there is passed over by
/// readers and swept by pruning.
pub(super) fn tables(names: &FeedNames) -> Vec<String> {
    let (feed, counter, mark) =
        (quote(&names.feed()), quote(&names.counter()), quote(&names.mark()));
    let index = |kind: &str| quote(&names.trigger(kind));
    vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {feed} (key TEXT PRIMARY KEY NOT NULL, \
             version INTEGER NOT NULL, deleted INTEGER NOT NULL) WITHOUT ROWID"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {} \
             (version INTEGER PRIMARY KEY, stamp BLOB NOT NULL, key TEXT NOT NULL)",
            quote(&names.order())
        ),
        format!(
            "CREATE INDEX IF NOT EXISTS {} ON {feed} (deleted, version) WHERE deleted > 0",
            index("waste")
        ),
        format!("CREATE TABLE IF NOT EXISTS {counter} (newest INTEGER NOT NULL)"),
        format!("INSERT INTO {counter} SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM {counter})"),
        format!(
            "CREATE TABLE IF NOT EXISTS {mark} \
             (number INTEGER PRIMARY KEY, watch TEXT NOT NULL, {})",
            MARK_COLUMNS.join(", ")
        ),
    ]
}

/// Makes what differs; returns whether anything did.
fn install(
    connection: &Connection,
    relation: &Resolved,
    spec: &RelationSpec,
    total: i64,
) -> Result<Resolved, Failure> {
    let names = &relation.names;
    connection.execute_batch(include_str!("sql/capture/create.sql"))?;
    connection.execute_batch(include_str!("sql/consumer/create.sql"))?;
    let before = Meta::load(connection, relation)?;
    if before.is_none() {
        drop_feed(connection, names)?;
    }
    let key_form = relation.key.describe();
    if let Some(before) = before.as_ref().filter(|before| before.key_form != key_form) {
        let detail = format!(
            "the feed of {} has the key {}, the rules say {key_form}: run `truekeep capture remove` first",
            quote(&relation.table.name),
            before.key_form
        );
        let error = PortError::new("install capture", FailureClass::Halted, Code::KEY_REFUSED);
        return Err(error.detail(detail).into());
    }
    let changed = before.is_none() || !relation.present.differences.is_empty();
    if changed {
        // Every row is about to get a number, so no mark has anything to add.
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote(&names.mark())))?;
    }
    for statement in tables(names) {
        connection.execute_batch(&statement)?;
    }
    connection.execute(
        include_str!("sql/capture/add.sql"),
        params![names.stem(), relation.table.name, key_form],
    )?;
    if changed {
        replace_triggers(connection, relation)?;
    }
    let now = Resolved::of(connection, spec)?;
    let meta = Meta::demand(connection, &now, "install capture")?;
    let judged = meta.judge(&now);
    if changed || matches!(judged.state, CaptureState::Broken(_)) {
        Meta::begin_fill(connection, &now, total)?;
    } else if judged.adopt {
        meta.adopt(connection, &now)?;
    }
    Ok(now)
}

/// Puts the triggers in place that are not, and the seal behind all of them.
fn replace_triggers(connection: &Connection, relation: &Resolved) -> Result<(), Failure> {
    let (names, present) = (&relation.names, &relation.present);
    let drop =
        |name: &str| connection.execute_batch(&format!("DROP TRIGGER IF EXISTS {}", quote(name)));
    for stray in present.strays(names, &relation.triggers) {
        drop(&stray.name)?;
    }
    for trigger in relation.triggers.iter().filter(|wanted| !present.stands(wanted)) {
        drop(&trigger.name)?;
        connection.execute_batch(&trigger.sql)?;
    }
    let seal = quote(&names.seal());
    let drawn: String =
        connection.query_row("SELECT lower(hex(randomblob(8)))", [], |row| row.get(0))?;
    connection.execute_batch(&format!(
        "DROP VIEW IF EXISTS {seal}; CREATE VIEW {seal} AS SELECT {} AS seal",
        literal(&drawn)
    ))?;
    Ok(())
}

/// Takes away what is left of a feed that is not whole, so that it begins a new life.
fn drop_feed(connection: &Connection, names: &FeedNames) -> Result<(), Failure> {
    for table in [names.feed(), names.order(), names.counter(), names.mark()] {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote(&table)))?;
    }
    connection.execute(include_str!("sql/capture/remove.sql"), [names.stem()])?;
    connection.execute(include_str!("sql/consumer/remove.sql"), [names.stem()])?;
    Ok(())
}

/// What there is, for an operator.
fn report(connection: &Connection, relation: &Resolved) -> Result<CaptureReport, Failure> {
    let mut differences = relation.present.differences.clone();
    let Some(meta) = Meta::load(connection, relation)? else {
        return Ok(CaptureReport::without_feed(differences));
    };
    let state = meta.judge(relation).state;
    if matches!(state, CaptureState::Broken(_)) && differences.is_empty() {
        differences.push(
            "triggers, or columns that documents are made of, changed since the last full pass"
                .into(),
        );
    }
    let mut counts = connection.prepare_cached(&relation.statements.counts)?;
    let (rows, tombstones): (i64, f64) =
        counts.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut newest = connection.prepare_cached(&relation.statements.head)?;
    let mut consumers = connection.prepare_cached(include_str!("sql/consumer/count.sql"))?;
    let stem = relation.names.stem();
    Ok(CaptureReport {
        state,
        differences,
        feed_rows: super::meta::number(rows),
        tombstones: tombstones as u64,
        newest: version(newest.query_row([], |row| row.get(0))?),
        consumers: consumers.query_row([stem], |row| row.get(0)).map(super::meta::number)?,
    })
}

/// Refuses a table that has rows which cannot be followed; counts the others.
fn admit(connection: &Connection, relation: &Resolved) -> Result<i64, Failure> {
    let own = quote(&relation.table.name);
    let nullable: Vec<String> = relation
        .key
        .columns
        .iter()
        .filter(|column| column.nullable)
        .map(|column| format!("{} IS NULL", column.sql))
        .collect();
    if !nullable.is_empty() {
        let count = format!("SELECT count(*) FROM {own} WHERE {}", nullable.join(" OR "));
        let rows: i64 = connection.query_row(&count, [], |row| row.get(0))?;
        if rows > 0 {
            let error = PortError::new("install capture", FailureClass::Halted, Code::KEY_REFUSED);
            let detail = format!(
                "{rows} rows of {own} have NULL in the key ({}): give them a key, or declare another",
                relation.key.list("")
            );
            return Err(error.detail(detail).into());
        }
    }
    Ok(connection.query_row(&format!("SELECT count(*) FROM {own}"), [], |row| row.get(0))?)
}

/// Gives keys a fresh number each and says of each what the table says.
fn number(
    connection: &Connection,
    relation: &Resolved,
    keys: Vec<Key>,
) -> Result<Numbered, Failure> {
    Meta::demand(connection, relation, "number keys")?;
    let mut numbered = Numbered::default();
    for key in keys {
        let Some(parts) = relation.key.parse(&key) else {
            numbered.foreign.push(key);
            continue;
        };
        let deleted = if is_there(connection, relation, &parts)? { LIVE } else { TOMBSTONE };
        let newest = fill::record(connection, relation, [&*stored(&key)].into_iter(), deleted)?;
        numbered.newest = newest.map(|number| version(number).into());
    }
    Ok(numbered)
}

#[async_trait]
impl Capture for SqliteSource {
    async fn install(&self) -> Result<CaptureReport, PortError> {
        let total = self.read("look at the table", admit).await?;
        let spec = self.spec();
        self.write("install capture", move |connection, relation| {
            let now = install(connection, relation, &spec, total)?;
            report(connection, &now)
        })
        .await
    }

    async fn fill(&self) -> Result<FillProgress, PortError> {
        let began = Instant::now();
        let progress = self.write("fill the feed", fill::fill).await?;
        if !progress.done {
            // A writer that waits for the lock tries only now and then, and rarely enough: it must
            // find it free two times out of three.
            tokio::time::sleep(began.elapsed() * 2).await;
        }
        Ok(progress)
    }

    async fn verify(&self) -> Result<CaptureReport, PortError> {
        self.read("verify capture", report).await
    }

    async fn audit(&self, after: Option<Key>, limit: u32) -> Result<AuditPage, PortError> {
        self.read("audit the feed", move |connection, relation| {
            audit::page(connection, relation, after.as_ref(), limit.max(1))
        })
        .await
    }

    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError> {
        let keys = keys.to_vec();
        self.write("number keys", move |connection, relation| number(connection, relation, keys))
            .await
    }

    async fn begin_again(&self, above: Version) -> Result<(), PortError> {
        self.write("begin again", move |connection, relation| {
            let meta = Meta::demand(connection, relation, "begin again")?;
            let mut lift = connection.prepare_cached(&relation.statements.lift)?;
            lift.execute([signed(above.get())])?;
            Meta::begin_fill(connection, relation, meta.total)
        })
        .await
    }

    async fn remove(&self) -> Result<(), PortError> {
        const OPERATION: &str = "remove capture";
        let names = self.names();
        let of_feed = names.clone();
        self.write_bare(OPERATION, move |connection| uncapture(connection, &of_feed)).await?;
        loop {
            let of_feed = names.clone();
            let removed =
                self.write_bare(OPERATION, move |connection| empty(connection, &of_feed)).await?;
            if removed == 0 {
                break;
            }
        }
        self.write_bare(OPERATION, move |connection| drop_tables(connection, &names)).await
    }
}

fn has_table(connection: &Connection, table: &str) -> Result<bool, Failure> {
    Ok(connection.table_exists(Some("main"), table)?)
}

/// Ends the recording.
fn uncapture(connection: &Connection, names: &FeedNames) -> Result<(), Failure> {
    let mut ours = connection.prepare(
        "SELECT type, name FROM sqlite_schema
         WHERE type IN ('trigger', 'view') AND name LIKE 'truekeep\\_%' ESCAPE '\\'",
    )?;
    let found = ours
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, String)>, _>>()?;
    for (kind, name) in found.iter().filter(|(_, name)| names.kind(name).is_some()) {
        connection.execute_batch(&format!("DROP {kind} {}", quote(name)))?;
    }
    if has_table(connection, "truekeep_capture")? {
        connection.execute(include_str!("sql/capture/remove.sql"), [names.stem()])?;
    }
    if has_table(connection, "truekeep_consumer")? {
        connection.execute(include_str!("sql/consumer/remove.sql"), [names.stem()])?;
    }
    Ok(())
}

/// Deletes some rows of the feed: dropping a large table at once would hold the lock for long.
fn empty(connection: &Connection, names: &FeedNames) -> Result<usize, Failure> {
    let mut removed = 0;
    for (table, key) in [(names.feed(), "key"), (names.order(), "version")] {
        if has_table(connection, &table)? {
            let table = quote(&table);
            let some = format!("SELECT {key} FROM {table} LIMIT ?1");
            let delete = format!("DELETE FROM {table} WHERE {key} IN ({some})");
            removed += connection.execute(&delete, [SOURCE_WRITE_ROWS_MAX])?;
        }
    }
    Ok(removed)
}

fn drop_tables(connection: &Connection, names: &FeedNames) -> Result<(), Failure> {
    let mut tables = vec![names.feed(), names.order(), names.counter(), names.mark()];
    if has_table(connection, "truekeep_capture")? {
        let feeds: i64 =
            connection.query_row(include_str!("sql/capture/count.sql"), [], |row| row.get(0))?;
        if feeds == 0 {
            tables.extend(["truekeep_capture".to_owned(), "truekeep_consumer".to_owned()]);
        }
    }
    for table in tables {
        connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote(&table)))?;
    }
    Ok(())
}
