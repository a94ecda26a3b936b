//! Trouble of ports: each class, everywhere, and what an operator sees of it.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass::{Fenced, Halted, Retry, Terminal, Unknown};
use truekeep_core::follow::Phase;
use truekeep_core::ports::RunHealth;
use truekeep_core::{Moment, Version};
use truekeep_engine::{Ending, Happening};

use crate::world::tap::Fault;
use crate::world::{World, pass, pass_ms};

/// Rules 93, 96.
#[tokio::test(start_paused = true)]
async fn trouble_that_may_pass_is_noted_waited_out_and_forgotten() {
    for class in [Retry, Unknown] {
        let world = World::new();
        let process = world.process();
        let running = process.start();
        pass(2).await;
        process.tap.fault("sink.apply", 3, Fault::Fails(class));
        world.rows(0..3, "first");
        pass_ms(100).await;
        let (run, _) = world.run().await;
        assert_eq!((run.health.attempts, run.health.code), (1, Some(Code::SINK_UNAVAILABLE)));
        assert_eq!(run.health.text, "failed to do as planned");
        assert!(run.health.due_at.is_some());
        pass(2).await;
        assert_eq!(world.run().await.0.health.attempts, 2);
        assert!(world.is_held().await, "the lease is kept while it is waited");
        pass(10).await;
        assert!(world.equal());
        assert_eq!(world.run().await.0.health, RunHealth::default());
        assert_eq!(world.certificate().await.state, State::Complete);
        running.stop().await;
    }
}

/// Rule 93.
#[tokio::test(start_paused = true)]
async fn tries_come_ever_more_seldom_up_to_the_cap() {
    let world = World::new();
    for calls in ["sink.apply", "ledger.pipeline"] {
        let process = world.process();
        process.tap.cut(calls);
        world.rows(0..3, calls);
        let running = process.start();
        pass(4 * 3_600).await;
        running.stop().await;
        let log = process.tap.log().into_iter().filter(|(_, call)| *call == calls);
        let tries: Vec<Duration> = log.map(|(at, _)| at).collect();
        let waits: Vec<u64> = tries.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert_eq!(waits[..5], [1, 2, 4, 9, 18], "{calls}: doubling, and an eighth on top");
        assert!(waits.iter().all(|wait| *wait <= 900) && waits.last() == Some(&900), "{waits:?}");
    }
}

/// Rule 94: no hot loop, and an end for a worker that is to end when nothing is due.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_to_end_gives_up_after_the_last_allowed_failure() {
    for calls in ["feed.changes", "sink.prepare", "sink.apply", "ledger.pipeline"] {
        for class in [Retry, Unknown, Fenced] {
            let world = World::new();
            world.rows(0..3, "first");
            let process = world.process();
            process.tap.fault(calls, u32::MAX, Fault::Fails(class));
            let ending = process.drain().await;
            let code = Code::SINK_UNAVAILABLE;
            assert_eq!(ending, Ending::Halted(code, "failed to do as planned".into()), "{calls}");
            assert_eq!(process.tap.count(calls), 5, "{calls}");
            assert!(!world.equal());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_newer_is_given_way_to_at_once() {
    let world = World::new();
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.fault("sink.apply", 1, Fault::Fails(Fenced));
    let before = world.run().await;
    world.rows(0..3, "first");
    pass_ms(100).await;
    assert!(!world.is_held().await);
    assert_eq!(world.run().await, before, "nothing is written");
    assert!(process.happened().contains(&Happening::Released));
    pass(11).await;
    assert!(world.equal(), "nobody newer came");
    running.stop().await;
}

/// Rule 105: what needs an operator stops this scope, and it looks again by itself.
#[tokio::test(start_paused = true)]
async fn what_needs_an_operator_halts_and_recovers_by_itself_once_it_is_mended() {
    for (calls, class) in
        [("sink.apply", Halted), ("feed.changes", Halted), ("feed.find", Terminal)]
    {
        let world = World::new();
        world.rows(0..3, "first");
        world.drain().await;
        let process = world.process();
        let running = process.start();
        pass(2).await;
        process.tap.fault(calls, u32::MAX, Fault::Fails(class));
        if calls == "feed.find" {
            // An item makes the feed be looked into.
            process.tap.bear("00000", crate::world::tap::Grudge::PutsOff);
        }
        world.rows(0..3, "second");
        pass(3).await;
        let (run, phase) = world.run().await;
        assert!(matches!(phase, Phase::Halted(_)), "{calls}: {phase:?}");
        assert_eq!(run.health.code, Some(Code::SINK_UNAVAILABLE));
        let certificate = world.certificate().await;
        assert_eq!(certificate.state, State::Stale);
        assert_eq!(certificate.code, Some(Code::SINK_UNAVAILABLE));
        assert!(world.is_held().await, "the scope is not left to others");
        process.tap.heal();
        pass(40).await;
        assert!(world.equal(), "{calls}");
        assert_eq!(world.certificate().await.state, State::Complete);
        assert_eq!(world.run().await.0.health, RunHealth::default());
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_to_end_ends_at_what_needs_an_operator() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.fault("sink.prepare", u32::MAX, Fault::Fails(Halted));
    let text = "failed to do as planned".to_owned();
    assert_eq!(process.drain().await, Ending::Halted(Code::SINK_UNAVAILABLE, text));
    assert!(!world.is_held().await);
    assert_eq!(process.drain().await, process.drain().await, "each time anew");
}

/// One thing goes wrong, once, anywhere: after that the page begins again at the committed cursor
/// and nothing is lost or left behind.
#[tokio::test(start_paused = true)]
async fn a_single_fault_at_any_call_loses_nothing() {
    let faults = [
        Fault::Fails(Retry),
        Fault::Fails(Unknown),
        Fault::Fails(Fenced),
        Fault::Fails(Halted),
        Fault::AnswerLost,
        Fault::Slow(Duration::from_secs(100)),
    ];
    for call in 0..60 {
        for fault in faults {
            let world = small(call);
            let process = world.process();
            process.tap.fault_after("", call, 1, fault);
            finishes(&world, &process).await;
            assert!(world.equal(), "{fault:?} at call {call}: {:?}", process.tap.log());
        }
    }
}

/// A call within a turn that never answers costs the lease, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_hung_call_loses_nothing() {
    for calls in ["sink.", "feed.changes", "records.", "ledger.commit", "feed.register"] {
        for skip in 0..4 {
            let world = small(skip);
            let process = world.process();
            process.tap.fault_after(calls, skip, 1, Fault::Hangs);
            finishes(&world, &process).await;
            assert!(world.equal(), "{calls} {skip}");
        }
    }
}

/// Thirty rows in pages of four, some changed and some gone while they are delivered.
fn small(seed: u32) -> World {
    let mut world = World::new();
    world.settings.page_rows = 4;
    world.settings.page_bytes = 20;
    world.settings.poll_every = Duration::from_secs(1);
    world.rows(0..30, "first");
    world.rows(seed % 7..seed % 7 + 10, "second");
    world.source.delete(&crate::world::row(seed % 11));
    world
}

async fn finishes(world: &World, process: &crate::world::Process) {
    let running = process.start();
    pass(1).await;
    world.rows(20..25, "third");
    world.source.delete(&crate::world::row(24));
    let newest = Moment::at(Version::new(47));
    for _ in 0..10 {
        pass(110).await;
        let certificate = world.certificate().await;
        if certificate.state == State::Complete && certificate.moment.as_ref() == Some(&newest) {
            break;
        }
    }
    assert_eq!(world.certificate().await.moment, Some(newest), "{:?}", process.tap.log());
    assert_eq!(world.run().await.0.health, RunHealth::default());
    running.stop().await;
}

/// X27: an outage of the ledger counts for no record.
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_ledger_is_waited_out_and_burns_no_attempt() {
    let world = World::new();
    let process = world.process();
    process.tap.bear("00001", crate::world::tap::Grudge::PutsOff);
    world.rows(0..3, "first");
    let running = process.start();
    pass_ms(100).await;
    assert_eq!(world.item("00001").await.expect("an item").attempts, 1);
    for _ in 0..20 {
        process.tap.cut("ledger.");
        pass(5).await;
        process.tap.heal();
        process.tap.fault("sink.apply", u32::MAX, Fault::Fails(Unknown));
        pass_ms(20).await;
    }
    assert_eq!(world.item("00001").await.expect("an item").attempts, 1);
    process.tap.heal();
    pass(1_000).await;
    assert!(world.equal());
    running.stop().await;
}
