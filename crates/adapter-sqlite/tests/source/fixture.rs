//! A database file with an application's connection, and sources over it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use truekeep_adapter_sqlite::{RelationSpec, SqliteSource};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Change, ChangePage, Consumer, Feed, Loaded, Records};
use truekeep_core::{Document, Incarnation, Key, LedgerId, Place, Value, Version};

/// How long a test waits for a lock: none is held for long.
pub const BUSY: Duration = Duration::from_secs(5);

/// A file and the application that writes it.
#[derive(Debug)]
pub struct App {
    dir: tempfile::TempDir,
    pub db: Connection,
}

impl App {
    /// A database in WAL mode with this schema.
    pub fn new(schema: &str) -> Self {
        Self::in_mode("wal", schema)
    }

    /// A database in some journal mode.
    pub fn in_mode(mode: &str, schema: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let db = Connection::open(dir.path().join("app.db")).expect("opened");
        db.busy_timeout(BUSY).expect("set");
        db.pragma_update(None, "journal_mode", mode).expect("set");
        // Durability is not what these tests are about; see the tests of syncing.
        db.pragma_update(None, "synchronous", "OFF").expect("set");
        db.execute_batch(schema).expect("a schema");
        Self { dir, db }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("app.db")
    }

    /// Runs statements as the application.
    pub fn run(&self, sql: &str) {
        self.db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Another connection of the application.
    pub fn connect(&self) -> Connection {
        let db = Connection::open(self.path()).expect("opened");
        db.busy_timeout(BUSY).expect("set");
        db
    }

    pub async fn open(&self, spec: RelationSpec) -> Result<SqliteSource, PortError> {
        SqliteSource::open(self.path(), spec, BUSY).await
    }

    /// A source over a table, captured and filled.
    pub async fn source(&self, spec: RelationSpec) -> SqliteSource {
        let source = self.open(spec).await.expect("opened");
        source.capture().await;
        source
    }

    /// A source over all of the table `t`, captured and filled.
    pub async fn t(&self) -> SqliteSource {
        self.source(RelationSpec::of("t")).await
    }
}

pub fn consumer() -> Consumer {
    Consumer {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
    }
}

pub fn key(text: &str) -> Key {
    Key::new(text)
}

/// What tests ask of a source.
pub trait Asked {
    async fn capture(&self);
    async fn page(&self, after: u64, limit: u32) -> ChangePage;
    async fn newest(&self) -> u64;
    /// Every change after a version, by key.
    async fn changes_after(&self, after: u64) -> BTreeMap<String, Change>;
    /// The texts of the keys that changed after a version.
    async fn changed(&self, after: u64) -> Vec<String>;
    async fn one(&self, key: &str) -> Loaded;
    async fn document(&self, key: &str) -> Document;
    async fn listed(&self) -> Vec<String>;
}

impl Asked for SqliteSource {
    async fn capture(&self) {
        self.install().await.expect("installed");
        while !self.fill().await.expect("filled").done {}
    }

    async fn page(&self, after: u64, limit: u32) -> ChangePage {
        self.changes(&consumer(), &Place::at(Version::new(after)), limit).await.expect("a page")
    }

    async fn newest(&self) -> u64 {
        self.page(0, 1).await.view.newest.newest().get()
    }

    async fn changes_after(&self, after: u64) -> BTreeMap<String, Change> {
        let page = self.page(after, 1_000_000).await;
        assert!(page.end);
        let by_key = |change: Change| (change.key.to_string(), change);
        page.changes.into_iter().map(by_key).collect()
    }

    async fn changed(&self, after: u64) -> Vec<String> {
        self.changes_after(after).await.into_keys().collect()
    }

    async fn one(&self, text: &str) -> Loaded {
        let loaded = self.load(&[key(text)], usize::MAX).await.expect("loaded");
        loaded.into_iter().next().expect("one answer")
    }

    async fn document(&self, text: &str) -> Document {
        match self.one(text).await {
            Loaded::Live(document) => document,
            other => panic!("{text}: {other:?}"),
        }
    }

    async fn listed(&self) -> Vec<String> {
        let page = self.keys(None, 1_000_000).await.expect("a page");
        assert_eq!(page.next, None);
        page.keys.into_iter().map(|(key, _)| key.to_string()).collect()
    }
}

/// The value of one name.
pub fn value(document: &Document, name: &str) -> Value {
    let found = document.fields().find(|(field, _)| *field == name);
    found.unwrap_or_else(|| panic!("no {name} in {document:?}")).1.clone()
}

pub fn text(text: &str) -> Value {
    Value::Text(text.into())
}
