//! The ledger in Postgres keeps the rules of every ledger.

mod equality;
mod processes;
mod schema;
mod trouble;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use truekeep_conformance::ledger::LedgerUnderTest;
use truekeep_core::ports::{Archive, Items, Leases, Ledger, Operations};
use truekeep_postgres_server::TestDatabase;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// A ledger in a database of its own whose clock stands until it is moved.
#[derive(Debug)]
struct Subject {
    ledger: PostgresLedger,
    clock: Arc<AtomicI64>,
    test: TestDatabase,
}

impl Subject {
    /// None without a server.
    async fn new() -> Option<Self> {
        Some(Self::of(truekeep_postgres_server::database().await?).await)
    }

    async fn of(test: TestDatabase) -> Self {
        let clock = Arc::new(AtomicI64::new(1_000_000));
        let manual = Clock::Manual(Arc::clone(&clock));
        let database = connect(&test.address, PATIENCE).await.expect("connected");
        let ledger = PostgresLedger::open_with(database, POSTGRES, manual).await.expect("opened");
        Self { ledger, clock, test }
    }
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).expect("a short time")
}

impl LedgerUnderTest for Subject {
    fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::new(self.ledger.clone())
    }

    fn leases(&self) -> Arc<dyn Leases> {
        Arc::new(self.ledger.clone())
    }

    fn items(&self) -> Arc<dyn Items> {
        Arc::new(self.ledger.clone())
    }

    fn archive(&self) -> Arc<dyn Archive> {
        Arc::new(self.ledger.clone())
    }

    fn operations(&self) -> Arc<dyn Operations> {
        Arc::new(self.ledger.clone())
    }

    fn advance(&self, by: Duration) {
        self.clock.fetch_add(ms(by), Ordering::SeqCst);
    }

    fn turn_back(&self, by: Duration) {
        self.clock.fetch_sub(ms(by), Ordering::SeqCst);
    }
}

truekeep_conformance::ledger_rules!({
    let Some(subject) = Subject::new().await else { return };
    subject
});
