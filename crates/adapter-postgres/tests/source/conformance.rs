//! The rules of every source, over Postgres: a plain table, a partitioned one, one that is written by
//! rows.

use async_trait::async_trait;
use truekeep_adapter_postgres::{PostgresSource, Projection, RelationSpec};
use truekeep_conformance::source::SourceUnderTest;
use truekeep_core::ports::{Capture, Feed, Records};

use crate::fixture::App;

#[derive(Debug)]
struct UnderTest {
    app: tokio::sync::Mutex<App>,
    source: PostgresSource,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("App")
    }
}

const PLAIN: &str = "CREATE TABLE t (id text PRIMARY KEY, text text)";

const PARTITIONED: &str = "CREATE TABLE t (id text PRIMARY KEY, text text) PARTITION BY HASH (id);
    CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)";

/// A partition that is followed by itself: its rows come through its parent.
const LEAF: &str = "CREATE TABLE whole (id text PRIMARY KEY, text text) PARTITION BY LIST (id);
    CREATE TABLE t PARTITION OF whole DEFAULT";

async fn fresh(schema: &str) -> Option<UnderTest> {
    let app = App::new(schema).await?;
    let document = Projection::Columns(vec!["text".into()]);
    let source = app.open(RelationSpec { document, ..RelationSpec::of("t") }).await;
    Some(UnderTest { app: tokio::sync::Mutex::new(app), source: source.expect("opened") })
}

impl UnderTest {
    async fn write(&self, sql: &'static str, values: &[&str]) {
        let mut app = self.app.lock().await;
        let query =
            values.iter().fold(sqlx::query(sql), |query, value| query.bind((*value).to_owned()));
        query.execute(&mut app.db).await.expect("written");
    }
}

const PUT: &str =
    "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET text = excluded.text";

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
        self.write(PUT, &[key, text]).await;
    }

    async fn delete(&self, key: &str) {
        self.write("DELETE FROM t WHERE id = $1", &[key]).await;
    }

    async fn put_and_roll_back(&self, key: &str, text: &str) {
        self.app.lock().await.run("BEGIN").await;
        self.write(PUT, &[key, text]).await;
        self.app.lock().await.run("ROLLBACK").await;
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

macro_rules! over {
    ($($name:ident: $schema:ident;)*) => {$(
        mod $name {
            truekeep_conformance::source_rules!({
                let Some(source) = super::fresh(super::$schema).await else { return };
                source
            });
        }
    )*};
}

over! {
    plain: PLAIN;
    partitioned: PARTITIONED;
    leaf: LEAF;
}
