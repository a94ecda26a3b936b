//! Leases as a worker lives by them: taken, renewed, lost, given back.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Leases, RunState};
use truekeep_engine::{Ending, Happening};

use crate::world::tap::Fault;
use crate::world::{Running, World, pass, pass_ms, row, scope};

impl World {
    /// Whether somebody has the lease by the ledger's clock.
    pub async fn is_held(&self) -> bool {
        let (lease, now) = self.ledger.holder(&Self::scope()).await.expect("answered");
        lease.is_some_and(|lease| lease.expires_at > now)
    }
}

/// A worker that has delivered everything and idles.
async fn idling(world: &World) -> (crate::world::Process, Running) {
    let process = world.process();
    let running = process.start();
    pass(2).await;
    assert!(world.equal() && world.is_held().await);
    process.tap.forget_log();
    (process, running)
}

/// Rule 15.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_stopped_gives_its_lease_back_at_once() {
    let world = World::new();
    let (_, first) = idling(&world).await;
    assert_eq!(first.stop().await, [(World::scope(), Ending::Stopped)]);
    assert!(!world.is_held().await);
    let began = world.elapsed();
    world.rows(0..3, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    assert!(world.equal());
    assert_eq!(world.elapsed(), began, "nobody waited for an expiry");
    assert!(world.run().await.1.tail().expect("tailed").probe.is_none(), "nobody had died");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_stopped_finishes_the_turn_under_way() {
    let world = World::new();
    let (process, running) = idling(&world).await;
    process.tap.fault("sink.apply", 1, Fault::Slow(Duration::from_secs(5)));
    world.rows(0..3, "first");
    pass(1).await;
    assert!(!world.equal());
    running.stopper.stop();
    running.stopper.stop();
    assert_eq!(running.stop().await[0].1, Ending::Stopped, "asked thrice");
    assert!(world.equal());
    assert_eq!(world.run().await.1.tail().expect("tailed").cursor.passed.newest().get(), 3);
    assert!(!world.is_held().await);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_its_next_try_is_stopped_at_once() {
    let world = World::new();
    let (process, running) = idling(&world).await;
    process.tap.fault("sink.apply", u32::MAX, Fault::Fails(FailureClass::Retry));
    world.rows(0..3, "first");
    pass(20).await;
    let began = world.elapsed();
    running.stop().await;
    assert_eq!(world.elapsed(), began);
}

/// Take-over within the lease and a second.
#[tokio::test(start_paused = true)]
async fn a_killed_workers_scope_is_taken_over_a_lease_and_a_second_later_at_most() {
    let world = World::new();
    let (process, first) = idling(&world).await;
    pass(9).await;
    let second = world.process();
    let taking = second.start();
    first.kill().await;
    process.tap.forget_log();
    let killed_at = world.elapsed();
    world.rows(0..3, "first");
    while !world.equal() {
        pass_ms(10).await;
    }
    let took = world.elapsed().saturating_sub(killed_at);
    assert!(took <= world.settings.lease_ttl + Duration::from_secs(1), "{took:?}");
    assert_eq!(process.tap.count("ledger.leases.renew"), 0, "the dead renew nothing");
    taking.stop().await;
}

/// Rule 9.
#[tokio::test(start_paused = true)]
async fn work_that_takes_longer_than_the_lease_is_not_taken_over() {
    let world = World::new();
    let (process, running) = idling(&world).await;
    process.tap.fault("sink.apply", 1, Fault::Slow(world.settings.lease_ttl * 4));
    let rival = world.process();
    let waiting = rival.start();
    world.rows(0..3, "first");
    pass(130).await;
    assert!(world.equal());
    assert_eq!(rival.tap.count("sink."), 0);
    waiting.stop().await;
    running.stop().await;
}

/// Rules 4, 10, 16, X28.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_cut_off_from_the_ledger_stops_sending_before_anybody_takes_over() {
    let mut world = World::new();
    world.settings.page_bytes = 5;
    let (process, running) = idling(&world).await;
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(1)));
    world.rows(0..200, "first");
    pass(3).await;
    process.tap.cut("ledger.");
    let second = world.process();
    let taking = second.start();
    pass(60).await;
    let last = process.tap.log().into_iter().rfind(|(_, call)| *call == "sink.apply");
    let took = second.tap.log().into_iter().find(|(_, call)| *call == "sink.prepare");
    let (last, took) = (last.expect("it had begun").0, took.expect("taken over").0);
    assert!(last < took, "sent until {last:?}, taken over at {took:?}");
    assert!(process.happened().contains(&Happening::Lost));
    pass(240).await;
    assert!(world.equal());
    process.tap.heal();
    pass(60).await;
    assert_eq!(world.run().await.0.state, RunState::Active, "the loser fails no run");
    assert_eq!(world.certificate().await.state, State::Complete);
    assert!(matches!(process.happened().last(), Some(Happening::HeldBy(..))));
    running.stop().await;
    taking.stop().await;
}

/// X60.
#[tokio::test(start_paused = true)]
async fn a_scope_whose_turn_hangs_is_taken_over_and_its_turn_is_ended() {
    let world = World::new();
    let (process, running) = idling(&world).await;
    process.tap.fault("sink.apply", 1, Fault::Hangs);
    world.rows(0..3, "first");
    let second = world.process();
    let taking = second.start();
    pass((world.settings.turn_max + world.settings.lease_ttl).as_secs() + 12).await;
    assert!(world.equal());
    assert!(process.happened().contains(&Happening::Lost));
    assert_eq!(process.tap.count("ledger.commit"), 0, "nothing is written after the loss");
    taking.stop().await;
    running.stop().await;
}

/// X60.
#[tokio::test(start_paused = true)]
async fn a_scope_whose_run_is_never_found_is_taken_over_as_well() {
    let world = World::new();
    world.drain().await;
    let process = world.process();
    process.tap.fault("ledger.open_run", 1, Fault::Hangs);
    let running = process.start();
    pass(1).await;
    world.rows(0..3, "first");
    let taking = world.process().start();
    pass((world.settings.turn_max + world.settings.lease_ttl).as_secs() + 12).await;
    assert!(world.equal());
    taking.stop().await;
    running.stop().await;
}

/// Rule 30.
#[tokio::test(start_paused = true)]
async fn trouble_between_taking_the_lease_and_finding_the_run_gives_it_back_at_once() {
    for call in ["ledger.open_run", "ledger.pulse"] {
        let world = World::new();
        let process = world.process();
        process.tap.cut(call);
        let running = process.start();
        pass_ms(10).await;
        assert!(process.tap.count(call) > 0 && !world.is_held().await, "{call}");
        process.tap.heal();
        pass(5).await;
        assert!(world.is_held().await, "{call}");
        running.stop().await;
    }
}

/// A repeat with the same token finds the lease that the first try took.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_taking_of_a_lease_locks_nobody_out() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.fault("ledger.leases.acquire", 2, Fault::AnswerLost);
    assert_eq!(process.drain().await, Ending::Drained);
    assert!(world.equal());
    assert!(world.elapsed() < world.settings.lease_ttl);
}

/// Rule 57, X68.
#[tokio::test(start_paused = true)]
async fn a_worker_with_other_rules_takes_no_lease() {
    let mut world = World::new();
    world.drain().await;
    world.rows(0..3, "first");
    world.fingerprint = "rules-b".into();
    let process = world.process();
    assert_eq!(process.drain().await, Ending::Halted(Code::RULES_CHANGED, String::new()));
    assert_eq!(process.tap.count("ledger.leases.acquire"), 0);
    assert_eq!(process.tap.count("sink."), 0);
}

/// Rules 1, 14.
#[tokio::test(start_paused = true)]
async fn a_worker_that_finds_the_lease_held_says_by_whom_and_writes_nothing() {
    let world = World::new();
    let (_, running) = idling(&world).await;
    world.rows(0..3, "first");
    let process = world.process();
    let ending = process.drain().await;
    assert!(matches!(ending, Ending::Held(..)), "{ending:?}");
    assert_eq!(process.tap.count("ledger.commit") + process.tap.count("sink."), 0);
    running.stop().await;
}

/// A broken assertion ends the run, not the worker.
#[tokio::test(start_paused = true)]
async fn a_bug_in_one_scope_ends_that_scope_and_frees_its_lease() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.fault("sink.apply", 1, Fault::Panics);
    let other = World::new();
    let pipelines =
        vec![process.pipeline(), other.process().pipeline_of("other", &other.source, &other.sink)];
    let running = process.start_all(pipelines);
    pass(60).await;
    other.rows(0..3, "first");
    pass(1).await;
    assert!(other.equal(), "the other scope goes on");
    assert_eq!(world.drain().await, Ending::Drained, "the lease was renewed no more");
    assert!(world.equal());
    let report = running.stop().await;
    assert_eq!(report.len(), 2);
    assert!(matches!(&report[0].1, Ending::Halted(code, _) if *code == Code::UNEXPECTED));
    assert_eq!(report[1], (scope("other"), Ending::Stopped));
}

/// Rules 3, 6.
#[tokio::test(start_paused = true)]
async fn two_workers_that_lose_the_lease_in_turn_leave_the_sink_equal() {
    let mut world = World::new();
    world.settings.lease_ttl = Duration::from_secs(3);
    world.settings.page_rows = 5;
    let workers = [world.process(), world.process()];
    let running = workers.each_ref().map(crate::world::Process::start);
    for worker in &workers {
        worker.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_millis(150)));
    }
    for round in 0..20_u32 {
        let cut = &workers[round as usize % 2];
        cut.tap.cut("ledger.");
        for n in 0..20 {
            world.rows(n..n + 1, &format!("round {round}"));
            world.source.delete(&row((n * 7 + round) % 40));
            pass_ms(300).await;
        }
        cut.tap.heal();
    }
    pass(60).await;
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
    for worker in &workers {
        let taken = worker.happened().into_iter();
        let taken = taken.filter(|what| matches!(what, Happening::Acquired(_))).count();
        assert!(taken > 5, "{taken} takings");
    }
    for running in running {
        running.stop().await;
    }
}

/// X28, L3: a jump of the ledger's clock costs leases and repeats, never a record.
#[tokio::test(start_paused = true)]
async fn jumps_of_the_ledgers_clock_cost_no_record_and_no_trust() {
    let mut world = World::new();
    world.settings.page_rows = 5;
    let running = [world.process().start(), world.process().start()];
    for (round, seconds) in [3_600, -7_200, 31, -31, 86_400, -86_400, -3].into_iter().enumerate() {
        for n in 0..30 {
            world.rows(n..n + 1, &format!("round {round}"));
            world.source.delete(&row(n / 2));
            pass_ms(20).await;
            if n == 15 {
                world.jump(seconds);
            }
        }
        pass(40).await;
        assert!(world.equal(), "after a jump of {seconds} s");
        assert_eq!(world.certificate().await.state, State::Complete);
        let newest = world.run().await.1.tail().expect("tailed").cursor.clone();
        assert_eq!(world.certificate().await.moment, Some(newest.passed.clone()));
    }
    for running in running {
        running.stop().await;
    }
}
