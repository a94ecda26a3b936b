//! An application's database, and the source beside it.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, Row};
use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Change, ChangePage, Consumer, Feed, Loaded, Records};
use truekeep_core::{Incarnation, Key, LedgerId, Place};
use truekeep_postgres_server::TestDatabase;

/// How long a source waits for a connection.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An application with a database of its own.
pub struct App {
    pub db: PgConnection,
    pub test: TestDatabase,
}

impl App {
    /// A database with this in it; none without a server.
    pub async fn new(schema: &str) -> Option<Self> {
        let test = truekeep_postgres_server::database().await?;
        let mut app = Self { db: test.connect().await, test };
        app.run(schema).await;
        Some(app)
    }

    /// The same on a server of one's own.
    pub async fn on(server: &truekeep_postgres_server::Server, schema: &str) -> Self {
        let test = server.database().await;
        let mut app = Self { db: test.connect().await, test };
        app.run(schema).await;
        app
    }

    pub async fn run(&mut self, sql: &str) {
        run(&mut self.db, sql).await;
    }

    /// Runs what may be refused; says whether it was not.
    pub async fn run_if_possible(&mut self, sql: &str) -> bool {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.db).await.is_ok()
    }

    /// The one value of a query, as text.
    pub async fn text(&mut self, sql: &str) -> String {
        text(&mut self.db, sql).await
    }

    /// Asks until the answer is yes.
    pub async fn until(&mut self, sql: &str) {
        let began = std::time::Instant::now();
        while self.text(sql).await != "true" {
            assert!(began.elapsed() < Duration::from_secs(60), "it never came: {sql}");
        }
    }

    /// Another connection.
    pub async fn other(&self) -> PgConnection {
        self.test.connect().await
    }

    pub async fn open(&self, spec: RelationSpec) -> Result<PostgresSource, PortError> {
        PostgresSource::open(&self.test.address, spec, PATIENCE).await
    }

    /// A source whose capture is complete.
    pub async fn source(&self, spec: RelationSpec) -> PostgresSource {
        let source = self.open(spec).await.expect("opened");
        source.captured().await;
        source
    }
}

pub async fn connect(address: &str) -> PgConnection {
    <PgConnection as sqlx::Connection>::connect(address).await.expect("a connection")
}

pub async fn run(db: &mut PgConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(db).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub async fn text(db: &mut PgConnection, sql: &str) -> String {
    let sql = format!("SELECT ({sql})::text");
    let row = sqlx::raw_sql(AssertSqlSafe(sql.clone())).fetch_one(db).await;
    let row = row.unwrap_or_else(|error| panic!("{sql}: {error}"));
    row.get::<Option<String>, _>(0).unwrap_or_else(|| "NULL".into())
}

pub fn consumer(name: &str) -> Consumer {
    Consumer {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse(name).expect("a token"),
    }
}

/// What tests ask a source.
pub trait Asked {
    async fn captured(&self);
    async fn page(&self, after: &Place, limit: u32) -> ChangePage;
    async fn everything(&self, after: &Place) -> BTreeMap<String, Change>;
    async fn one(&self, key: &str) -> Loaded;
    async fn listed(&self) -> Vec<String>;
    async fn audited(&self) -> (Vec<String>, Vec<String>);
}

impl Asked for PostgresSource {
    async fn captured(&self) {
        self.install().await.expect("installed");
        for _ in 0..1_000 {
            if self.fill().await.expect("filled").done {
                return;
            }
        }
        panic!("the fill does not end");
    }

    async fn page(&self, after: &Place, limit: u32) -> ChangePage {
        self.changes(&consumer("a"), after, limit).await.expect("a page")
    }

    async fn everything(&self, after: &Place) -> BTreeMap<String, Change> {
        let (mut all, mut after) = (BTreeMap::new(), after.clone());
        loop {
            let page = self.page(&after, 100).await;
            after = page.next;
            all.extend(page.changes.into_iter().map(|change| (change.key.to_string(), change)));
            if page.end {
                return all;
            }
        }
    }

    async fn one(&self, key: &str) -> Loaded {
        let mut loaded = self.load(&[Key::new(key)], usize::MAX).await.expect("loaded");
        assert_eq!(loaded.len(), 1);
        loaded.remove(0)
    }

    async fn listed(&self) -> Vec<String> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.keys(after, 50).await.expect("a page");
            all.extend(page.keys.into_iter().map(|(key, _)| key.to_string()));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    async fn audited(&self) -> (Vec<String>, Vec<String>) {
        let (mut missed, mut ghosts, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.audit(after, 50).await.expect("a page");
            missed.extend(page.missed.iter().map(Key::to_string));
            ghosts.extend(page.ghosts.iter().map(Key::to_string));
            after = page.next;
            if after.is_none() {
                return (missed, ghosts);
            }
        }
    }
}
