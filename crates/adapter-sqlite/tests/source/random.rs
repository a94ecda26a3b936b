//! Random writes over many shapes of tables: after each transaction the feed tells the truth.
//!
//! X8, X23: what changed has a newer number, `deleted` is what the table says, and what a REPLACE
//! removed has a number of its own, whatever OR clause, cascade, rollback or user trigger was there.

use std::collections::BTreeMap;
use std::fmt::Write;

use rusqlite::Connection;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteSource, Watch};
use truekeep_core::ports::{Capture, Loaded, Records};
use truekeep_core::{Key, Value};

use crate::fixture::{App, Asked};
use crate::shapes::{OR, RELATED, RELATED_DOCUMENT, SHAPES, Shape};

/// Draws from a seed (SplitMix64).
pub struct Draws(u64);

impl Draws {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

fn statement(draws: &mut Draws, shape: &Shape) -> String {
    let (table, columns) = draws.pick(shape.tables);
    let or = draws.pick(OR);
    let drawn = |draws: &mut Draws| -> String {
        let values: Vec<&str> = columns.iter().map(|(_, values)| *draws.pick(values)).collect();
        format!("({})", values.join(", "))
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let (column, values) = draws.pick(columns);
    let value = draws.pick(values);
    let (other, others) = draws.pick(columns);
    let compared = draws.pick(others);
    let condition = match draws.below(4) {
        0 => String::new(),
        1 => format!("WHERE {other} > {compared}"),
        _ => format!("WHERE {other} IS {compared}"),
    };
    match draws.below(12) {
        0..=3 => format!("INSERT {or} INTO {table} ({names}) VALUES {}", drawn(draws)),
        4 => {
            format!("INSERT {or} INTO {table} ({names}) VALUES {}, {}", drawn(draws), drawn(draws))
        }
        5 => format!("REPLACE INTO {table} ({names}) VALUES {}", drawn(draws)),
        6 => format!(
            "INSERT INTO {table} ({names}) VALUES {} ON CONFLICT DO UPDATE SET {column} = {value}",
            drawn(draws)
        ),
        7..=8 => format!("UPDATE {or} {table} SET {column} = {value} {condition}"),
        9 => format!("UPDATE {or} {table} SET {column} = {column} + 1 {condition}"),
        10 => {
            format!("UPDATE {or} {table} SET {column} = {value}, {other} = {compared} {condition}")
        }
        _ => format!("DELETE FROM {table} {condition}"),
    }
}

/// One transaction of the application; what a constraint refuses is refused.
fn transact(draws: &mut Draws, db: &Connection, shape: &Shape) -> String {
    let mut log = String::new();
    let mut run = |sql: String| {
        let done = db.execute_batch(&sql);
        let _ = writeln!(log, "{sql}; -- {done:?}");
    };
    if draws.below(3) == 0 {
        run(statement(draws, shape));
        return log;
    }
    run("BEGIN".into());
    for _ in 0..=draws.below(5) {
        if db.is_autocommit() {
            break;
        }
        if draws.below(4) == 0 {
            run("SAVEPOINT s".into());
            run(statement(draws, shape));
            if draws.below(2) == 0 && !db.is_autocommit() {
                run("ROLLBACK TO s".into());
            }
        } else {
            run(statement(draws, shape));
        }
    }
    if !db.is_autocommit() {
        run(if draws.below(5) == 0 { "ROLLBACK".into() } else { "COMMIT".into() });
        if !db.is_autocommit() {
            run("ROLLBACK".into());
        }
    }
    log
}

/// What was seen of a key: its version and what it loads as.
type Seen = BTreeMap<String, (u64, Loaded)>;

/// Every feed row with what it loads as.
async fn look(source: &SqliteSource) -> Seen {
    let changes = source.changes_after(0).await;
    let keys: Vec<Key> = changes.values().map(|change| change.key.clone()).collect();
    let loaded = source.load(&keys, usize::MAX).await.expect("loaded");
    assert_eq!(loaded.len(), keys.len());
    let seen: Seen = changes
        .into_iter()
        .zip(loaded)
        .map(|((key, change), loaded)| {
            assert!(!change.deleted || loaded == Loaded::Absent, "{key} is there and a tombstone");
            (key, (change.version.get(), loaded))
        })
        .collect();
    let mut versions: Vec<u64> = seen.values().map(|(version, _)| *version).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), seen.len(), "a number was given twice");
    seen
}

/// Rows of the table as the application sees them, without the source's help.
fn rows(db: &Connection) -> Vec<Vec<Value>> {
    let mut select = db.prepare("SELECT * FROM t").expect("prepared");
    let width = select.column_count();
    let mut rows = select.query([]).expect("queried");
    let mut all = Vec::new();
    while let Some(row) = rows.next().expect("a row") {
        let value = |place| match row.get_ref(place).expect("a value") {
            rusqlite::types::ValueRef::Null => Value::Null,
            rusqlite::types::ValueRef::Integer(i) => Value::Integer(i),
            rusqlite::types::ValueRef::Real(r) => Value::Real(r),
            rusqlite::types::ValueRef::Text(t) => {
                Value::Text(str::from_utf8(t).expect("utf-8").into())
            }
            rusqlite::types::ValueRef::Blob(b) => Value::Blob(b.into()),
        };
        all.push((0..width).map(value).collect());
    }
    all
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<String> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.iter().map(|row| format!("{row:?}")).collect()
}

async fn check(source: &SqliteSource, db: &Connection, before: &Seen, log: &str) -> Seen {
    let newest = before.values().map(|(version, _)| *version).max().unwrap_or(0);
    let after = look(source).await;
    for (key, (version, loaded)) in &after {
        match before.get(key) {
            Some((old, same)) if same == loaded => assert!(version >= old, "{key}\n{log}"),
            Some((old, _)) => assert!(version > old, "{key} changed unseen\n{log}"),
            None => assert!(*version > newest, "{key} appeared below\n{log}"),
        }
    }
    assert!(before.keys().all(|key| after.contains_key(key)), "a feed row went\n{log}");
    let live: Vec<Vec<Value>> = after
        .values()
        .filter_map(|(_, loaded)| match loaded {
            Loaded::Live(document) => Some(document.values().to_vec()),
            _ => None,
        })
        .collect();
    assert_eq!(sorted(live), sorted(rows(db)), "live keys are not the table's rows\n{log}");
    let (mut place, mut pages) = (None, 0);
    loop {
        let page = source.audit(place, 7).await.expect("a page");
        assert_eq!((page.missed, page.ghosts), (Vec::new(), Vec::new()), "{log}");
        place = page.next;
        pages += 1;
        if place.is_none() {
            break;
        }
        assert!(pages < 1_000);
    }
    after
}

async fn run(shape: &Shape, seed: u64, transactions: usize) {
    let mut draws = Draws::of(seed);
    let app = App::new(shape.schema);
    app.run(if draws.below(2) == 0 { "PRAGMA recursive_triggers = ON" } else { "SELECT 1" });
    for _ in 0..draws.below(8) {
        transact(&mut draws, &app.db, shape);
    }
    let key = shape.key.iter().map(|name| (*name).to_owned()).collect();
    let source = app.source(RelationSpec { key, normal_form: true, ..RelationSpec::of("t") }).await;
    let mut seen = check(&source, &app.db, &Seen::new(), "").await;
    for step in 0..transactions {
        let log = transact(&mut draws, &app.db, shape);
        let log = format!("{} seed {seed} step {step}\n{log}", shape.name);
        seen = check(&source, &app.db, &seen, &log).await;
        if draws.below(10) == 0 {
            source.prune_doubts().await;
            seen = check(&source, &app.db, &seen, &log).await;
        }
    }
}

trait Pruned {
    async fn prune_doubts(&self);
}

impl Pruned for SqliteSource {
    /// Nobody is registered: pruning only settles what a REPLACE left in doubt.
    async fn prune_doubts(&self) {
        while truekeep_core::ports::Feed::prune(self).await.expect("pruned") > 0 {}
    }
}

/// X8, X23 and the bullets on changes: the feed tells the truth after any transaction.
#[tokio::test]
async fn the_feed_tells_the_truth_after_any_transaction() {
    for shape in SHAPES {
        for seed in 0..4 {
            run(shape, seed, 40).await;
        }
    }
}

/// X15, X41, X70: a document changes with its related rows, and never without a newer number.
#[tokio::test]
async fn documents_change_with_their_related_rows() {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let child = |table: &str| Watch::Child { table: table.into(), key: names(&["t"]) };
    let parent = |table: &str, via: &str| Watch::Parent {
        table: table.into(),
        via: names(&[via]),
        key: Vec::new(),
    };
    for seed in 0..12 {
        let mut draws = Draws::of(seed);
        let app = App::new(RELATED.schema);
        app.run(if draws.below(2) == 0 { "PRAGMA recursive_triggers = ON" } else { "SELECT 1" });
        let spec = RelationSpec {
            document: Projection::Sql { query: RELATED_DOCUMENT.into(), json: Vec::new() },
            watch: vec![
                child("variant"),
                child("tag"),
                parent("author", "author"),
                parent("t", "up"),
            ],
            ..RelationSpec::of("t")
        };
        let source = app.source(spec).await;
        let mut seen = look(&source).await;
        for step in 0..60 {
            let log = transact(&mut draws, &app.db, &RELATED);
            let page = source.page(0, 1_000).await;
            assert_eq!(page.moment, Some(page.view.newest));
            let after = look(&source).await;
            for (key, (version, loaded)) in &after {
                let same = seen.get(key).is_some_and(|(old, same)| same == loaded || version > old);
                assert!(same || !seen.contains_key(key), "{key} seed {seed} step {step}\n{log}");
            }
            seen = after;
        }
    }
}
