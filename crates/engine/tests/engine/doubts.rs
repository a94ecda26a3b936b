//! Reconcile beside everything that can go wrong: what is in doubt is never vouched for, no more is
//! deleted than was judged, and follow is not held up.

use std::sync::Arc;
use std::time::Duration;

use truekeep_core::Version;
use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, ItemKind, Items, RunState};
use truekeep_engine::Ending;

use crate::reconcile::{announce, delivered, ended, plant, wish};
use crate::world::tap::{Fault, Grudge};
use crate::world::{Process, World, key, pass, pass_ms, row};

/// Waits until so many calls were made.
async fn until(process: &Process, calls: &str, count: usize) {
    for _ in 0..60_000 {
        if process.tap.count(calls) >= count {
            return;
        }
        pass_ms(1).await;
    }
    panic!("{count} {calls} were never made");
}

/// A worker whose n-th commit after a wish is slow, in the middle of that commit.
async fn in_commit(world: &World, n: u32) -> (Process, crate::world::Running) {
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.forget_log();
    process.tap.fault_after("ledger.commit", n, 1, Fault::Slow(Duration::from_millis(200)));
    wish(world, "wish", false).await;
    until(&process, "ledger.commit", n as usize + 1).await;
    (process, running)
}

/// An operator's wish moves the run of follow while it is told of a doubt.
#[tokio::test(start_paused = true)]
async fn a_doubt_that_loses_a_race_is_told_again() {
    for n in 0..4 {
        let world = delivered().await;
        for i in 0..30 {
            plant(&world, &format!("nobody {i}"), 3);
        }
        let (_, running) = in_commit(&world, n).await;
        let asked = (Version::new(4), ItemKind::Upsert);
        world.ledger.request(&World::scope(), &row(3), asked.0, asked.1).await.expect("asked");
        pass(60).await;
        running.stop().await;
        assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::GUARD_REFUSED));
        let certificate = world.certificate().await;
        assert_eq!(
            (certificate.state, certificate.code),
            (State::Stale, Some(Code::GUARD_REFUSED))
        );
        assert_eq!(world.sink.contents().len(), 130);
    }
}

/// New rules are announced while any step is stored: the step is made again, nothing halts.
#[tokio::test(start_paused = true)]
async fn new_rules_beside_a_reconcile_halt_nothing() {
    for n in 0..4 {
        let world = delivered().await;
        let (process, running) = in_commit(&world, n).await;
        announce(&world).await;
        pass(30).await;
        running.stop().await;
        assert_eq!(world.certificate().await.state, State::Complete, "commit {n}");
        assert_eq!(ended(&world, "wish").await.0, RunState::Succeeded);
        assert!(!format!("{:?}", process.happened()).contains("Halted"));
    }
}

/// What does not converge is parked, also when the ledger could not store that at first.
#[tokio::test(start_paused = true)]
async fn what_does_not_converge_is_parked_whatever_the_ledger_answers() {
    for n in 0..12 {
        let world = delivered().await;
        let process = world.process();
        world.sink.lose(&row(7));
        let running = process.start();
        pass(2).await;
        process.tap.forget_log();
        process.tap.fault_after("sink.list", 1, 1, Fault::Slow(Duration::from_millis(200)));
        process.tap.fault_after("ledger.commit", n, 1, Fault::Fails(FailureClass::Halted));
        wish(&world, "wish", false).await;
        until(&process, "sink.list", 2).await;
        world.sink.lose(&row(7));
        pass(120).await;
        running.stop().await;
        let parked =
            world.item("00007").await.is_some_and(|item| item.code == Code::NON_CONVERGENT);
        let state = world.certificate().await.state;
        assert!(
            (parked && state == State::Partial) || (world.equal() && state == State::Complete),
            "commit {n}: parked {parked}, {state:?}, equal {}",
            world.equal()
        );
    }
}

/// Q1: between the guard's word and the purge, capture breaks and the table is emptied. A holder that
/// saw all of it knows what it judged.
#[tokio::test(start_paused = true)]
async fn nothing_is_purged_but_what_the_guard_has_judged() {
    let world = delivered().await;
    plant(&world, "nobody", 3);
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.forget_log();
    process.tap.fault_after("sink.list", 1, 1, Fault::Slow(Duration::from_millis(200)));
    wish(&world, "wish", false).await;
    until(&process, "sink.list", 2).await;
    empty_unseen(&world);
    pass(30).await;
    running.stop().await;
    assert_eq!(world.sink.contents().len(), 100);
    assert!(matches!(ended(&world, "wish").await.0, RunState::Stopped(_)));
    assert_eq!(world.certificate().await.state, State::Stale);
}

/// Q1: the same, and whoever takes over compares everything again.
#[tokio::test(start_paused = true)]
async fn no_more_is_purged_than_the_guard_has_judged() {
    let world = delivered().await;
    plant(&world, "nobody", 3);
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.forget_log();
    process.tap.fault_after("sink.list", 1, 1, Fault::Hangs);
    wish(&world, "wish", false).await;
    until(&process, "sink.list", 2).await;
    running.kill().await;
    pass(31).await;
    let process = world.process();
    process.tap.fault("sink.list", 1, Fault::Slow(Duration::from_millis(200)));
    let running = process.start();
    until(&process, "sink.list", 1).await;
    empty_unseen(&world);
    pass(30).await;
    running.stop().await;
    assert_eq!(world.sink.contents().len(), 101);
    assert!(matches!(ended(&world, "wish").await.0, RunState::Stopped(_)));
    assert_eq!(world.certificate().await.state, State::Stale);
}

fn empty_unseen(world: &World) {
    world.source.break_capture();
    for n in 0..100 {
        world.source.delete(&row(n));
    }
}

/// An operator's yes to one state of the source is no yes to another.
#[tokio::test(start_paused = true)]
async fn a_yes_ends_with_what_it_was_said_to() {
    let world = World::new();
    world.rows(0..10, "first");
    let running = world.process().start();
    pass(3).await;
    let backup = world.source.backup();
    world.rows(0..5, "later");
    pass(3).await;
    world.rows(10..100, "lost by the restore");
    pass(3).await;
    for n in 0..21 {
        plant(&world, &format!("nobody {n}"), 3);
    }
    running.stop().await;
    wish(&world, "yes", true).await;
    world.source.restore(&backup);
    assert!(matches!(world.drain().await, Ending::Halted(..)));
    announce(&world).await;
    world.drain().await;
    assert_eq!(ended(&world, "yes").await.0, RunState::Stopped(Code::GUARD_REFUSED));
    assert_eq!(world.sink.contents().len(), 121, "nothing was deleted");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_cannot_be_listed_holds_up_no_delivery() {
    for class in [FailureClass::Terminal, FailureClass::Halted, FailureClass::Retry] {
        let world = delivered().await;
        let process = world.process();
        let running = process.start();
        pass(2).await;
        process.tap.fault("sink.list", u32::MAX, Fault::Fails(class));
        wish(&world, "wish", false).await;
        pass(40).await;
        world.rows(0..100, "second");
        pass(2).await;
        assert!(world.equal(), "{class:?}");
        running.stop().await;
    }
}

/// A sink that goes back while capture is filled waits for the fill, and is then repaired.
#[tokio::test(start_paused = true)]
async fn a_repair_waits_for_the_fill() {
    let world = delivered().await;
    let emptied = World { sink: Arc::default(), ..world.clone() };
    world.source.begin_again(Version::new(0)).await.expect("begun");
    let running = emptied.process().start();
    pass(5).await;
    assert_ne!(emptied.certificate().await.state, State::Complete);
    while !world.source.fill().await.expect("filled").done {}
    pass(120).await;
    running.stop().await;
    assert!(emptied.equal());
    assert_eq!(emptied.certificate().await.state, State::Complete);
}

/// An item of a future that the source has lost is settled by what is there now.
#[tokio::test(start_paused = true)]
async fn an_item_of_a_lost_future_can_be_settled() {
    let world = delivered().await;
    let backup = world.source.backup();
    let running = world.process().start();
    pass(2).await;
    world.rows(0..50, "lost future");
    world.source.put_unloadable(&row(5), Code::DOCUMENT_UNREADABLE, "bad");
    pass(3).await;
    running.stop().await;
    world.source.restore(&backup);
    announce(&world).await;
    world.drain().await;
    assert_eq!(world.certificate().await.state, State::Partial);
    world.ledger.retry(&World::scope(), &row(5)).await.expect("answered");
    world.drain().await;
    assert_eq!(world.item("00005").await, None);
    assert_eq!(world.certificate().await.state, State::Complete);
    assert!(world.equal());
}

/// F2: a worker that stops in order leaves its last acknowledgement, so that a backup that was
/// taken before is recognised.
#[tokio::test(start_paused = true)]
async fn a_stop_acknowledges_what_was_delivered() {
    let world = delivered().await;
    let running = world.process().start();
    pass(5).await;
    world.rows(0..1, "tick");
    pass_ms(100).await;
    let backup = world.source.backup();
    world.rows(200..230, "lost future");
    pass_ms(300).await;
    running.stop().await;
    world.source.restore(&backup);
    world.rows(0..60, "after the restore");
    let ending = world.drain().await;
    assert!(matches!(ending, Ending::Halted(code, _) if code == Code::SOURCE_WENT_BACK));
}

/// X62: an entry that no record can be is removed directly, and vouched for only once it is gone.
#[tokio::test(start_paused = true)]
async fn a_foreign_entry_is_removed_or_leaves_the_sink_untrusted() {
    for grudge in [None, Some(Grudge::Refuses), Some(Grudge::PutsOff)] {
        let world = delivered().await;
        world.source.declare_foreign("foreign");
        plant(&world, "foreign", 3);
        let process = world.process();
        if let Some(grudge) = grudge {
            process.tap.bear("foreign", grudge);
        }
        wish(&world, "wish", false).await;
        process.drain().await;
        let gone = !world.sink.contents().contains_key(&key("foreign"));
        assert_eq!(gone, grudge.is_none());
        let state = world.certificate().await.state;
        assert_eq!(state == State::Complete, gone, "{grudge:?}: {state:?}");
    }
}
