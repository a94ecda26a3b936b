//! Rule 56: a sink whose listing lags behind its writes. What was just delivered may not be listed
//! yet, and what was just deleted may still be: neither is repaired on sight, and both are judged.

use std::sync::Arc;
use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{Clock, RunState};
use truekeep_sink_memory::{Elapsed, Manner, MemorySink};

use crate::reconcile::{ended, plant, wish};
use crate::world::{Virtual, World, pass, pass_ms, row};

const LAG: Duration = Duration::from_secs(20);

/// Rows 0 to 99, delivered to a sink that shows what was written only after a while.
async fn lagging(scattered: bool) -> World {
    let world = World::new();
    let began = world.began;
    let clock = Virtual(began);
    let lag = Some((LAG, Arc::new(move || clock.monotonic()) as Elapsed));
    let manner = Manner { scattered, lag, ..Manner::default() };
    let world = World { sink: Arc::new(MemorySink::listing(manner)), ..world };
    world.rows(0..100, "first");
    world.drain().await;
    world
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_or_deleted_within_the_lag_is_not_repaired_on_sight() {
    for scattered in [false, true] {
        let world = lagging(scattered).await;
        pass(60).await;
        for n in 0..30 {
            world.source.delete(&row(n));
        }
        world.rows(50..60, "second");
        world.rows(100..103, "new");
        world.drain().await;
        wish(&world, "wish", false).await;
        let process = world.process();
        let began = world.elapsed();
        process.drain().await;
        let (state, phase) = ended(&world, "wish").await;
        assert_eq!(state, RunState::Succeeded, "{phase:?}");
        assert!(phase.report().expect("a report").clean(), "{phase:?}");
        assert_eq!(process.tap.sent(), []);
        assert!(world.elapsed() - began >= LAG, "it waits until all of it shows");
        assert!(world.elapsed() - began < LAG + Duration::from_secs(2), "and no longer");
        assert_eq!(world.certificate().await.state, State::Complete);
    }
}

/// Each repair is judged when it shows, and none before.
#[tokio::test(start_paused = true)]
async fn repairs_are_compared_again_once_they_show() {
    let world = lagging(false).await;
    pass(60).await;
    world.sink.lose(&row(7));
    plant(&world, row(8).as_str(), 1);
    plant(&world, "nobody", 3);
    wish(&world, "wish", false).await;
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.missing, report.stale, report.orphans), (1, 1, 1));
    assert_eq!((report.deleted, report.parked, report.rounds), (1, 0, 2));
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// A record that was delivered while the run compared, and lost since, is judged again before the
/// run ends: repaired, and not parked as if that had been tried.
#[tokio::test(start_paused = true)]
async fn a_record_in_its_lag_is_judged_again_before_the_run_ends() {
    let world = lagging(false).await;
    pass(60).await;
    let running = world.process().start();
    pass(2).await;
    wish(&world, "wish", false).await;
    pass(5).await;
    world.source.put(&row(7), "second");
    pass(2).await;
    world.sink.lose(&row(7));
    pass(200).await;
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.late, report.missing, report.parked), (1, 1, 0), "{report:?}");
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rule 44: under steady writes the rounds are bounded, and nothing is parked or sent twice.
#[tokio::test(start_paused = true)]
async fn steady_writes_do_not_keep_a_run_from_ending() {
    let world = lagging(false).await;
    pass(60).await;
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.forget_log();
    wish(&world, "wish", false).await;
    for n in 0..200 {
        world.source.put(&row(n % 100), &format!("{n}"));
        pass_ms(500).await;
    }
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert!(report.clean() && report.late > 0 && report.retaken, "{report:?}");
    assert_eq!(report.listings, 2);
    assert_eq!(process.tap.sent().len(), 200);
}

/// A take-over knows nothing of what was delivered before it, so it waits as well.
#[tokio::test(start_paused = true)]
async fn a_new_holder_waits_until_the_deliveries_of_the_old_one_show() {
    let world = lagging(false).await;
    pass(60).await;
    wish(&world, "wish", false).await;
    let first = world.process().start();
    pass(10).await;
    world.rows(0..40, "second");
    pass(5).await;
    first.stop().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Active);
    let process = world.process();
    process.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert!(phase.report().expect("a report").clean(), "{phase:?}");
    assert_eq!(process.tap.sent(), []);
}

/// The guard judges orphans that are there, and none that are only shown still.
#[tokio::test(start_paused = true)]
async fn deletions_that_do_not_show_yet_do_not_count_against_the_guard() {
    let world = lagging(false).await;
    pass(60).await;
    let running = world.process().start();
    pass(2).await;
    wish(&world, "wish", false).await;
    pass(19).await;
    for n in 0..60 {
        world.source.delete(&row(n));
    }
    pass(200).await;
    running.stop().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_ne!(state, RunState::Stopped(Code::GUARD_REFUSED));
    assert_eq!(phase.report().map(|report| report.orphans), Some(0), "{phase:?}");
    assert!(world.equal());
}
