//! A deep reconcile: documents that were altered in the sink, past truekeep, are found and mended.

use std::sync::Arc;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{ItemState, RunState};
use truekeep_core::reconcile::Terms;
use truekeep_core::{Document, Value};

use crate::reconcile::{delivered, ended, wish_under};
use crate::world::tap::Grudge;
use crate::world::{World, pass, pass_ms, row};

/// Gives a record of the sink another document at its rank.
fn alter(world: &World, number: u32) {
    let held = world.sink.contents()[&row(number)].clone();
    let names = [Box::from("text")].into();
    let document = Arc::new(Document::new(names, vec![Value::Text("altered".into())]));
    world.sink.plant(row(number), truekeep_sink_memory::Held { document, ..held });
}

fn deep() -> Terms {
    Terms { deep: true, ..Terms::default() }
}

#[tokio::test(start_paused = true)]
async fn altered_documents_are_mended_and_only_they_are_sent() {
    let world = delivered().await;
    for number in [0, 7, 99] {
        alter(&world, number);
    }
    wish_under(&world, "shallow", Terms::default()).await;
    world.drain().await;
    let (state, phase) = ended(&world, "shallow").await;
    assert_eq!(
        (state, phase.report().and_then(|report| report.altered)),
        (RunState::Succeeded, None)
    );
    assert!(!world.equal(), "ranks say nothing of documents");
    wish_under(&world, "deep", deep()).await;
    let process = world.process();
    process.drain().await;
    let (state, phase) = ended(&world, "deep").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.altered, report.mended, report.parked), (Some(3), 3, 0));
    assert_eq!(process.tap.sent(), [row(0), row(7), row(99)]);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// What comes back as the same drift is parked, and told as such; nothing goes round for ever.
#[tokio::test(start_paused = true)]
async fn a_sink_that_alters_what_it_is_given_is_non_convergent() {
    let world = delivered().await;
    alter(&world, 7);
    wish_under(&world, "deep", deep()).await;
    let process = world.process();
    process.tap.bear(row(7).as_str(), Grudge::Alters);
    process.drain().await;
    let (state, phase) = ended(&world, "deep").await;
    assert_eq!((state, phase.report().map(|report| report.parked)), (RunState::Succeeded, Some(1)));
    let item = world.item(row(7).as_str()).await.expect("an item");
    assert_eq!((item.state, &item.code), (ItemState::Parked, &Code::NON_CONVERGENT));
    assert!(item.reason.ends_with("with another document"), "{}", item.reason);
    assert_eq!(world.certificate().await.state, State::Partial);
}

/// X65: a projection that gives another document each time would number the whole table at each
/// deep run, for every pipeline of the feed.
#[tokio::test(start_paused = true)]
async fn many_altered_documents_are_not_written_again_without_a_yes() {
    let world = delivered().await;
    for number in 0..21 {
        alter(&world, number);
    }
    wish_under(&world, "no", deep()).await;
    let process = world.process();
    process.drain().await;
    assert_eq!(ended(&world, "no").await.0, RunState::Stopped(Code::GUARD_REFUSED));
    assert_eq!(process.tap.sent(), []);
    assert_eq!(world.certificate().await.state, State::Stale);
    wish_under(&world, "yes", Terms { confirmed: true, ..deep() }).await;
    world.drain().await;
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// S1: documents are read after their versions, so they may be newer; related rows change
/// documents before their numbers.
#[tokio::test(start_paused = true)]
async fn writes_beside_a_deep_reconcile_are_no_drift() {
    let world = delivered().await;
    let running = world.process().start();
    pass(2).await;
    for round in 0..30 {
        wish_under(&world, &format!("deep {round}"), deep()).await;
        for number in 0..10 {
            world.source.put(&row(round * 3 + number), &format!("{round}"));
            world.source.put_by_relation(&row(50 + number), &format!("related {round}"));
            pass_ms(20).await;
        }
        pass(2).await;
        let (state, phase) = ended(&world, &format!("deep {round}")).await;
        assert_eq!(state, RunState::Succeeded, "{phase:?}");
        assert!(phase.report().expect("a report").clean(), "{phase:?}");
    }
    pass(2).await;
    running.stop().await;
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// What a sink cannot do is refused, and costs no trust.
#[tokio::test(start_paused = true)]
async fn a_sink_that_cannot_verify_ends_a_deep_run_before_it_looks() {
    let world = delivered().await;
    wish_under(&world, "deep", deep()).await;
    let process = world.process();
    process.tap.limit(|able| truekeep_core::ports::Capabilities { verifies: false, ..able });
    process.drain().await;
    assert_eq!(ended(&world, "deep").await.0, RunState::Stopped(Code::SINK_UNVERIFIABLE));
    assert_eq!(process.tap.count("sink.list"), 0);
    assert_eq!(world.certificate().await.state, State::Complete);
}
