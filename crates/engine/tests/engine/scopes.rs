//! Many scopes under one worker.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::ports::Archive;
use truekeep_engine::Ending;

use crate::world::tap::Fault;
use crate::world::{Process, World, pass, scope};

/// Worlds that one process works on, all in the ledger of the first.
fn many(process: &Process, count: u32) -> (Vec<World>, Vec<truekeep_engine::Pipeline>) {
    let worlds: Vec<_> = (0..count).map(|_| World::new()).collect();
    let pipelines = worlds.iter().enumerate().map(|(n, world)| {
        process.pipeline_of(&format!("scope-{n:02}"), &world.source, &world.sink)
    });
    let pipelines = pipelines.collect();
    (worlds, pipelines)
}

/// Rules 8, 119.
#[tokio::test(start_paused = true)]
async fn twenty_scopes_share_two_turns_and_all_finish() {
    let mut home = World::new();
    home.settings.turns_at_once = 2;
    home.settings.page_rows = 10;
    let process = home.process();
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_millis(100)));
    let (worlds, pipelines) = many(&process, 20);
    for (n, world) in (0..).zip(&worlds) {
        world.rows(0..10 * (n + 1), "first");
    }
    let (_stopper, stop) = truekeep_engine::Stopper::new();
    let report = process.worker(pipelines).run_once(stop).await;
    assert_eq!(report.len(), 20);
    for ((n, world), (ended, ending)) in worlds.iter().enumerate().zip(report) {
        assert_eq!((ended, ending), (scope(&format!("scope-{n:02}")), Ending::Drained));
        assert!(world.equal());
        let certificate = home.ledger.certificate(&scope(&format!("scope-{n:02}"))).await;
        assert_eq!(certificate.expect("answered").expect("known").state, State::Complete);
    }
}

/// Rule 119: a scope with endless work takes no turn away from the others.
#[tokio::test(start_paused = true)]
async fn no_scope_starves_beside_one_that_is_never_done() {
    let mut home = World::new();
    home.settings.turns_at_once = 1;
    home.settings.page_rows = 10;
    let process = home.process();
    let (worlds, pipelines) = many(&process, 5);
    worlds[0].rows(0..50_000, "endless");
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(1)));
    let running = process.start_all(pipelines);
    pass(10).await;
    for world in &worlds[1..] {
        world.rows(0..5, "first");
    }
    pass(20).await;
    assert!(!worlds[0].equal());
    assert!(worlds[1..].iter().all(World::equal));
    running.stop().await;
}

/// A scope in trouble stops no other.
#[tokio::test(start_paused = true)]
async fn a_scope_whose_sink_hangs_takes_one_turn_and_no_more() {
    let mut home = World::new();
    home.settings.turns_at_once = 2;
    let process = home.process();
    let (worlds, mut pipelines) = many(&process, 4);
    let hanging = World::new().process();
    hanging.tap.fault("sink.apply", u32::MAX, Fault::Hangs);
    pipelines[0] = hanging.pipeline_of("scope-00", &worlds[0].source, &worlds[0].sink);
    for world in &worlds {
        world.rows(0..5, "first");
    }
    let running = process.start_all(pipelines);
    pass(5).await;
    assert!(!worlds[0].equal());
    assert!(worlds[1..].iter().all(World::equal));
    running.stopper.stop();
}
