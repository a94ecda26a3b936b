//! What a reconcile removes: each orphan once, by the way of every delivery, under the lease; and
//! what it says of what was not let go.

use std::sync::Arc;
use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Feed, ItemState, RunState};
use truekeep_core::reconcile::Terms;
use truekeep_sink_memory::{Manner, MemorySink};

use crate::reconcile::{delivered, ended, plant, wish, wish_under};
use crate::world::tap::{Fault, Grudge};
use crate::world::{World, key, pass, pass_ms, row};

/// Rule 114: orphans that are listed twice are deleted once each, by the way of every delivery; a
/// second run finds none and sends nothing.
#[tokio::test(start_paused = true)]
async fn orphans_listed_twice_are_deleted_once_and_a_second_run_sends_nothing() {
    for scattered in [false, true] {
        let manner = Manner { scattered, repeats: true, ..Manner::default() };
        let world = World { sink: Arc::new(MemorySink::listing(manner)), ..World::new() };
        world.rows(0..3_000, "first");
        world.drain().await;
        for n in 0..70 {
            plant(&world, &format!("nobody {n:02}"), 3);
        }
        wish(&world, "wish", false).await;
        let process = world.process();
        process.drain().await;
        let (state, phase) = ended(&world, "wish").await;
        assert_eq!(state, RunState::Succeeded, "{phase:?}");
        let report = phase.report().expect("a report");
        assert_eq!((report.listed, report.orphans, report.deleted), (3_070, 70, 70));
        let mut sent: Vec<String> = process.tap.sent().iter().map(ToString::to_string).collect();
        sent.sort();
        assert_eq!(sent, (0..70).map(|n| format!("nobody {n:02}")).collect::<Vec<_>>());
        wish(&world, "again", false).await;
        let process = world.process();
        process.drain().await;
        let (_, phase) = ended(&world, "again").await;
        assert!(phase.report().expect("a report").clean(), "{phase:?}");
        assert_eq!(process.tap.sent(), []);
    }
}

/// Rules 105 and 114: what the sink does not let go is parked and told, and not called deleted; the
/// others are.
#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_not_let_go_is_not_called_deleted() {
    let world = three_orphans().await;
    let process = world.process();
    process.tap.bear("nobody 2", Grudge::Refuses);
    process.drain().await;
    let (ended, phase) = ended(&world, "wish").await;
    assert_eq!(ended, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.orphans, report.deleted, report.refused), (3, 2, 1), "{report:?}");
    assert_eq!(world.item("nobody 2").await.map(|item| item.state), Some(ItemState::Parked));
    assert_eq!(world.differences(), [key("nobody 2")]);
    assert_eq!(world.certificate().await.state, State::Partial);
}

/// Rule 59: a repair whose delivery is being tried is awaited; what changes later is not.
#[tokio::test(start_paused = true)]
async fn a_run_ends_only_when_no_repair_is_being_tried() {
    let world = three_orphans().await;
    let process = world.process();
    process.tap.bear("nobody 2", Grudge::PutsOff);
    let running = process.start();
    pass_ms(2_500).await;
    assert_eq!(world.item("nobody 2").await.map(|item| item.state), Some(ItemState::Retry));
    let e = ended(&world, "wish").await;
    println!("{e:?} {:?}", world.item("nobody 2").await);
    assert_eq!(ended(&world, "wish").await.1.name(), "settling");
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.code), (State::Stale, Some(Code::DRIFT_FOUND)));
    process.tap.heal();
    process.tap.bear(row(7).as_str(), Grudge::PutsOff);
    world.source.put(&row(7), "later");
    pass(8).await;
    assert_eq!(world.item(row(7).as_str()).await.map(|item| item.state), Some(ItemState::Retry));
    let (ended, phase) = ended(&world, "wish").await;
    assert_eq!(ended, RunState::Succeeded, "{phase:?}");
    assert_eq!(phase.report().map(|report| (report.deleted, report.refused)), Some((3, 0)));
    running.stop().await;
}

/// All rows are delivered, three entries are too many, and a reconcile is wished for.
async fn three_orphans() -> World {
    let world = delivered().await;
    for name in ["nobody 1", "nobody 2", "nobody 3"] {
        plant(&world, name, 3);
    }
    wish(&world, "wish", false).await;
    world
}

/// Rule 106: a parked record that neither side has any more is parked no longer; one that is live
/// stays.
#[tokio::test(start_paused = true)]
async fn a_parked_record_that_is_gone_from_both_sides_is_unparked() {
    let world = delivered().await;
    plant(&world, "nobody", 3);
    let process = world.process();
    for name in ["nobody", row(7).as_str()] {
        process.tap.bear(name, Grudge::Refuses);
    }
    world.source.put(&row(7), "refused");
    wish(&world, "first", false).await;
    process.drain().await;
    assert_eq!(world.certificate().await.state, State::Partial);
    for name in ["nobody", row(7).as_str()] {
        assert_eq!(world.item(name).await.map(|item| item.state), Some(ItemState::Parked));
    }
    world.sink.lose(&key("nobody"));
    wish(&world, "second", false).await;
    process.drain().await;
    let (_, phase) = ended(&world, "second").await;
    assert_eq!(phase.report().map(|report| report.unparked), Some(1), "{phase:?}");
    assert_eq!(world.item("nobody").await, None);
    assert!(world.item(row(7).as_str()).await.is_some(), "its row is there");
    world.source.delete(&row(7));
    process.tap.heal();
    world.drain().await;
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rule 116: an emptied source, and one whose feed is still being filled, delete nothing.
#[tokio::test(start_paused = true)]
async fn an_empty_source_deletes_nothing_without_a_yes() {
    let world = World::new();
    world.drain().await;
    for n in 0..3 {
        plant(&world, &format!("nobody {n}"), 3);
    }
    wish(&world, "wish", false).await;
    world.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::GUARD_REFUSED));
    assert_eq!(world.sink.contents().len(), 3);
    world.source.begin_again(truekeep_core::Version::new(1_000)).await.expect("begun");
    wish_under(&world, "yes", Terms { confirmed: true, ..Terms::default() }).await;
    world.drain().await;
    assert_eq!(ended(&world, "yes").await.1.name(), "beginning", "the feed is being filled");
    assert_eq!(world.sink.contents().len(), 3);
    while !world.source.fill().await.expect("filled").done {}
    world.drain().await;
    assert_eq!(ended(&world, "yes").await.0, RunState::Succeeded);
    assert!(world.sink.contents().is_empty());
}

/// Rule 31: nothing on either side is complete, with no effect at all.
#[tokio::test(start_paused = true)]
async fn an_empty_scope_ends_well_and_sends_nothing() {
    let world = World::new();
    world.drain().await;
    wish(&world, "wish", false).await;
    let process = world.process();
    process.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert!(phase.report().expect("a report").clean());
    assert_eq!((process.tap.sent(), process.tap.count("sink.apply")), (vec![], 0));
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rule 16: whoever lost the lease between the listing and the first delete sends nothing more.
#[tokio::test(start_paused = true)]
async fn nothing_is_removed_once_the_lease_is_lost() {
    let world = delivered().await;
    world.source.declare_foreign("~");
    plant(&world, "~nobody", 3);
    wish(&world, "wish", false).await;
    let stalled = world.process();
    // The first listing is the comparison's; the second one the purge's.
    stalled.tap.fault_after("records.canonical", 1, 1, Fault::Slow(Duration::from_secs(100)));
    stalled.tap.cut("ledger.leases.renew");
    stalled.tap.fault_after(
        "ledger.leases.acquire",
        1,
        u32::MAX,
        Fault::Fails(FailureClass::Unknown),
    );
    let running = stalled.start();
    pass(5).await;
    assert_eq!(ended(&world, "wish").await.1.name(), "purging");
    pass(60).await;
    let rival = world.process();
    rival.drain().await;
    assert!(!world.sink.contents().contains_key(&key("~nobody")), "the rival has removed it");
    plant(&world, "~nobody", 3);
    pass(60).await;
    running.stop().await;
    assert_eq!(stalled.tap.sent(), []);
    assert!(world.sink.contents().contains_key(&key("~nobody")), "and nobody else");
}

/// Rules 29 and 36: after trouble at the end, and after a death, a run goes on at its checkpoint:
/// each range is compared once.
#[tokio::test(start_paused = true)]
async fn a_run_goes_on_at_its_checkpoint() {
    let world = World::new();
    world.rows(0..5_000, "first");
    world.drain().await;
    world.sink.lose(&row(4_900));
    wish(&world, "wish", false).await;
    let process = world.process();
    let fails = Fault::Fails(FailureClass::Unknown);
    process.tap.fault_after("sink.list", 4, 2, fails);
    process.tap.fault_after("sink.list", 7, 1, Fault::Hangs);
    let running = process.start();
    pass(40).await;
    running.kill().await;
    pass(31).await;
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.live, report.listed, report.missing), (5_000, 4_999, 1));
}

/// X62: an entry under a key that no record can have is removed by the rank that it was listed with,
/// so one that came meanwhile stays until it is listed itself.
#[tokio::test(start_paused = true)]
async fn a_foreign_entry_is_removed_at_its_listed_rank() {
    let world = delivered().await;
    world.source.declare_foreign("~");
    plant(&world, "~nobody", 3);
    wish(&world, "wish", false).await;
    let process = world.process();
    process.tap.fault_after("records.canonical", 1, 1, Fault::Slow(Duration::from_secs(5)));
    let running = process.start();
    pass(2).await;
    plant(&world, "~nobody", 9);
    // The repair that begins by itself would remove that as well, once it has listed it.
    process.tap.cut("sink.list");
    pass(10).await;
    running.stop().await;
    let rank = world.sink.contents()[&key("~nobody")].rank.expect("a rank");
    assert_eq!(rank.version.get(), 9);
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::SINK_REFUSED));
    let row = world.source.find(&[key("~nobody")]).await.expect("answered");
    assert_eq!(row, [None], "and none is buried");
}
