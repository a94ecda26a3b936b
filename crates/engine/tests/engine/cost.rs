//! What turns and idling cost the ledger, the source and the sink.

use std::time::Duration;

use crate::world::tap::Grudge;
use crate::world::{World, pass, row};

/// Calls that write something in a ledger, a source or a sink; the renewal apart.
const WRITES: [&str; 11] = [
    "ledger.announce",
    "ledger.commit",
    "ledger.open_run",
    "ledger.leases.acquire",
    "ledger.leases.release",
    "ledger.items.claim",
    "feed.register",
    "feed.prune",
    "sink.prepare",
    "sink.apply",
    "sink.confirm",
];

/// An idle worker writes one renewal each third of the ttl, per worker and not per scope.
#[tokio::test(start_paused = true)]
async fn an_idle_worker_writes_one_renewal_each_third_of_the_ttl_for_any_number_of_scopes() {
    for scopes in [1, 12] {
        let home = World::new();
        let process = home.process();
        let worlds: Vec<_> = (0..scopes).map(|_| World::new()).collect();
        let pipelines = worlds.iter().enumerate().map(|(n, world)| {
            world.rows(0..10, "first");
            process.pipeline_of(&format!("scope-{n}"), &world.source, &world.sink)
        });
        let running = process.start_all(pipelines.collect());
        pass(5).await;
        process.tap.forget_log();
        pass(60).await;
        assert_eq!(process.tap.count("ledger.leases.renew"), 6, "{scopes} scopes");
        for call in WRITES {
            assert_eq!(process.tap.count(call), 0, "{call}, {scopes} scopes");
        }
        // And looks at the ledger (the run, and one that was wished for) and at the feed once a
        // second and scope.
        let looks = process.tap.count("ledger.pulse");
        assert!((55 * scopes..=62 * scopes).contains(&looks), "{looks} looks");
        assert!(process.tap.count("ledger.load") <= looks);
        let others = process.tap.count("ledger.") - process.tap.count("ledger.load");
        assert!(others <= looks + 6, "and at nothing else of the ledger");
        assert!(process.tap.count("feed.changes") <= 62 * scopes);
        running.stop().await;
    }
}

/// Rule 118: what a turn costs the ledger, counted between commits: the taking of a lease, pages,
/// acknowledgements, items, all of them.
#[tokio::test(start_paused = true)]
async fn a_turn_costs_the_ledger_six_calls_at_most() {
    let mut world = World::new();
    world.settings.page_rows = 10;
    // A pipeline is announced once in its life.
    world.drain().await;
    world.rows(0..100, "first");
    let process = world.process();
    for n in 0..20 {
        process.tap.bear(row(n).as_str(), Grudge::PutsOff);
    }
    let running = process.start();
    for round in 0..30 {
        if round == 10 {
            process.tap.heal();
        }
        world.rows(round..round + 15, &format!("round {round}"));
        pass(1).await;
    }
    running.stop().await;
    let log = process.tap.log();
    assert!(log.iter().any(|(_, call)| *call == "ledger.items.claim"));
    // A turn is over with its commit; one that commits nothing ends with a wait.
    let mut turns = vec![(Duration::ZERO, Vec::new())];
    for (at, call) in log.into_iter().filter(|(_, call)| call.starts_with("ledger.")) {
        let (last, calls) = turns.last_mut().expect("one");
        let over = calls.last() == Some(&"ledger.commit") || at - *last > Duration::from_millis(20);
        if over {
            turns.push((at, vec![call]));
        } else {
            calls.push(call);
        }
    }
    for (at, calls) in turns {
        assert!(calls.len() <= 6, "at {at:?}: {calls:?}");
    }
}
