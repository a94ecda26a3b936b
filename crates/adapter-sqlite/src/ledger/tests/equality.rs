//! Any sequence of calls gets the same answers from the ledger in SQLite as from the reference.

use truekeep_adapter_memory::{ManualClock, MemoryLedger};
use truekeep_conformance::ledger::equality::{Counts, equal_answers};
use truekeep_core::LedgerId;

use super::*;

const SEQUENCES: u64 = 220;

/// The reference, at the time at which the subject begins.
#[derive(Debug)]
struct Reference {
    ledger: MemoryLedger,
    clock: ManualClock,
}

impl LedgerUnderTest for Reference {
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
        self.clock.set(Timestamp::from_ms(self.clock.now().ms() - ms(by)));
    }
}

/// Answers do not depend on what a power cut would leave, and waiting for the disk takes most of the
/// time.
async fn forgo_durability(subject: &Subject) {
    let changed = subject.ledger.writer.call("forgo durability", |connection| {
        Ok(connection.pragma_update(None, "synchronous", "OFF")?)
    });
    changed.await.expect("changed");
}

#[tokio::test]
async fn random_calls_get_the_answers_of_the_reference() {
    let mut counts = Counts::default();
    for seed in 0..SEQUENCES {
        let subject = Subject::new().await;
        forgo_durability(&subject).await;
        let clock = ManualClock::at(Timestamp::from_ms(subject.clock.load(Ordering::SeqCst)));
        let id = LedgerId::parse("reference").expect("a token");
        let reference = Reference { ledger: MemoryLedger::new(id, clock.reader()), clock };
        equal_answers(seed, &subject, &reference, str::to_owned, &mut counts).await;
    }
    let Counts { landed, claimed, wished, decided } = counts;
    assert!(landed > 1_000 && claimed > 100 && wished > 100 && decided > 50, "{counts:?}");
}
