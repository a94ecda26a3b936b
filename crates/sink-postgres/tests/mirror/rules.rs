//! The mirror obeys the rules of every sink: in both of its layouts, and whatever order the
//! database's texts have.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Row;
use truekeep_conformance::sink::SinkUnderTest;
use truekeep_core::Key;
use truekeep_core::ports::Sink;
use truekeep_sink_postgres::{Layout, MirrorSpec, PostgresSink};

use crate::fixture::{Home, Order, json, mapped};

#[derive(Debug)]
struct Subject {
    home: Home,
    spec: MirrorSpec,
    sink: Arc<PostgresSink>,
}

impl Subject {
    async fn open(spec: MirrorSpec, order: Order) -> Option<Self> {
        let home = Home::ordered(order).await?;
        let sink = Arc::new(home.mirror(spec.clone()).await);
        Some(Self { home, spec, sink })
    }

    fn is_json(&self) -> bool {
        matches!(self.spec.layout, Layout::Json { .. })
    }

    /// The text of a record's `body`, as SQL.
    fn body(&self) -> &'static str {
        if self.is_json() { "document ->> 'body'" } else { "body" }
    }
}

/// What the mirror writes for keys that hold what Postgres cannot.
fn unescaped(held: &str) -> String {
    held.replace("\u{1}\u{1}", "\0").replace("\u{1}\u{2}", "\u{1}")
}

#[async_trait]
impl SinkUnderTest for Subject {
    fn sink(&self) -> Arc<dyn Sink> {
        Arc::clone(&self.sink) as Arc<dyn Sink>
    }

    async fn reopen(&mut self) {
        self.sink = Arc::new(self.home.mirror(self.spec.clone()).await);
    }

    async fn contents(&self) -> BTreeMap<Key, String> {
        let mut connection = self.home.connect().await;
        let sql = format!("SELECT _key, {} FROM mirror", self.body());
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&mut connection).await;
        let rows = rows.expect("read");
        rows.iter()
            .map(|row| (Key::new(unescaped(row.get::<&str, _>(0))), row.get::<String, _>(1)))
            .collect()
    }

    async fn poison(&self) -> Option<String> {
        let body = if self.is_json() { "NEW.document ->> 'body'" } else { "NEW.body" };
        let sql = format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               IF {body} = 'poison' THEN RAISE EXCEPTION 'not here'; END IF; RETURN NEW; END $$;
             CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON mirror
               FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        self.home.sql(&sql).await;
        Some("poison".to_owned())
    }

    async fn plant(&self, key: &Key, body: &str) -> bool {
        let mut connection = self.home.connect().await;
        let sql = match self.is_json() {
            true => "INSERT INTO mirror VALUES ($1, 7, -1, json_build_object('body', $2))",
            false => "INSERT INTO mirror VALUES ($1, 7, -1, $2)",
        };
        let planted = sqlx::query(sql).bind(key.as_str()).bind(body).execute(&mut connection).await;
        planted.expect("planted");
        true
    }

    async fn alter(&self, key: &Key, body: &str) -> bool {
        let mut connection = self.home.connect().await;
        let sql = match self.is_json() {
            true => "UPDATE mirror SET document = json_build_object('body', $2) WHERE _key = $1",
            false => "UPDATE mirror SET body = $2 WHERE _key = $1",
        };
        let altered = sqlx::query(sql).bind(key.as_str()).bind(body).execute(&mut connection).await;
        altered.expect("altered").rows_affected() == 1
    }

    async fn empty(&self) -> bool {
        self.home.sql("TRUNCATE mirror").await;
        true
    }
}

macro_rules! over {
    ($($name:ident: $spec:expr, $order:expr;)*) => {$(
        mod $name {
            use super::*;

            truekeep_conformance::sink_rules!({
                let Some(subject) = Subject::open($spec, $order).await else { return };
                subject
            });
        }
    )*};
}

over! {
    json_column: json("mirror"), Order::Bytes;
    columns: mapped(&[("body", "text")]), Order::Bytes;
    json_column_in_english: json("mirror"), Order::English;
    columns_in_english: mapped(&[("body", "text")]), Order::English;
}
