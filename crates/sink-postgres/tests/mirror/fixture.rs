//! A database of a test's own with a mirror in it, and batches for it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Applied, Batch, Body, Delivery, Mark, Outcome, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_postgres_server::TestDatabase;
use truekeep_sink_postgres::{ColumnType, Layout, MirrorColumn, MirrorSpec, PostgresSink};

/// Long enough for any statement of a test that is not about that.
pub const LONG: Duration = Duration::from_secs(60);

/// How the text of a database is ordered.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// By bytes.
    Bytes,
    /// As English speakers order it.
    English,
}

/// A database, and the server that is its own.
#[derive(Debug)]
pub struct Home {
    pub database: TestDatabase,
    pub address: String,
}

impl Home {
    pub async fn new() -> Option<Self> {
        Self::ordered(Order::Bytes).await
    }

    pub async fn ordered(order: Order) -> Option<Self> {
        let server = truekeep_postgres_server::server()?;
        let database = match order {
            Order::Bytes => server.database().await,
            Order::English => server.english_database().await,
        };
        Some(Self { address: database.address.clone(), database })
    }

    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.address).await.expect("a connection")
    }

    pub async fn sql(&self, sql: &str) {
        let mut connection = self.connect().await;
        let run = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        run.execute(&mut connection).await.expect("done");
    }

    /// The first column of each row, as text.
    pub async fn texts(&self, sql: &str) -> Vec<Option<String>> {
        let mut connection = self.connect().await;
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
        rows.expect("read").iter().map(|row| row.get(0)).collect()
    }

    /// The mirror, prepared.
    pub async fn mirror(&self, spec: MirrorSpec) -> PostgresSink {
        let sink = self.opened(spec).await;
        sink.prepare().await.expect("prepared");
        sink
    }

    pub async fn opened(&self, spec: MirrorSpec) -> PostgresSink {
        PostgresSink::open(&self.address, spec, LONG, LONG).await.expect("opened")
    }
}

pub fn json(table: &str) -> MirrorSpec {
    MirrorSpec {
        schema: "public".into(),
        table: table.into(),
        layout: Layout::Json { column: "document".into() },
    }
}

/// Columns with the types that Postgres declares so.
pub fn mapped(columns: &[(&str, &str)]) -> MirrorSpec {
    let column = |(name, declared): &(&str, &str)| MirrorColumn {
        name: (*name).into(),
        kind: ColumnType::of_postgres(declared),
    };
    MirrorSpec {
        schema: "public".into(),
        table: "mirror".into(),
        layout: Layout::Columns(columns.iter().map(column).collect()),
    }
}

pub fn mark(fence: u64, number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(fence),
        number: MarkNumber::new(number),
        removed: false,
    }
}

pub fn batch(number: u64, deliveries: Vec<Delivery>) -> Batch {
    Batch { mark: mark(1, number), follows: BatchName::default(), deliveries }
}

pub fn rank(version: u64) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version) }
}

pub fn upsert(key: &str, version: u64, fields: &[(&str, Value)]) -> Delivery {
    let (names, values): (Vec<Box<str>>, Vec<Value>) =
        fields.iter().map(|(name, value)| (Box::from(*name), value.clone())).unzip();
    let document = Document::new(names.into(), values);
    Delivery { key: Key::new(key), rank: rank(version), body: Body::Upsert(Arc::new(document)) }
}

pub fn delete(key: &str, version: u64) -> Delivery {
    Delivery { key: Key::new(key), rank: rank(version), body: Body::Delete }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// One value, the text `body`.
pub fn body(key: &str, version: u64, body: &str) -> Delivery {
    upsert(key, version, &[("body", text(body))])
}

pub async fn sent(
    sink: &PostgresSink,
    number: u64,
    deliveries: Vec<Delivery>,
) -> Result<Vec<Outcome>, PortError> {
    sink.apply(batch(number, deliveries)).await.map(|Applied { outcomes, .. }| outcomes)
}
