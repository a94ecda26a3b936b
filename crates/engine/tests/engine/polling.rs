//! How often a worker looks whether the source changed, what it does between two looks, and how much
//! it takes at once.

use std::time::Duration;

use truekeep_core::failure::FailureClass;
use truekeep_core::ports::Feed;
use truekeep_engine::Ending;

use crate::world::tap::{Fault, Tap};
use crate::world::{World, pass, pass_ms, row};

const SOONEST: Duration = Duration::from_millis(5);

fn looks(tap: &Tap) -> Vec<Duration> {
    tap.log().into_iter().filter(|(_, call)| *call == "feed.pulse").map(|(at, _)| at).collect()
}

/// The same holds after a change, once it is over.
#[tokio::test(start_paused = true)]
async fn an_idle_source_is_looked_at_twenty_times_a_second() {
    let world = World::new();
    let process = world.process();
    let running = process.start();
    for change in 0..3 {
        world.rows(0..10, &format!("change {change}"));
        pass(5).await;
        process.tap.forget_log();
        pass(60).await;
        let looks = looks(&process.tap).len();
        // And once more at each end of a second's wait.
        assert!((1_140..=1_262).contains(&looks), "{looks} looks");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_change_a_look_waits_no_longer_than_the_source_was_still() {
    let world = World::new();
    let process = world.process();
    let every = world.settings.poll_every;
    let running = process.start();
    pass(5).await;
    process.tap.forget_log();
    world.rows(0..1, "first");
    pass_ms(900).await;
    let looks = looks(&process.tap);
    let log = process.tap.log();
    let (sent, _) = log.iter().find(|(_, call)| *call == "sink.apply").expect("it was sent");
    let after: Vec<_> = looks.iter().filter(|at| *at >= sent).copied().collect();
    let mut longest = Duration::ZERO;
    for pair in after.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause <= SOONEST.max(pair[0] - *sent).min(every), "{pause:?} at {:?}", pair[0]);
        longest = longest.max(pause);
    }
    assert_eq!(longest, every);
    assert!(after.len() <= 20 + 6, "{} looks", after.len());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_steady_stream_no_change_waits_longer_than_the_pause_between_two() {
    let world = World::new();
    let running = world.process().start();
    pass(5).await;
    for pause in [8, 16, 32] {
        for change in 0..50 {
            world.rows(change..change + 1, &format!("{pause}"));
            pass_ms(pause).await;
            // The first ones come to a source that was idle.
            assert!(world.equal() || change < 8, "change {change}, {pause} ms apart");
        }
    }
    running.stop().await;
}

/// What is not needed any more must not keep a change waiting: between two calls there is a look.
#[tokio::test(start_paused = true)]
async fn what_a_burst_left_behind_goes_while_nothing_comes() {
    let world = World::new();
    world.rows(0..3_000, "first");
    world.drain().await;
    (0..3_000).for_each(|number| world.source.delete(&row(number)));
    let process = world.process();
    process.tap.fault("feed.prune", 3, Fault::Fails(FailureClass::Retry));
    let running = process.start();
    pass(10).await;
    assert!(world.equal());
    assert_eq!(world.source.prune().await.expect("pruned"), 0, "nothing is left");
    let log = process.tap.log();
    let idle = log.iter().rposition(|(_, call)| *call == "feed.register").expect("acknowledged");
    let calls = log[idle..].iter().map(|(_, call)| *call);
    let calls: Vec<_> = calls.filter(|call| ["feed.prune", "feed.pulse"].contains(call)).collect();
    let pruned = calls.iter().filter(|call| **call == "feed.prune").count();
    assert!(pruned > 3_000 / 500, "{pruned} calls");
    let twice = |pair: &&[&str]| pair[0] == "feed.prune" && pair[1] == "feed.prune";
    assert_eq!(calls.windows(2).skip(1).find(twice), None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_cannot_be_pruned_is_left_alone_for_a_while() {
    let world = World::new();
    let process = world.process();
    world.rows(0..10, "first");
    process.tap.cut("feed.prune");
    let running = process.start();
    pass(60).await;
    assert!(process.tap.count("feed.prune") <= 62);
    running.stop().await;
}

/// A page costs the wait for a lock or a disk however small it is.
#[tokio::test(start_paused = true)]
async fn whoever_is_behind_takes_larger_pages_unless_they_are_slow() {
    for (each_ms, pages) in [(10, 0..=6), (450, 0..=6), (700, 30..=30), (1_100, 100..=300)] {
        let mut world = World::new();
        world.settings.page_rows = 10;
        world.rows(0..300, "first");
        let process = world.process();
        process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_millis(each_ms)));
        assert_eq!(process.drain().await, Ending::Drained);
        let sent = process.tap.count("sink.apply");
        assert!(pages.contains(&sent), "{sent} pages of {each_ms} ms");
    }
}
