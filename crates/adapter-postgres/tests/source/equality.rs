//! Random operations of applications, consumers and operators, answered as memory answers them.

use async_trait::async_trait;
use truekeep_adapter_postgres::{PostgresSource, Projection, RelationSpec, Watch};
use truekeep_conformance::source::{
    RelatedSource, SourceUnderTest, random_operations_are_answered_as_the_model_does,
};
use truekeep_core::ports::{Capture, Feed, Records};

use crate::fixture::App;

struct UnderTest {
    app: tokio::sync::Mutex<App>,
    source: PostgresSource,
}

impl std::fmt::Debug for UnderTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

const PLAIN: &str = "CREATE TABLE t (id text PRIMARY KEY, text text);";

const PARTITIONED: &str = "CREATE TABLE t (id text PRIMARY KEY, text text) PARTITION BY HASH (id);
    CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);";

/// A partition that is followed by itself: its rows come through its parent.
const LEAF: &str = "CREATE TABLE whole (id text PRIMARY KEY, text text) PARTITION BY LIST (id);
    CREATE TABLE t PARTITION OF whole DEFAULT;";

const RELATED: &str = "CREATE TABLE more (t text PRIMARY KEY, text text);";

const DOCUMENT: &str = "SELECT coalesce((SELECT m.text FROM more AS m WHERE m.t = :id), t.text) AS text FROM t WHERE t.id = :id";

const PUT: &str =
    "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET text = excluded.text";

async fn fresh(schema: &str) -> Option<UnderTest> {
    let app = App::new(&format!("{schema}{RELATED}")).await?;
    let spec = RelationSpec {
        document: Projection::Sql { query: DOCUMENT.into(), json: Vec::new() },
        watch: vec![Watch::Child { table: "more".into(), key: vec!["t".into()] }],
        ..RelationSpec::of("t")
    };
    let source = app.open(spec).await.expect("opened");
    Some(UnderTest { app: tokio::sync::Mutex::new(app), source })
}

impl UnderTest {
    /// A transaction of the application's.
    async fn write(&self, statements: &[(&'static str, &[&str])], end: &str) {
        let mut app = self.app.lock().await;
        app.run("BEGIN").await;
        for (sql, values) in statements {
            let bound = |query: sqlx::query::Query<'static, _, _>, value: &&str| {
                query.bind((*value).to_owned())
            };
            let query = values.iter().fold(sqlx::query(*sql), bound);
            query.execute(&mut app.db).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        app.run(end).await;
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
        let alone = "DELETE FROM more WHERE t = $1";
        self.write(&[(PUT, &[key, text]), (alone, &[key])], "COMMIT").await;
    }

    async fn delete(&self, key: &str) {
        let (own, related) = ("DELETE FROM t WHERE id = $1", "DELETE FROM more WHERE t = $1");
        self.write(&[(own, &[key]), (related, &[key])], "COMMIT").await;
    }

    async fn put_and_roll_back(&self, key: &str, text: &str) {
        self.write(&[(PUT, &[key, text])], "ROLLBACK").await;
    }

    async fn break_capture(&self) {
        self.app.lock().await.run(
            "DO $$ DECLARE own record; BEGIN
               FOR own IN SELECT tgrelid::regclass AS t FROM pg_trigger WHERE tgname LIKE 'truekeep%' GROUP BY 1 LOOP
                 EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', own.t);
               END LOOP; END $$",
        ).await;
    }
}

#[async_trait]
impl RelatedSource for UnderTest {
    async fn rename(&self, from: &str, to: &str, text: &str) {
        let own = "UPDATE t SET id = $2, text = $3 WHERE id = $1";
        let related = "DELETE FROM more WHERE t IN ($1, $2)";
        self.write(&[(own, &[from, to, text]), (related, &[from, to])], "COMMIT").await;
    }

    async fn relate(&self, key: &str, text: &str) {
        let related =
            "INSERT INTO more VALUES ($1, $2) ON CONFLICT (t) DO UPDATE SET text = excluded.text";
        self.write(&[(related, &[key, text])], "COMMIT").await;
    }
}

/// Memory, SQLite and Postgres answer alike: each as the model does.
#[tokio::test]
async fn random_operations_have_the_same_answers() {
    for (schema, seeds) in [(PLAIN, 0..8), (PARTITIONED, 8..12), (LEAF, 12..16)] {
        for seed in seeds {
            let Some(source) = fresh(schema).await else { return };
            random_operations_are_answered_as_the_model_does(&source, seed, 100).await;
        }
    }
}
