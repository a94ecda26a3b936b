//! Records that kill whoever delivers them (F3).

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{ItemFilter, ItemState, Items};

use crate::world::tap::{Fault, Grudge};
use crate::world::{Process, World, key, pass, row};

/// Workers start and die, one after another, until one of them lives for ten minutes; returns how
/// many died.
async fn until_one_lives(process: &Process) -> u32 {
    for deaths in 0..100 {
        let running = process.start();
        tokio::select! {
            () = process.tap.killed.notified() => running.kill().await,
            () = pass(600) => {
                running.stop().await;
                return deaths;
            }
        }
    }
    panic!("a hundred workers died");
}

/// Everything but the killers is delivered, and they alone are parked.
async fn only_these_are_parked(world: &World, killers: &[u32]) {
    let keys: Vec<_> = killers.iter().map(|n| row(*n)).collect();
    assert_eq!(world.differences(), keys);
    let items = world.ledger.list(&World::scope(), ItemFilter::All, None, 100).await;
    let items = items.expect("answered");
    assert_eq!(items.iter().map(|item| item.key.clone()).collect::<Vec<_>>(), keys);
    for item in items {
        assert_eq!((item.state, item.code), (ItemState::Parked, Code::KILLS_WORKER));
    }
    assert_eq!(world.certificate().await.state, State::Partial);
}

/// Rule 95, X27.
#[tokio::test(start_paused = true)]
async fn a_record_that_kills_is_found_alone_and_parked_and_its_neighbours_are_delivered() {
    for page_rows in [1, 2, 8, 1_000] {
        let mut world = World::new();
        world.settings.poll_every = Duration::from_secs(1);
        world.settings.page_rows = page_rows;
        world.rows(0..100, "first");
        let process = world.process();
        process.tap.bear("00037", Grudge::Kills);
        let deaths = until_one_lives(&process).await;
        only_these_are_parked(&world, &[37]).await;
        assert!(deaths <= 20, "{deaths} died, pages of {page_rows}");
    }
}

#[tokio::test(start_paused = true)]
async fn neighbouring_killers_are_all_found() {
    let mut world = World::new();
    world.settings.poll_every = Duration::from_secs(1);
    world.settings.page_rows = 16;
    world.rows(0..60, "first");
    let process = world.process();
    for killer in [0, 30, 31, 59] {
        process.tap.bear(row(killer).as_str(), Grudge::Kills);
    }
    until_one_lives(&process).await;
    only_these_are_parked(&world, &[0, 30, 31, 59]).await;
}

/// X27: after a claim that ended without settling, items are claimed alone.
#[tokio::test(start_paused = true)]
async fn an_item_that_kills_is_parked_and_no_item_or_page_beside_it() {
    for page_rows in [1, 4, 1_000] {
        let mut world = World::new();
        world.settings.poll_every = Duration::from_secs(1);
        world.settings.page_rows = page_rows;
        world.rows(0..30, "first");
        let process = world.process();
        for n in 0..30 {
            process.tap.bear(row(n).as_str(), Grudge::Refuses);
        }
        process.drain().await;
        process.tap.heal();
        process.tap.bear("00017", Grudge::Kills);
        for n in 0..30 {
            world.ledger.retry(&World::scope(), &row(n)).await.expect("answered");
        }
        world.rows(40..60, "first");
        let deaths = until_one_lives(&process).await;
        only_these_are_parked(&world, &[17]).await;
        assert_eq!(deaths, world.settings.delivery.attempts_max, "pages of {page_rows}");
    }
}

/// A death is the fault of the page that was announced, not of what is read ahead of it.
#[tokio::test(start_paused = true)]
async fn a_record_that_kills_whoever_loads_it_is_found_behind_its_slow_neighbour() {
    let mut world = World::new();
    world.settings.poll_every = Duration::from_secs(1);
    world.settings.page_rows = 8;
    world.rows(0..20, "first");
    let process = world.process();
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(1)));
    process.tap.bear("00011", Grudge::KillsReader);
    until_one_lives(&process).await;
    only_these_are_parked(&world, &[11]).await;
}

/// Nor is it the page's fault if an item killed, however many have died of that.
#[tokio::test(start_paused = true)]
async fn deaths_of_an_item_do_not_add_up_to_the_fault_of_a_page() {
    let mut world = World::new();
    world.settings.poll_every = Duration::from_secs(1);
    world.settings.page_rows = 1;
    world.rows(17..18, "first");
    let process = world.process();
    process.tap.bear("00017", Grudge::Refuses);
    process.drain().await;
    world.ledger.retry(&World::scope(), &row(17)).await.expect("answered");
    process.tap.bear("00017", Grudge::Kills);
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(10)));
    world.rows(40..60, "first");
    for _ in 0..5 {
        pass(world.settings.lease_ttl.as_secs()).await;
        let running = process.start();
        tokio::select! {
            () = process.tap.killed.notified() => {}
            () = pass(600) => {}
        }
        running.kill().await;
    }
    // And one that an operator kills with an innocent page in its hands.
    pass(world.settings.lease_ttl.as_secs()).await;
    let running = process.start();
    pass(5).await;
    running.kill().await;
    until_one_lives(&process).await;
    only_these_are_parked(&world, &[17]).await;
}

/// A worker that dies idle, or is killed by an operator, accuses nobody.
#[tokio::test(start_paused = true)]
async fn workers_that_die_of_something_else_accuse_nobody() {
    let mut world = World::new();
    world.settings.poll_every = Duration::from_secs(1);
    world.settings.page_rows = 4;
    world.rows(0..10, "first");
    let process = world.process();
    for round in 0..30 {
        let running = process.start();
        pass(5).await;
        world.rows(0..10, &format!("round {round}"));
        running.kill().await;
        pass(world.settings.lease_ttl.as_secs()).await;
    }
    process.drain().await;
    nobody_is_parked(&world).await;
}

async fn nobody_is_parked(world: &World) {
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Once its row changes, a killer has another chance.
#[tokio::test(start_paused = true)]
async fn a_parked_killer_that_was_mended_is_delivered() {
    let mut world = World::new();
    world.settings.poll_every = Duration::from_secs(1);
    world.settings.page_rows = 8;
    world.rows(0..20, "first");
    let process = world.process();
    process.tap.bear("00011", Grudge::Kills);
    until_one_lives(&process).await;
    process.tap.heal();
    world.source.put(&key("00011"), "mended");
    process.drain().await;
    nobody_is_parked(&world).await;
}

/// A record on which the sink hangs is a killer too: its turn is ended, and the page is halved.
#[tokio::test(start_paused = true)]
async fn a_record_on_which_the_sink_hangs_is_parked_with_no_worker_dying() {
    let mut world = World::new();
    world.settings.page_rows = 8;
    world.settings.poll_every = Duration::from_secs(5);
    world.rows(0..20, "first");
    let process = world.process();
    process.tap.bear("00011", Grudge::Kills);
    let running = process.start();
    pass(2 * 3_600).await;
    only_these_are_parked(&world, &[11]).await;
    running.stop().await;
}
