//! What a pause by an operator does to those who work, whatever they are at.

use std::time::Duration;

use truekeep_core::Revision;
use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::follow::Phase;
use truekeep_core::ports::{Ledger, Operations, Steer, Steered, Steering};
use truekeep_engine::{Ending, Happening};

use crate::world::tap::Fault;
use crate::world::{Process, Running, World, pass, pass_ms, row};

/// An operator who just looked.
async fn steer(world: &World, to: Steering) {
    let pipeline = World::scope().pipeline().clone();
    let record = world.ledger.pipeline(&pipeline).await.expect("answered");
    let seen = record.map_or(Revision::new(0), |record| record.revision);
    let steer = Steer { pipeline, to, seen, by: "by an operator".into() };
    let answer = world.ledger.steer(&steer).await.expect("answered");
    assert!(matches!(answer, Steered::Done(_)), "{answer:?}");
}

/// A worker that has delivered 100 rows and idles.
async fn idling(world: &World) -> (Process, Running) {
    world.rows(0..100, "first");
    let process = world.process();
    let running = process.start();
    pass(2).await;
    assert!(world.equal() && world.is_held().await);
    process.tap.forget_log();
    (process, running)
}

/// What a look takes that finds nothing due: the change counter's poll, and the look itself.
const IDLE_LOOK_MS: u64 = 2_100;

/// Rule 107.
#[tokio::test(start_paused = true)]
async fn a_paused_scope_has_no_holder_and_delivers_nothing_until_it_is_resumed() {
    let world = World::new();
    let (process, running) = idling(&world).await;
    let certified = world.certificate().await;
    steer(&world, Steering::Pause).await;
    pass_ms(IDLE_LOOK_MS).await;
    assert!(!world.is_held().await);
    let paused = Happening::Inactive(Code::PIPELINE_PAUSED);
    assert!(process.happened().contains(&Happening::Released));
    assert_eq!(process.happened().last(), Some(&paused));
    world.rows(100..110, "second");
    pass(3_600).await;
    assert_eq!((process.tap.sent().len(), process.tap.count("ledger.commit")), (0, 0));
    assert_eq!(world.certificate().await, certified, "it speaks of its moment, and no other");
    assert_eq!(certified.state, State::Complete);
    steer(&world, Steering::Resume).await;
    pass_ms(IDLE_LOOK_MS).await;
    assert!(world.equal() && world.is_held().await);
    let fresh: Vec<_> = (100..110).map(row).collect();
    assert_eq!(process.tap.sent(), fresh, "from the cursor on");
    assert!(world.run().await.1.tail().expect("tailed").probe.is_none(), "nobody had died");
    running.stop().await;
}

/// Rule 107: whoever starts later finds it paused as well.
#[tokio::test(start_paused = true)]
async fn a_pause_survives_every_restart() {
    let world = World::new();
    let (_, running) = idling(&world).await;
    steer(&world, Steering::Pause).await;
    running.kill().await;
    world.rows(100..110, "second");
    pass(60).await;
    for _ in 0..2 {
        let process = world.process();
        let ending = process.drain().await;
        assert_eq!(ending, Ending::Halted(Code::PIPELINE_PAUSED, String::new()));
        assert_eq!(process.tap.count("sink.") + process.tap.count("ledger.commit"), 0);
    }
    steer(&world, Steering::Resume).await;
    assert_eq!(world.drain().await, Ending::Drained);
    assert!(world.equal());
}

/// Rule 107: between two pages, not after the last.
#[tokio::test(start_paused = true)]
async fn a_busy_worker_sees_the_pause_between_two_pages() {
    let mut world = World::new();
    world.settings.page_rows = 10;
    world.rows(0..1_000, "first");
    let process = world.process();
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_millis(500)));
    let running = process.start();
    pass(5).await;
    steer(&world, Steering::Pause).await;
    let before = process.tap.sent().len();
    pass_ms(IDLE_LOOK_MS).await;
    assert!(!world.is_held().await);
    let after = process.tap.sent().len();
    assert!(before > 0 && after < 1_000, "{before}, {after}");
    pass(60).await;
    assert_eq!(process.tap.sent().len(), after);
    assert_ne!(world.certificate().await.state, State::Complete);
    process.tap.heal();
    steer(&world, Steering::Resume).await;
    pass(5).await;
    assert!(world.equal());
    running.stop().await;
}

/// Rule 107: nobody has to wait for the next try, which may be minutes away.
#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_its_next_try_or_is_halted_sees_the_pause_as_soon() {
    for class in [FailureClass::Retry, FailureClass::Halted] {
        let world = World::new();
        let (process, running) = idling(&world).await;
        process.tap.fault("sink.", u32::MAX, Fault::Fails(class));
        world.rows(100..110, "second");
        pass(300).await;
        assert!(world.is_held().await, "{class:?}");
        let halted = matches!(world.run().await.1, Phase::Halted(_));
        assert_eq!(halted, class == FailureClass::Halted);
        steer(&world, Steering::Pause).await;
        pass_ms(IDLE_LOOK_MS).await;
        assert!(!world.is_held().await, "{class:?}");
        process.tap.heal();
        steer(&world, Steering::Resume).await;
        pass(31).await;
        assert!(world.equal(), "{class:?}");
        assert_eq!(world.certificate().await.state, State::Complete);
        running.stop().await;
    }
}

/// A pause between the look and the taking of the lease: the ledger refuses.
#[tokio::test(start_paused = true)]
async fn a_lease_asked_for_before_the_pause_is_not_given_after_it() {
    let world = World::new();
    world.drain().await;
    let process = world.process();
    let slow = Fault::Slow(Duration::from_secs(1));
    process.tap.fault("ledger.leases.acquire", 1, slow);
    let running = process.start();
    pass_ms(500).await;
    steer(&world, Steering::Pause).await;
    pass(5).await;
    assert!(!world.is_held().await);
    assert_eq!(process.tap.count("sink."), 0);
    running.stop().await;
}
