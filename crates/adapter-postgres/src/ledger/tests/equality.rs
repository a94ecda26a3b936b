//! Any sequence of calls gets the same answers from the ledger in Postgres as from the reference.

use truekeep_adapter_memory::{ManualClock, MemoryLedger};
use truekeep_conformance::ledger::equality::{Counts, equal_answers};
use truekeep_core::LedgerId;

use super::*;

const SEQUENCES: u64 = 60;

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

#[tokio::test]
async fn random_calls_get_the_answers_of_the_reference() {
    // What is answered depends on no disk.
    let Some(server) = truekeep_postgres_server::private(&[("fsync", "off")]) else { return };
    let mut counts = Counts::default();
    for seed in 0..SEQUENCES {
        let subject = Subject::of(server.database().await).await;
        let clock = ManualClock::at(Timestamp::from_ms(subject.clock.load(Ordering::SeqCst)));
        let id = LedgerId::parse("reference").expect("a token");
        let reference = Reference { ledger: MemoryLedger::new(id, clock.reader()), clock };
        // Text in Postgres has no NUL: where it is for people, a sign stands for it.
        let alike = |answer: &str| answer.replace("\\0", "\u{2400}");
        equal_answers(seed, &subject, &reference, alike, &mut counts).await;
    }
    let Counts { landed, claimed, wished, decided } = counts;
    assert!(landed > 300 && claimed > 30 && wished > 30 && decided > 15, "{counts:?}");
}
