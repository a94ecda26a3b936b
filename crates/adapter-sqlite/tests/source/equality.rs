//! Random operations of applications, consumers and operators, answered as memory answers them.

use async_trait::async_trait;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteSource, Watch};
use truekeep_conformance::source::{
    RelatedSource, SourceUnderTest, random_operations_are_answered_as_the_model_does,
};
use truekeep_core::ports::{Capture, Feed, Records};

use crate::fixture::App;

#[derive(Debug)]
struct UnderTest {
    app: tokio::sync::Mutex<App>,
    source: SqliteSource,
}

const SCHEMA: &str = "CREATE TABLE t (id TEXT PRIMARY KEY, text TEXT) STRICT;
    CREATE TABLE more (t TEXT PRIMARY KEY, text TEXT) STRICT";

const DOCUMENT: &str = "SELECT coalesce((SELECT m.text FROM more AS m WHERE m.t = :id), t.text) AS text FROM t WHERE t.id = :id";

const PUT: &str =
    "INSERT INTO t VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET text = excluded.text";

async fn fresh() -> UnderTest {
    let app = App::new(SCHEMA);
    let spec = RelationSpec {
        document: Projection::Sql { query: DOCUMENT.into(), json: Vec::new() },
        watch: vec![Watch::Child { table: "more".into(), key: vec!["t".into()] }],
        ..RelationSpec::of("t")
    };
    let source = app.open(spec).await.expect("opened");
    UnderTest { app: tokio::sync::Mutex::new(app), source }
}

impl UnderTest {
    /// A transaction of the application's.
    async fn write(&self, statements: &[(&str, &[&str])], end: &str) {
        let app = self.app.lock().await;
        app.run("BEGIN");
        for (sql, values) in statements {
            let values = rusqlite::params_from_iter(*values);
            app.db.execute(sql, values).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        app.run(end);
    }
}

#[async_trait]
impl SourceUnderTest for UnderTest {
    fn feed(&self) -> &dyn Feed {
        &self.source
    }

    fn records(&self) -> &dyn Records {
        &self.source
    }

    fn capture(&self) -> &dyn Capture {
        &self.source
    }

    async fn put(&self, key: &str, text: &str) {
        let alone = "DELETE FROM more WHERE t = ?1";
        self.write(&[(PUT, &[key, text]), (alone, &[key])], "COMMIT").await;
    }

    async fn delete(&self, key: &str) {
        let (own, related) = ("DELETE FROM t WHERE id = ?1", "DELETE FROM more WHERE t = ?1");
        self.write(&[(own, &[key]), (related, &[key])], "COMMIT").await;
    }

    async fn put_and_roll_back(&self, key: &str, text: &str) {
        self.write(&[(PUT, &[key, text])], "ROLLBACK").await;
    }

    async fn break_capture(&self) {
        let app = self.app.lock().await;
        for (table, first) in [("t", "id"), ("more", "t")] {
            app.run(&format!(
                "BEGIN; CREATE TABLE made_anew ({first} TEXT PRIMARY KEY, text TEXT) STRICT;
                 INSERT INTO made_anew SELECT * FROM {table}; DROP TABLE {table};
                 ALTER TABLE made_anew RENAME TO {table}; COMMIT"
            ));
        }
    }
}

#[async_trait]
impl RelatedSource for UnderTest {
    async fn rename(&self, from: &str, to: &str, text: &str) {
        let own = "UPDATE t SET id = ?2, text = ?3 WHERE id = ?1";
        let related = "DELETE FROM more WHERE t IN (?1, ?2)";
        self.write(&[(own, &[from, to, text]), (related, &[from, to])], "COMMIT").await;
    }

    async fn relate(&self, key: &str, text: &str) {
        let related =
            "INSERT INTO more VALUES (?1, ?2) ON CONFLICT (t) DO UPDATE SET text = excluded.text";
        self.write(&[(related, &[key, text])], "COMMIT").await;
    }
}

/// Memory, SQLite and Postgres answer alike: each as the model does.
#[tokio::test]
async fn random_operations_have_the_same_answers() {
    for seed in 0..30 {
        random_operations_are_answered_as_the_model_does(&fresh().await, seed, 120).await;
    }
}
