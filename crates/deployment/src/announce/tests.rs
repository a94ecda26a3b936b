//! Rules come into force by an operator or by the first start, and by nothing else.

use truekeep_adapter_memory::{ManualClock, MemoryLedger};
use truekeep_core::ports::PipelineState;
use truekeep_core::{Fingerprint, Revision, Timestamp};

use super::*;
use crate::entropy::{RandomEntropy, ledger_id};

const NOTHING: Remains = Remains { rules: RulesNumber::new(0), anew: false };

fn rules(text: &str) -> Rules {
    Rules {
        text: format!("{{\"table\":\"{text}\"}}"),
        fingerprint: Fingerprint::parse(text).expect("valid"),
    }
}

fn ledger() -> MemoryLedger {
    MemoryLedger::new(ledger_id(), ManualClock::at(Timestamp::from_ms(0)).reader())
}

fn name() -> PipelineName {
    PipelineName::parse("cities").expect("valid")
}

#[tokio::test]
async fn the_first_start_announces_and_a_later_one_changes_nothing() {
    let ledger = ledger();
    let first =
        first_start(&ledger, &RandomEntropy, &name(), &rules("a"), NOTHING).await.expect("new");
    assert_eq!(first.rules.number, RulesNumber::new(1));
    let again =
        first_start(&ledger, &RandomEntropy, &name(), &rules("a"), NOTHING).await.expect("same");
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_start_with_other_rules_is_refused() {
    let ledger = ledger();
    let first =
        first_start(&ledger, &RandomEntropy, &name(), &rules("a"), NOTHING).await.expect("new");
    let error = first_start(&ledger, &RandomEntropy, &name(), &rules("b"), NOTHING)
        .await
        .expect_err("other");
    assert_eq!(error.code, Code::RULES_CHANGED);
    assert_eq!(ledger.pipeline(&name()).await.expect("read"), Some(first));
}

#[tokio::test]
async fn an_operator_announces_the_same_rules_under_a_new_number() {
    let ledger = ledger();
    let first =
        first_start(&ledger, &RandomEntropy, &name(), &rules("a"), NOTHING).await.expect("new");
    let second =
        announce(&ledger, &RandomEntropy, &name(), &rules("a"), Some(&first), NOTHING).await;
    assert_eq!(second.expect("announced").rules.number, RulesNumber::new(2));
}

#[tokio::test]
async fn who_announces_second_is_told() {
    let ledger = ledger();
    let first =
        first_start(&ledger, &RandomEntropy, &name(), &rules("a"), NOTHING).await.expect("new");
    announce(&ledger, &RandomEntropy, &name(), &rules("b"), Some(&first), NOTHING)
        .await
        .expect("first");
    let late = announce(&ledger, &RandomEntropy, &name(), &rules("c"), Some(&first), NOTHING).await;
    assert_eq!(late.expect_err("outpaced").code, Code::RULES_CHANGED);
}

#[test]
fn a_standing_names_what_differs() {
    let record = PipelineRecord {
        name: name(),
        incarnation: RandomEntropy.incarnation(),
        rules: truekeep_core::ports::RulesRecord {
            number: RulesNumber::new(3),
            fingerprint: Fingerprint::parse("a").expect("valid"),
            text: rules("a").text,
            announced_at: Timestamp::from_ms(0),
        },
        state: PipelineState::Working,
        revision: Revision::default(),
    };
    assert_eq!(Standing::of(&rules("a"), None), Standing::New);
    let same = Standing::of(&rules("a"), Some(&record));
    assert_eq!(same, Standing::InForce { rules: RulesNumber::new(3) });
    let Standing::Changed { differences, .. } = Standing::of(&rules("b"), Some(&record)) else {
        panic!("they differ")
    };
    assert_eq!(differences[0].part, "table");
}
