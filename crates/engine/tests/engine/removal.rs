//! Removing a pipeline: whole, from whatever it was cut short at, whoever still sends, and with
//! nothing left that a new one could stumble over.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::compare::Owns;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::Phase;
use truekeep_core::limits::REQUEST_MAX;
use truekeep_core::ports::{
    Announcement, Archive, Capabilities, Capture, CaptureState, Consumer, Feed, Ledger, Mark,
    Operations, PipelineRecord, Registration, Removal, Sink,
};
use truekeep_core::{
    Fingerprint, Incarnation, LedgerId, Moment, RegistrationCounter, RulesNumber, Version,
};
use truekeep_engine::{Ending, Gone, Happening, Remover, SinkEnd, SourceEnd};

use crate::reconcile::plant;
use crate::world::tap::{Fault, Grudge};
use crate::world::{Process, World, pass, pass_ms, row};

/// 50 rows were delivered, one of them is parked, and nobody works.
async fn delivered() -> World {
    let world = World::new();
    world.rows(0..50, "first");
    let process = world.process();
    process.tap.bear(row(7).as_str(), Grudge::Refuses);
    assert_eq!(process.drain().await, Ending::Drained);
    assert_eq!(world.certificate().await.state, State::Partial);
    world
}

async fn record(world: &World) -> Option<PipelineRecord> {
    world.ledger.pipeline(World::scope().pipeline()).await.expect("answered")
}

async fn order(world: &World, purge: bool) -> Removal {
    Removal {
        pipeline: World::scope().pipeline().clone(),
        incarnation: record(world).await.expect("it is there").incarnation,
        purge,
        newest: Version::new(0),
        request_max: REQUEST_MAX,
        by: "by an operator".into(),
    }
}

async fn remove(process: &Process, order: &Removal) -> Result<Option<Gone>, PortError> {
    let world = &process.world;
    let ledger = process.tapped(&world.ledger);
    let source = process.tapped(&world.source);
    let sink = process.tapped(&world.sink);
    let remover = Remover {
        ledger: ledger.as_ref(),
        operations: ledger.as_ref(),
        clock: &process.clock(),
        source: Some((source.as_ref(), source.as_ref())),
        sink: Some(sink.as_ref()),
        owns: Owns::All,
        shared: false,
    };
    remover.run(order, |_| ()).await
}

async fn captured(world: &World) -> bool {
    let report = world.source.verify().await.expect("answered");
    report.state != CaptureState::Broken(Code::CAPTURE_MISSING)
}

async fn mark(world: &World) -> Option<Mark> {
    world.sink.mark().await.expect("answered")
}

/// Asserts that nothing is left but the sink's headstone and the history.
async fn assert_gone(world: &World, purged: bool, after: &str) {
    assert_eq!(record(world).await, None, "{after}");
    let certificate = world.ledger.certificate(&World::scope()).await.expect("answered");
    assert_eq!(certificate, None, "{after}");
    assert_eq!(world.item(row(7).as_str()).await, None, "{after}");
    assert!(!captured(world).await, "{after}");
    assert!(mark(world).await.is_some_and(|mark| mark.removed), "{after}");
    assert_eq!(world.sink.contents().is_empty(), purged, "{after}");
    assert!(world.sink.tombstones().is_empty(), "{after}");
    let history = world.ledger.history(&World::scope(), 10).await.expect("answered");
    let removed = history.iter().filter(|(_, event)| event.code == Code::PIPELINE_REMOVED);
    assert_eq!(removed.count(), 2, "{after}: its beginning and its end");
}

/// A new life of the name, wished for by an operator; capture is installed anew.
async fn begin_anew(world: &World) {
    let above = mark(world).await.filter(|mark| mark.removed).map(|mark| mark.rules);
    let announcement = Announcement {
        pipeline: World::scope().pipeline().clone(),
        incarnation: Incarnation::parse("next-life").expect("valid"),
        fingerprint: Fingerprint::parse(&world.fingerprint).expect("valid"),
        text: "{}".into(),
        replaces: None,
        above: above.unwrap_or_default(),
        anew: true,
    };
    world.ledger.announce(&announcement).await.expect("announced");
    world.source.install().await.expect("installed");
    while !world.source.fill().await.expect("filled").done {}
}

/// Asserts that the new life ends with a sink that is equal and certified.
async fn assert_anew(world: &World, after: &str) {
    let running = world.process().start();
    pass(120).await;
    assert!(world.equal(), "{after}: {:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete, "{after}");
    running.stop().await;
}

/// Rule 126: with and without its records.
#[tokio::test(start_paused = true)]
async fn a_removed_pipeline_leaves_a_headstone_and_its_history() {
    for purge in [true, false] {
        let world = delivered().await;
        let rules = record(&world).await.expect("it is there").rules.number;
        let order = order(&world, purge).await;
        let gone = remove(&world.process(), &order).await.expect("removed").expect("it was there");
        let sink = if purge { SinkEnd::Emptied(49) } else { SinkEnd::Kept };
        assert_eq!(gone, Gone { sink, source: SourceEnd::Uncaptured });
        assert_gone(&world, purge, "whole").await;
        assert_eq!(mark(&world).await.expect("a headstone").rules, rules);
        let again = remove(&world.process(), &order).await.expect("a repeat is harmless");
        assert_eq!(again, None);
    }
}

/// Rule 126: killed before or after the effect of any of its calls, or failed there, it goes on when
/// it is begun again, and a new pipeline finds nothing to stumble over.
#[tokio::test(start_paused = true)]
async fn a_removal_that_is_cut_short_at_any_call_goes_on_when_it_is_begun_again() {
    let whole = delivered().await.process();
    let wanted = order(&whole.world, true).await;
    remove(&whole, &wanted).await.expect("removed");
    let calls = whole.tap.log().len();
    assert!(calls > 15, "{calls} calls");
    let failed = Fault::Fails(FailureClass::Terminal);
    for fault in [Fault::Hangs, Fault::HangsAfter, failed] {
        for skipped in 0..calls {
            let world = delivered().await;
            let order = order(&world, true).await;
            let process = world.process();
            process.tap.fault_after("", skipped as u32, 1, fault);
            let cut = tokio::time::timeout(Duration::from_secs(600), remove(&process, &order));
            let ended = cut.await;
            assert!(!matches!(ended, Ok(Ok(_))), "{fault:?} at call {skipped} was met");
            let after = format!("{fault:?} at call {skipped} of {:?}", process.tap.log());
            let closed = process.tap.count("ledger.operations.remove") > 0 && skipped > 0;
            if closed && record(&world).await.is_some() {
                let ending = world.drain().await;
                let removed = Ending::Halted(Code::PIPELINE_REMOVED, String::new());
                assert_eq!(ending, removed, "nobody works meanwhile: {after}");
            }
            remove(&world.process(), &order).await.expect("it goes on");
            assert_gone(&world, true, &after).await;
            begin_anew(&world).await;
            assert_anew(&world, &after).await;
        }
    }
}

/// Rule 96: trouble that may pass is waited out, whether the call had happened or not.
#[tokio::test(start_paused = true)]
async fn a_removal_waits_trouble_out() {
    for fault in [Fault::Fails(FailureClass::Retry), Fault::AnswerLost] {
        for calls in ["ledger.", "sink.mark", "sink.apply", "sink.list", "feed.", "capture."] {
            let world = delivered().await;
            let order = order(&world, true).await;
            let process = world.process();
            process.tap.fault_after(calls, 1, 3, fault);
            process.tap.fault(calls, 1, fault);
            remove(&process, &order).await.expect("removed").expect("it was there");
            assert_gone(&world, true, calls).await;
        }
    }
}

/// X58: a holder that is cut off from the ledger and not from the sink sends what it had under way.
#[tokio::test(start_paused = true)]
async fn what_a_cut_off_holder_still_sends_arrives_in_vain() {
    for slow in [1, 15, 25, 35] {
        let world = delivered().await;
        let process = world.process();
        let running = process.start();
        pass(2).await;
        process.tap.fault("sink.apply", 1, Fault::Slow(Duration::from_secs(slow)));
        world.rows(100..110, "late");
        while process.tap.count("sink.apply") == 0 {
            pass_ms(10).await;
        }
        process.tap.cut("ledger.");
        let order = order(&world, true).await;
        remove(&world.process(), &order).await.expect("removed");
        pass(60).await;
        assert_gone(&world, true, &format!("{slow} s late")).await;
        running.kill().await;
        begin_anew(&world).await;
        assert_anew(&world, "anew").await;
    }
}

/// X58: where no mark is checked only the wait and the second look help.
#[tokio::test(start_paused = true)]
async fn what_arrives_late_in_a_sink_without_marks_is_removed_as_well() {
    let world = delivered().await;
    let process = world.process();
    process.tap.limit(|able| Capabilities { marked: false, ..able });
    let removal = order(&world, true).await;
    let late = world.clone();
    // As late as anything of the last holder can arrive.
    let arrives = tokio::spawn(async move {
        pass_ms(REQUEST_MAX.as_millis() as u64 - 1).await;
        plant(&late, "late", 99);
    });
    remove(&process, &removal).await.expect("removed");
    arrives.await.expect("no panic");
    pass(60).await;
    assert!(world.sink.contents().is_empty());
}

/// Rule 110: whoever works meanwhile ends, and no start makes the pipeline anew.
#[tokio::test(start_paused = true)]
async fn a_worker_ends_its_work_and_begins_nothing_anew() {
    let world = delivered().await;
    let process = world.process();
    let running = process.start();
    pass(2).await;
    let order = order(&world, false).await;
    remove(&world.process(), &order).await.expect("removed");
    world.rows(0..5, "later");
    pass(3_600).await;
    assert_gone(&world, false, "an hour later").await;
    assert_eq!(process.happened().last(), Some(&Happening::Inactive(Code::PIPELINE_REMOVED)));
    running.stop().await;
    let removed = Ending::Halted(Code::PIPELINE_REMOVED, String::new());
    assert_eq!(world.drain().await, removed, "nor does another start");
    assert_gone(&world, false, "after a start").await;
}

/// X58 and rule 116: what the old pipeline left is delivered over, above its rules, and what is too
/// much goes under the guard; only then the new one is certified.
#[tokio::test(start_paused = true)]
async fn a_new_pipeline_takes_what_was_left_over_in_doubt() {
    let world = delivered().await;
    let before = record(&world).await.expect("it is there").rules.number;
    let order = order(&world, false).await;
    remove(&world.process(), &order).await.expect("removed");
    world.source.delete(&row(3));
    begin_anew(&world).await;
    let fresh = record(&world).await.expect("it is there").rules.number;
    assert!(fresh > before, "{fresh} after {before}");
    let process = world.process();
    process.tap.fault("sink.list", u32::MAX, Fault::Fails(FailureClass::Retry));
    let running = process.start();
    pass(5).await;
    assert!(world.sink.contents().contains_key(&row(3)), "nobody has looked yet");
    let certificate = world.certificate().await;
    assert_ne!(certificate.state, State::Complete);
    assert_eq!(certificate.code, Some(Code::SINK_INHERITED));
    process.tap.heal();
    pass(120).await;
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
    running.stop().await;
}

/// X58: rules that are not above what was left are not delivered under.
#[tokio::test(start_paused = true)]
async fn a_new_pipeline_under_rules_that_are_too_low_halts_and_writes_nothing() {
    let world = delivered().await;
    let order = order(&world, false).await;
    remove(&world.process(), &order).await.expect("removed");
    let other = world.under_another_ledger("another");
    other.source.install().await.expect("installed");
    while !other.source.fill().await.expect("filled").done {}
    let process = other.process();
    // As a start does that does not look at the sink.
    process.tap.fault("sink.mark", 1, Fault::Fails(FailureClass::Halted));
    let ending = process.drain().await;
    assert!(matches!(ending, Ending::Halted(code, _) if code == Code::SINK_INHERITED));
    assert!(matches!(other.run().await.1, Phase::Halted(_)));
    assert!(mark(&other).await.is_some_and(|mark| mark.removed));
    let process = world.under_another_ledger("third").process();
    assert_eq!(process.drain().await, Ending::Drained, "a start that looks begins above");
    assert!(process.world.equal());
}

/// Rules 115 and 126: the feed stays for whoever else reads it, and holds nothing back any more.
#[tokio::test(start_paused = true)]
async fn the_feed_stays_for_its_other_readers_and_holds_nothing_back() {
    let world = delivered().await;
    let consumer = Consumer {
        ledger: LedgerId::parse("other").expect("valid"),
        pipeline: Incarnation::parse("other").expect("valid"),
    };
    let passed = Moment::at(Version::new(1_000));
    let registration = Registration { counter: RegistrationCounter::new(1), passed };
    world.source.register(&consumer, &registration).await.expect("registered");
    world.source.delete(&row(3));
    assert_eq!(world.source.prune().await.expect("pruned"), 0, "it was not delivered");
    let order = order(&world, true).await;
    let gone = remove(&world.process(), &order).await.expect("removed").expect("it was there");
    assert_eq!(gone.source, SourceEnd::Forgotten);
    assert!(captured(&world).await);
    assert_eq!(world.source.prune().await.expect("pruned"), 1);
}

/// Rule 125: what another pipeline writes is neither emptied nor buried.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_another_pipelines_by_now_is_left_alone() {
    let world = delivered().await;
    let theirs = World { sink: std::sync::Arc::default(), ..World::new() };
    let theirs = theirs.under_another_ledger("theirs");
    theirs.rows(0..3, "theirs");
    theirs.drain().await;
    let mixed = World { sink: theirs.sink.clone(), ..world.clone() };
    let order = order(&mixed, true).await;
    let before = mark(&theirs).await;
    let gone = remove(&mixed.process(), &order).await.expect("removed").expect("it was there");
    assert_eq!(gone.sink, SinkEnd::Foreign);
    assert_eq!((theirs.sink.contents().len(), mark(&theirs).await), (3, before));
}

/// What never wrote has nothing to empty, and nobody to wait for.
#[tokio::test(start_paused = true)]
async fn a_pipeline_that_never_worked_is_gone_at_once() {
    let world = World::new();
    let announcement = Announcement {
        pipeline: World::scope().pipeline().clone(),
        incarnation: Incarnation::parse("life").expect("valid"),
        fingerprint: Fingerprint::parse("rules").expect("valid"),
        text: String::new(),
        replaces: None,
        above: RulesNumber::default(),
        anew: false,
    };
    world.ledger.announce(&announcement).await.expect("announced");
    let began = world.elapsed();
    let order = order(&world, true).await;
    let gone = remove(&world.process(), &order).await.expect("removed").expect("it was there");
    assert_eq!(gone.sink, SinkEnd::Unwritten);
    assert_eq!(world.elapsed(), began);
    assert_eq!(record(&world).await, None);
}

/// X58: where the feed had come to is known when it is gone.
#[tokio::test(start_paused = true)]
async fn where_a_removed_feed_had_come_to_is_kept() {
    let world = delivered().await;
    let newest = world.source.verify().await.expect("answered").newest;
    let order = order(&world, true).await;
    remove(&world.process(), &order).await.expect("removed");
    let floor = world.ledger.floor(World::scope().pipeline()).await.expect("answered");
    assert!(newest > Version::new(0));
    assert_eq!(floor, newest);
}
