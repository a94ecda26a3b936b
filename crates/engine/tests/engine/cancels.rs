//! What cancelling a reconcile does to the run, to who works on it and to what is certified.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{Cancelled, Ledger, Operations, ProcedureKind, Run, RunState};
use truekeep_core::reconcile::Stored;
use truekeep_engine::Ending;

use crate::reconcile::{delivered, ended, plant, wish};
use crate::world::tap::Fault;
use crate::world::{Process, World, pass, row};

async fn reconcile(world: &World) -> Option<Run> {
    world.ledger.load(&World::scope(), ProcedureKind::Reconcile).await.expect("answered")
}

async fn cancel(world: &World) {
    let run = reconcile(world).await.expect("one was begun");
    let answer = world.ledger.cancel(&World::scope(), &run.id, "by an operator").await;
    assert!(matches!(answer, Ok(Cancelled::Ended(_))), "{answer:?}");
}

fn phase(run: &Run) -> &'static str {
    let stored: Stored = serde_json::from_str(&run.phase).expect("a phase");
    stored.phase.name()
}

/// A worker whose reconcile is in this phase; the next thing it asks of the sink takes a minute.
async fn working(world: &World, name: &str, wanted: &str) -> (Process, crate::world::Running) {
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.fault("sink.list", u32::MAX, Fault::Slow(Duration::from_secs(20)));
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(60)));
    wish(world, name, true).await;
    for _ in 0..300 {
        if reconcile(world).await.is_some_and(|run| phase(&run) == wanted) {
            return (process, running);
        }
        pass(1).await;
    }
    panic!("it never was {wanted}");
}

async fn certified(world: &World) -> (State, Option<Code>) {
    let certificate = world.certificate().await;
    (certificate.state, certificate.code)
}

/// Rule 107: a run that had found nothing leaves no doubt.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_that_had_found_nothing_changes_no_certificate() {
    let world = delivered().await;
    let (process, running) = working(&world, "wish", "comparing").await;
    cancel(&world).await;
    process.tap.heal();
    pass(300).await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::CANCELLED));
    assert_eq!(phase(&reconcile(&world).await.expect("it")), "comparing", "nothing moved it on");
    assert_eq!(certified(&world).await, (State::Complete, None));
    running.stop().await;
}

/// Rules 4 and 107: what the run had found stays in doubt, with the reason that nobody repairs it;
/// it is not begun again by itself, and an operator's next one mends it.
#[tokio::test(start_paused = true)]
async fn what_a_cancelled_run_had_found_stays_in_doubt_until_another_one_ends_well() {
    let world = delivered().await;
    for n in 0..5 {
        world.sink.lose(&row(n));
    }
    let (process, running) = working(&world, "wish", "settling").await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::DRIFT_FOUND)));
    cancel(&world).await;
    pass(3).await;
    process.tap.heal();
    pass(120).await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::CANCELLED)));
    assert!(world.equal(), "what was numbered is delivered all the same");
    let newest = reconcile(&world).await.expect("it");
    pass(1_800).await;
    assert_eq!(reconcile(&world).await, Some(newest), "nobody begins it again each minute");
    world.rows(0..1, "second");
    pass(2).await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::CANCELLED)));
    wish(&world, "again", false).await;
    pass(5).await;
    assert_eq!(ended(&world, "again").await.0, RunState::Succeeded);
    assert_eq!(certified(&world).await, (State::Complete, None));
    running.stop().await;
}

/// Rule 107: the range under way is the last that is purged; what comes after it stays.
#[tokio::test(start_paused = true)]
async fn after_a_cancel_no_range_is_begun() {
    let world = delivered().await;
    for n in 0..2_500 {
        plant(&world, &format!("nobody {n:04}"), 3);
    }
    let (process, running) = working(&world, "wish", "purging").await;
    // The first of three ranges is being listed.
    cancel(&world).await;
    pass(600).await;
    process.tap.heal();
    pass(600).await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::CANCELLED)));
    let left = world.sink.contents().len();
    assert!((1_500..=2_600).contains(&left), "{left} are left of 2,600");
    running.stop().await;
}

/// Rule 107: a worker that takes over learns of the cancel from the ledger.
#[tokio::test(start_paused = true)]
async fn a_cancel_is_not_forgotten_with_the_worker_that_it_concerned() {
    let world = delivered().await;
    for n in 0..5 {
        world.sink.lose(&row(n));
    }
    let (_, running) = working(&world, "wish", "settling").await;
    cancel(&world).await;
    running.kill().await;
    pass(31).await;
    assert_eq!(world.drain().await, Ending::Drained);
    let next = world.process().start();
    pass(300).await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::CANCELLED)));
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::CANCELLED));
    assert!(world.equal());
    next.stop().await;
}

/// X54: a doubt about everything is looked into, whatever was cancelled before.
#[tokio::test(start_paused = true)]
async fn a_sink_that_went_back_is_repaired_though_a_repair_was_cancelled() {
    let world = delivered().await;
    for n in 0..5 {
        world.sink.lose(&row(n));
    }
    let (process, running) = working(&world, "wish", "settling").await;
    cancel(&world).await;
    pass(3).await;
    process.tap.heal();
    pass(120).await;
    assert_eq!(certified(&world).await, (State::Stale, Some(Code::CANCELLED)));
    running.stop().await;
    let emptied = World { sink: std::sync::Arc::default(), ..world.clone() };
    let next = emptied.process().start();
    pass(300).await;
    assert!(emptied.equal());
    assert_eq!(certified(&emptied).await, (State::Complete, None));
    next.stop().await;
}
