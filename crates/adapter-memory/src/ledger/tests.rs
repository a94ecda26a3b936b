//! The ledger in memory keeps the rules of every ledger.

use truekeep_conformance::ledger::LedgerUnderTest;
use truekeep_core::ports::{Archive, Items, Leases, Operations};

use super::*;

#[derive(Debug)]
struct Subject {
    ledger: MemoryLedger,
    clock: ManualClock,
}

impl Subject {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let id = LedgerId::parse("memory").expect("a token");
        Self { ledger: MemoryLedger::new(id, clock.reader()), clock }
    }
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
        self.clock.advance(by);
    }

    fn turn_back(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).expect("a short time");
        self.clock.set(Timestamp::from_ms(self.clock.now().ms() - by));
    }
}

truekeep_conformance::ledger_rules!(Subject::new());
