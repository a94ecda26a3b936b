//! Sources, sinks and ledgers that went back, or are somebody else's: noticed before anything is
//! sent (F2).

use std::sync::Arc;

use truekeep_adapter_memory::MemorySource;
use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::follow::SourceWentBack;
use truekeep_core::ports::{Archive, Capture};
use truekeep_engine::Ending;

use crate::world::{Process, World, pass, pass_ms, row};

/// A world that was delivered and changed, over several starts.
async fn with_a_past(world: &World) {
    for round in 0..3 {
        world.rows(0..10, &format!("round {round}"));
        let running = world.process().start();
        pass(3).await;
        running.stop().await;
    }
    assert!(world.equal());
}

/// A new worker halts with this code, sends nothing, and makes the certificate stale.
async fn halts(world: &World, code: Code) -> Process {
    let process = world.process();
    let ending = process.drain().await;
    assert!(matches!(&ending, Ending::Halted(found, _) if *found == code), "{ending:?}");
    assert_eq!(process.tap.count("sink.apply"), 0, "nothing is sent");
    process
}

async fn is_stale(world: &World, code: Code) {
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.code), (State::Stale, Some(code)));
}

/// Rule 121.
#[tokio::test(start_paused = true)]
async fn a_source_that_was_restored_halts_even_once_it_has_overtaken_the_cursor() {
    for writes in [0, 200] {
        let world = World::new();
        world.rows(0..10, "first");
        world.drain().await;
        let backup = world.source.backup();
        with_a_past(&world).await;
        let now = world.source.backup();
        world.source.restore(&backup);
        world.rows(0..writes, "other");
        halts(&world, Code::SOURCE_WENT_BACK).await;
        is_stale(&world, Code::SOURCE_WENT_BACK).await;
        world.source.restore(&now);
        assert_eq!(world.drain().await, Ending::Drained, "the real one is back");
        assert_eq!(world.certificate().await.state, State::Complete);
    }
}

/// Rule 121: also if the backup is younger than the last acknowledgement, so that nothing but the
/// place in the feed tells the one future from the other.
#[tokio::test(start_paused = true)]
async fn a_source_that_overtook_the_cursor_after_a_late_backup_halts() {
    for writes in [0, 1, 3, 200] {
        let world = World::new();
        with_a_past(&world).await;
        let process = world.process();
        let running = process.start();
        pass(2).await;
        let before = process.tap.count("feed.register");
        world.rows(0..3, "acknowledged");
        while process.tap.count("feed.register") == before {
            pass_ms(10).await;
        }
        let backup = world.source.backup();
        world.rows(0..3, "lost");
        let acknowledged = process.tap.count("feed.register");
        pass_ms(200).await;
        running.kill().await;
        assert!(world.equal());
        assert_eq!(process.tap.count("feed.register"), acknowledged, "not acknowledged yet");
        let now = world.source.backup();
        world.source.restore(&backup);
        world.rows(0..writes, "other");
        pass(60).await;
        halts(&world, Code::SOURCE_WENT_BACK).await;
        is_stale(&world, Code::SOURCE_WENT_BACK).await;
        world.source.restore(&now);
        assert_eq!(world.drain().await, Ending::Drained, "the real one is back");
        assert_eq!(world.certificate().await.state, State::Complete);
    }
}

/// Rule 121: also while a worker runs, before anything of the page is sent.
#[tokio::test(start_paused = true)]
async fn a_source_that_is_restored_under_a_running_worker_halts_before_its_next_page_is_sent() {
    let world = World::new();
    with_a_past(&world).await;
    let backup = world.source.backup();
    let process = world.process();
    let running = process.start();
    pass(1).await;
    world.rows(0..10, "later");
    pass(3).await;
    process.tap.forget_log();
    world.source.restore(&backup);
    world.rows(0..200, "other");
    pass(3).await;
    assert_eq!(process.tap.count("sink.apply"), 0);
    is_stale(&world, Code::SOURCE_WENT_BACK).await;
    running.stop().await;
}

/// Rule 122: what only the lost future had is removed, what it overwrote is delivered again, and the
/// certificate says nothing good until both are done.
#[tokio::test(start_paused = true)]
async fn a_source_that_was_restored_is_repaired_if_the_policy_says_so() {
    for writes in [0, 200] {
        let world = World { source_went_back: SourceWentBack::Repair, ..World::new() };
        world.rows(0..400, "first");
        world.drain().await;
        let backup = world.source.backup();
        with_a_past(&world).await;
        world.rows(1_000..1_010, "lost");
        world.drain().await;
        world.source.restore(&backup);
        world.rows(500..500 + writes, "other");
        let process = world.process();
        let running = process.start();
        pass(20).await;
        is_stale(&world, Code::SOURCE_WENT_BACK).await;
        assert_eq!(process.tap.count("sink.apply"), 0, "the same is to be seen twice");
        pass(90).await;
        assert!(world.equal(), "{:?}", world.differences());
        assert_eq!(world.certificate().await.state, State::Complete);
        world.source.restore(&backup);
        pass(90).await;
        is_stale(&world, Code::SOURCE_WENT_BACK).await;
        running.stop().await;
    }
}

/// Rule 122: a lost future of twenty records or more is an operator's to give up.
#[tokio::test(start_paused = true)]
async fn a_repair_removes_no_more_than_a_few_records_by_itself() {
    let world = World { source_went_back: SourceWentBack::Repair, ..World::new() };
    world.rows(0..2_000, "first");
    world.drain().await;
    let backup = world.source.backup();
    world.rows(3_000..3_020, "lost");
    world.drain().await;
    world.source.restore(&backup);
    let running = world.process().start();
    pass(200).await;
    assert_eq!(world.differences().len(), 20);
    is_stale(&world, Code::GUARD_REFUSED).await;
    running.stop().await;
}

/// Rule 124: an idle feed sends no batch that the sink could refuse, so the sink is looked at.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_restored_under_an_idle_worker_is_noticed_and_reconciled() {
    let world = World::new();
    world.rows(0..10, "first");
    world.drain().await;
    let backup = world.sink.backup();
    let running = world.process().start();
    pass(2).await;
    world.rows(0..10, "second");
    pass(10).await;
    assert!(world.equal());
    world.sink.restore(&backup);
    assert!(!world.equal());
    pass(60).await;
    assert!(world.equal(), "{:?}", world.differences());
    let history = world.ledger.history(&World::scope(), 20).await.expect("answered");
    assert!(history.iter().any(|(_, event)| event.code == Code::SINK_WENT_BACK));
    running.stop().await;
}

/// Rule 123: the sink is the only one that knows of the future that source and ledger have lost.
#[tokio::test(start_paused = true)]
async fn a_source_and_a_ledger_that_were_restored_together_halt() {
    let world = World { source_went_back: SourceWentBack::Repair, ..World::new() };
    world.rows(0..10, "first");
    world.drain().await;
    let (source, ledger) = (world.source.backup(), world.ledger.state());
    with_a_past(&world).await;
    world.source.restore(&source);
    world.ledger.restore(ledger);
    world.rows(0..1, "other");
    halts(&world, Code::LEDGER_WENT_BACK).await;
    is_stale(&world, Code::LEDGER_WENT_BACK).await;
}

/// Rule 121: what a worker has to acknowledge next does not make a restored source look like the
/// real one, which it would pass for once it has overtaken the cursor.
#[tokio::test(start_paused = true)]
async fn a_source_that_was_restored_before_an_acknowledgement_is_not_acknowledged() {
    let world = World::new();
    world.rows(0..10, "first");
    world.drain().await;
    let backup = world.source.backup();
    with_a_past(&world).await;
    let process = world.process();
    let running = process.start();
    pass(3).await;
    for text in ["later", "last"] {
        world.rows(0..10, text);
        pass_ms(100).await;
    }
    assert!(world.equal(), "delivered, and the last is to be acknowledged within the second");
    world.source.restore(&backup);
    // It stops before it looks again, and acknowledges as it goes.
    running.stop().await;
    world.rows(0..200, "other");
    halts(&world, Code::SOURCE_WENT_BACK).await;
}

/// Rule 121: a capture that was taken out and put in again is another feed.
#[tokio::test(start_paused = true)]
async fn a_feed_that_was_made_anew_halts() {
    let world = World::new();
    with_a_past(&world).await;
    world.source.remove().await.expect("removed");
    halts(&world, Code::CAPTURE_MISSING).await;
    world.source.install().await.expect("installed");
    while !world.source.fill().await.expect("filled").done {}
    halts(&world, Code::SOURCE_WENT_BACK).await;
}

/// Rule 123.
#[tokio::test(start_paused = true)]
async fn a_ledger_that_was_restored_halts() {
    let world = World::new();
    world.rows(0..10, "first");
    world.drain().await;
    let backup = world.ledger.state();
    with_a_past(&world).await;
    let now = world.ledger.state();
    world.ledger.restore(backup);
    world.rows(0..1, "later");
    halts(&world, Code::LEDGER_WENT_BACK).await;
    is_stale(&world, Code::LEDGER_WENT_BACK).await;
    world.ledger.restore(now);
    assert_eq!(world.drain().await, Ending::Drained, "the real one is back");
    assert!(world.equal());
}

/// Rules 123, 125.
#[tokio::test(start_paused = true)]
async fn a_sink_of_another_ledger_is_refused_and_left_alone() {
    let world = World::new();
    with_a_past(&world).await;
    let before = world.sink.contents();
    let stranger = world.under_another_ledger("stranger");
    stranger.rows(0..1, "later");
    halts(&stranger, Code::SINK_OWNED).await;
    assert_eq!(world.sink.contents(), before);
    assert_ne!(stranger.certificate().await.state, State::Complete);
    assert_eq!(world.drain().await, Ending::Drained, "the owner goes on");
    assert!(world.equal());
}

/// Rule 125: a pipeline of the same ledger is somebody else as well.
#[tokio::test(start_paused = true)]
async fn a_sink_of_another_pipeline_is_refused_and_left_alone() {
    let world = World::new();
    with_a_past(&world).await;
    let before = world.sink.contents();
    let process = world.process();
    let other = Arc::new(MemorySource::captured());
    other.put(&row(0), "somebody else's");
    let pipeline = process.pipeline_of("other", &other, &world.sink);
    let running = process.start_all(vec![pipeline]);
    pass(100).await;
    assert_eq!(process.tap.count("sink.apply"), 0);
    assert_eq!(world.sink.contents(), before);
    running.stop().await;
}

/// A greater version in the sink than the feed has ever given is no success.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_ahead_of_its_source_halts() {
    let world = World::new();
    with_a_past(&world).await;
    let ahead = world.sink.contents()[&row(4)].clone();
    let rank = ahead.rank.map(|rank| truekeep_core::Rank {
        version: truekeep_core::Version::new(1_000_000),
        ..rank
    });
    world.sink.plant(row(4), truekeep_sink_memory::Held { rank, ..ahead });
    world.rows(0..10, "later");
    let ending = world.drain().await;
    assert!(matches!(&ending, Ending::Halted(code, _) if *code == Code::SINK_AHEAD), "{ending:?}");
    is_stale(&world, Code::SINK_AHEAD).await;
}

/// Rule 124: a sink that was restored, found to be equal, and then exchanged for a later backup that is
/// not, before anything new was sent: under a worker, and while none worked.
#[tokio::test(start_paused = true)]
async fn another_backup_of_the_sink_is_noticed_before_anything_new_is_sent() {
    for beside in [true, false] {
        let world = World::new();
        world.rows(0..10, "first");
        assert_eq!(world.drain().await, Ending::Drained);
        let equal = world.sink.backup();
        world.rows(50..51, "for a while");
        assert_eq!(world.drain().await, Ending::Drained);
        let later = world.sink.backup();
        world.source.delete(&row(50));
        assert_eq!(world.drain().await, Ending::Drained);
        world.sink.restore(&equal);
        let running = world.process().start();
        pass(200).await;
        assert_eq!(world.certificate().await.state, State::Complete);
        let running = if beside {
            world.sink.restore(&later);
            running
        } else {
            running.stop().await;
            world.sink.restore(&later);
            world.process().start()
        };
        assert_eq!(world.differences(), [row(50)]);
        pass(200).await;
        running.stop().await;
        assert_eq!(world.differences(), [], "beside: {beside}");
        assert_eq!(world.certificate().await.state, State::Complete);
    }
}
