//! The ledger in a SQLite file keeps the rules of every ledger.

mod equality;
mod processes;
mod schema;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use truekeep_conformance::ledger::LedgerUnderTest;
use truekeep_core::ports::{Archive, Items, Leases, Ledger, Operations};

use super::*;

const BUSY: Duration = Duration::from_secs(30);

/// A ledger in a file of its own whose clock stands until it is moved.
#[derive(Debug)]
struct Subject {
    ledger: SqliteLedger,
    clock: Arc<AtomicI64>,
    /// Removes the file at the end.
    _folder: TempDir,
}

impl Subject {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(AtomicI64::new(1_000_000));
        let path = folder.path().join("ledger.db");
        let manual = Clock::Manual(Arc::clone(&clock));
        let ledger = SqliteLedger::open_with(&path, BUSY, SQLITE, manual).await.expect("opened");
        Self { ledger, clock, _folder: folder }
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

truekeep_conformance::ledger_rules!(Subject::new().await);

/// A ledger whose file was removed under us is no ledger any more: nobody else sees it.
#[tokio::test]
async fn a_file_that_was_removed_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path, Duration::from_secs(1)).await.expect("opened");
    ledger.now().await.expect("it is there");
    std::fs::remove_file(&path).expect("removed");
    let error = ledger.now().await.expect_err("it is gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::LEDGER_UNAVAILABLE));
    let holder = truekeep_core::HolderId::parse("holder").expect("valid");
    let error = ledger.renew(&holder, &[], Duration::from_secs(1)).await.expect_err("it is gone");
    assert_eq!(error.class, FailureClass::Halted);
}
