//! A sink that lists in no order: its listing is put aside, sorted and compared, while the live tail
//! goes on.

use std::sync::Arc;
use std::time::Duration;

use truekeep_adapter_memory::MemorySpill;
use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capabilities, RunState};
use truekeep_engine::Settings;
use truekeep_sink_memory::{Manner, MemorySink};

use crate::reconcile::{ended, plant, wish};
use crate::world::tap::{Fault, Grudge};
use crate::world::{World, key, pass, pass_ms, row};

/// So many rows, delivered to a sink that lists in no order, and a sort in runs of 4 kB.
async fn scattered(rows: u32) -> World {
    let manner = Manner { scattered: true, ..Manner::default() };
    let world = World {
        sink: Arc::new(MemorySink::listing(manner)),
        settings: Settings { sort_bytes: 4 << 10, ..Settings::default() },
        ..World::new()
    };
    world.rows(0..rows, "first");
    world.drain().await;
    assert_eq!(world.certificate().await.state, State::Complete);
    world
}

#[tokio::test(start_paused = true)]
async fn a_sink_without_an_order_is_reconciled() {
    let world = scattered(5_000).await;
    for n in 0..40 {
        world.sink.lose(&row(n * 97));
    }
    plant(&world, row(8).as_str(), 1);
    plant(&world, "nobody", 3);
    wish(&world, "wish", false).await;
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.live, report.listed, report.listings), (5_000, 4_961, 3));
    assert_eq!((report.missing, report.stale, report.orphans, report.deleted), (40, 1, 1, 1));
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
    assert_eq!(world.spill.left(), usize::MAX, "nothing is left on disk");
}

/// The tail never waits for a repair, and what it delivers while the sink is listed is no drift.
#[tokio::test(start_paused = true)]
async fn writes_beside_a_long_listing_are_delivered_and_no_drift() {
    let world = scattered(3_000).await;
    let process = world.process();
    process.tap.fault("sink.list", u32::MAX, Fault::Slow(Duration::from_millis(300)));
    let running = process.start();
    pass(2).await;
    wish(&world, "wish", false).await;
    pass(2).await;
    for n in 0..40 {
        world.source.put(&row(n * 70), "second");
        world.source.put(&row(3_000 + n), "new");
        world.source.delete(&row(1 + n * 70));
        pass_ms(200).await;
        if n % 10 == 0 {
            pass(6).await;
            assert!(world.equal(), "delivered meanwhile: {:?}", world.differences());
        }
    }
    pass(120).await;
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert!(phase.report().expect("a report").clean(), "{phase:?}");
    assert!(world.equal());
}

/// A record in retry is delivered between the listing and the comparison: it is not missing.
#[tokio::test(start_paused = true)]
async fn an_item_that_is_delivered_after_the_listing_is_no_drift() {
    let world = scattered(100).await;
    let process = world.process();
    process.tap.bear(row(7).as_str(), Grudge::PutsOff);
    process.tap.fault("sink.list", 1, Fault::Slow(Duration::from_secs(10)));
    let running = process.start();
    world.source.delete(&row(7));
    pass(1).await;
    world.source.put(&row(7), "put off");
    pass(5).await;
    assert!(world.item(row(7).as_str()).await.is_some());
    world.sink.lose(&row(7));
    wish(&world, "wish", false).await;
    pass(3).await;
    process.tap.heal();
    pass(120).await;
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert!(phase.report().expect("a report").clean(), "{phase:?}");
    assert!(world.equal(), "{:?}", world.differences());
}

/// A sink that goes back while its sorted listing is compared is listed again: what was put aside
/// says nothing of it now.
#[tokio::test(start_paused = true)]
async fn a_listing_of_a_sink_that_went_back_is_thrown_away() {
    let world = scattered(3_000).await;
    let backup = world.sink.backup();
    world.rows(3_000..3_100, "lost by the restore");
    let process = world.process();
    process.tap.fault("records.keys", 1, Fault::Fails(FailureClass::Retry));
    let running = process.start();
    pass(2).await;
    wish(&world, "wish", false).await;
    pass_ms(500).await;
    let lists = process.tap.count("sink.list");
    assert!(lists > 0, "it is listed");
    assert_eq!(process.tap.count("records.keys"), 1, "and not compared");
    world.sink.restore(&backup);
    world.rows(0..1, "after the restore");
    pass(180).await;
    running.stop().await;
    assert!(process.tap.count("sink.list") > lists, "it is listed again");
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// X36: a sorted listing dies with its worker. The next one lists again, and compares only what lies
/// behind the checkpoint.
#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_lists_again_and_compares_nothing_twice() {
    let world = scattered(5_000).await;
    world.sink.lose(&row(10));
    world.sink.lose(&row(4_900));
    wish(&world, "wish", false).await;
    let process = world.process();
    // A step that took long ends.
    process.tap.fault_after("records.keys", 1, 1, Fault::Slow(Duration::from_millis(100)));
    process.tap.fault_after("records.keys", 3, 1, Fault::Hangs);
    let running = process.start();
    pass(20).await;
    running.kill().await;
    pass(31).await;
    let (_, phase) = ended(&world, "wish").await;
    let before = phase.report().expect("a report").clone();
    assert!(before.live > 0 && before.live < 5_000, "{before:?}");
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.live, report.missing, report.listings), (5_000, 2, 3));
    assert!(world.equal());
}

/// X36: whoever dies in each listing does not list for ever.
#[tokio::test(start_paused = true)]
async fn a_run_whose_listing_never_ends_is_told_so() {
    let world = scattered(100).await;
    wish(&world, "wish", false).await;
    for _ in 0..20 {
        let process = world.process();
        process.tap.fault("sink.list", 1, Fault::Hangs);
        let running = process.start();
        pass(2).await;
        running.kill().await;
        pass(31).await;
        assert_eq!(ended(&world, "wish").await.0, RunState::Active);
    }
    world.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::LISTING_UNFINISHED));
}

/// A full disk ends the run with a code, and costs nothing else.
#[tokio::test(start_paused = true)]
async fn a_listing_that_cannot_be_put_aside_ends_the_run() {
    let world = World { spill: MemorySpill::new(1_000), ..scattered(1_000).await };
    wish(&world, "wish", false).await;
    world.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::SPILL_FAILED));
    assert_eq!(world.certificate().await.state, State::Complete, "nothing was seen");
    assert_eq!(world.spill.left(), 1_000);
}

/// A listing goes on after trouble of the sink where it was.
#[tokio::test(start_paused = true)]
async fn trouble_in_the_middle_of_a_listing_costs_only_its_page() {
    let world = scattered(5_000).await;
    world.sink.lose(&row(10));
    wish(&world, "wish", false).await;
    let process = world.process();
    let unknown = Fault::Fails(FailureClass::Unknown);
    process.tap.fault_after("sink.list", 2, 2, unknown);
    let running = process.start();
    pass(60).await;
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert_eq!(process.tap.count("sink.list"), 2 + 5 + 5, "of two rounds, and the two that failed");
}

/// X34: an order that is declared and not kept is told, and nothing is deleted on its ground.
#[tokio::test(start_paused = true)]
async fn a_sink_that_lies_about_its_order_ends_the_run() {
    let world = scattered(100).await;
    plant(&world, "nobody", 3);
    wish(&world, "wish", false).await;
    let process = world.process();
    process.tap.limit(|able| Capabilities { ordered_listing: true, ..able });
    process.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::SINK_DISORDERED));
    assert!(world.sink.contents().contains_key(&key("nobody")));
}
