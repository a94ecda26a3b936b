//! Follow: what changes arrives, and the certificate says how far.

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::Capture;
use truekeep_core::{Moment, Version};
use truekeep_engine::Ending;

use crate::world::tap::Fault;
use crate::world::{World, pass, pass_ms, row};

#[tokio::test(start_paused = true)]
async fn a_drained_scope_is_equal_and_complete() {
    let world = World::new();
    world.rows(0..2_500, "first");
    world.source.delete(&row(7));
    assert_eq!(world.drain().await, Ending::Drained);
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
    world.source.put(&row(1), "second");
    assert!(!world.equal());
    world.drain().await;
    assert!(world.equal());
}

/// Rule 31.
#[tokio::test(start_paused = true)]
async fn an_empty_scope_is_complete_with_no_effect() {
    let world = World::new();
    let process = world.process();
    assert_eq!(process.drain().await, Ending::Drained);
    assert_eq!(world.certificate().await.state, State::Complete);
    assert_eq!(process.tap.count("sink.apply"), 0);
}

/// Rule 25.
#[tokio::test(start_paused = true)]
async fn each_change_is_sent_once_and_in_order() {
    let mut world = World::new();
    world.settings.page_rows = 50;
    world.settings.page_bytes = 70;
    world.rows(0..120, "ten bytes.");
    let process = world.process();
    process.drain().await;
    assert_eq!(process.tap.sent(), (0..120).map(row).collect::<Vec<_>>());
    assert!(process.tap.count("sink.apply") >= 120 / 7, "in batches of seven at most");
}

/// Rule 87.
#[tokio::test(start_paused = true)]
async fn the_moment_is_the_newest_version_once_it_is_delivered_and_not_before() {
    let world = World::new();
    world.rows(0..3, "first");
    world.drain().await;
    let moment = |n| Some(Moment::at(Version::new(n)));
    assert_eq!(world.certificate().await.moment, moment(3));
    world.rows(0..1, "second");
    assert_eq!(world.certificate().await.moment, moment(3));
    world.drain().await;
    assert_eq!(world.certificate().await.moment, moment(4));
}

/// Rule 88: wherever a worker dies, the certificate comes to the truth without a new write.
#[tokio::test(start_paused = true)]
async fn a_crash_around_a_delivery_leaves_nothing_to_wait_for() {
    for commits in 0..5 {
        let world = World::new();
        world.rows(0..3, "first");
        let process = world.process();
        process.tap.fault_after("ledger.commit", commits, 1, Fault::Hangs);
        let running = process.start();
        pass(2).await;
        running.kill().await;
        pass(31).await;
        assert_eq!(world.drain().await, Ending::Drained);
        let certificate = world.certificate().await;
        let newest = Some(Moment::at(Version::new(3)));
        assert_eq!((certificate.state, certificate.moment), (State::Complete, newest));
        assert!(world.equal());
    }
}

/// F2: pages that were read ahead of an acknowledgement are no sign of a source that went back.
#[tokio::test(start_paused = true)]
async fn a_load_that_outlasts_acknowledgements_goes_through() {
    let mut world = World::new();
    world.settings.page_rows = 10;
    world.rows(0..300, "first");
    let process = world.process();
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(world.settings.register_every / 3));
    assert_eq!(process.drain().await, Ending::Drained);
    assert!(process.tap.count("feed.register") > 2);
    assert!(world.equal());
}

#[tokio::test(start_paused = true)]
async fn a_running_worker_delivers_what_changes() {
    let world = World::new();
    let running = world.process().start();
    for round in 0..10 {
        world.rows(round..round + 5, &format!("round {round}"));
        world.source.delete(&row(round));
        pass_ms(100).await;
        assert!(world.equal(), "round {round}");
    }
    assert_eq!(running.stop().await[0].1, Ending::Stopped);
    assert_eq!(world.certificate().await.state, State::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_change_between_the_last_read_and_the_wait_is_not_slept_over() {
    let world = World::new();
    let process = world.process();
    let running = process.start();
    pass(5).await;
    // The counter tells of the first change; the second commits after the last read that follows.
    process.tap.fault_after("feed.pulse", 1, 1, Fault::Slow(std::time::Duration::from_millis(50)));
    world.rows(0..1, "first");
    pass_ms(50).await;
    assert!(world.equal());
    world.rows(0..1, "second");
    pass_ms(100).await;
    assert!(world.equal());
    running.stop().await;
}

/// A change that the source tells of is not waited for, and a word that comes to nothing does no harm.
#[tokio::test(start_paused = true)]
async fn a_change_that_is_told_arrives_at_once() {
    let mut world = World::new();
    world.settings.poll_every = std::time::Duration::from_secs(600);
    world.settings.idle_every = std::time::Duration::from_secs(600);
    let process = world.process();
    let running = process.start();
    pass(5).await;
    for round in 0..3 {
        process.tap.stirs.notify_one();
        pass_ms(1).await;
        world.rows(round..round + 5, &format!("round {round}"));
        process.tap.stirs.notify_one();
        pass_ms(1).await;
        assert!(world.equal(), "round {round}");
    }
    running.stop().await;
}

/// A lost wake-up costs no more than the idle look.
#[tokio::test(start_paused = true)]
async fn without_a_change_counter_changes_arrive_with_the_idle_look() {
    let world = World::new();
    let process = world.process();
    process.tap.cut("feed.pulse");
    let running = process.start();
    pass(2).await;
    world.rows(0..10, "first");
    pass(2).await;
    assert!(world.equal());
    running.stop().await;
}

/// Rule 113.
#[tokio::test(start_paused = true)]
async fn broken_capture_makes_stale_until_it_is_installed_and_filled() {
    let world = World::new();
    world.rows(0..20, "first");
    let running = world.process().start();
    pass(2).await;
    let good = world.certificate().await;
    assert_eq!(good.state, State::Complete);
    world.source.break_capture();
    world.rows(0..5, "missed");
    pass(2).await;
    let stale = world.certificate().await;
    assert_eq!((stale.state, stale.code), (State::Stale, Some(Code::CAPTURE_CHANGED)));
    assert_eq!(stale.moment, good.moment, "it stays at the last good moment");
    world.source.install().await.expect("installed");
    pass(2).await;
    let filling = world.certificate().await;
    assert_eq!((filling.state, filling.code), (State::Stale, Some(Code::CAPTURE_FILLING)));
    while !world.source.fill().await.expect("filled").done {}
    pass(2).await;
    assert_eq!(world.certificate().await.state, State::Complete);
    assert!(world.equal());
    running.stop().await;
}

/// Rule 120.
#[tokio::test(start_paused = true)]
async fn tombstones_are_pruned_once_they_are_passed_and_trouble_of_that_stops_nothing() {
    let world = World::new();
    world.rows(0..10, "first");
    let process = world.process();
    process.tap.cut("feed.prune");
    let running = process.start();
    pass(2).await;
    for n in 0..5 {
        world.source.delete(&row(n));
    }
    pass(3).await;
    assert!(world.equal());
    assert_eq!(world.source.verify().await.expect("verified").tombstones, 5);
    process.tap.heal();
    pass(3).await;
    let left = world.source.verify().await.expect("verified").tombstones;
    assert_eq!(left, 0, "they go though nothing comes any more");
    assert_eq!(world.certificate().await.state, State::Complete);
    running.stop().await;
}
