//! Rebuild in place: under new rules everything is delivered again beside the live tail, once.

use std::num::NonZeroU32;
use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{
    Announced, Announcement, Archive, Cancelled, ItemFilter, ItemState, Items, Ledger, Operations,
    ProcedureKind, Run, RunState,
};
use truekeep_core::reconcile::{Phase, Stored};
use truekeep_core::{Fingerprint, Incarnation, RulesNumber, limits};
use truekeep_engine::Ending;

use crate::reconcile::{delivered, plant, wish};
use crate::world::tap::{Fault, Grudge};
use crate::world::{Process, Running, World, pass, row};

/// Announces the next rules after these.
async fn announce(world: &World, replaces: u64) {
    let announcement = Announcement {
        pipeline: World::scope().pipeline().clone(),
        incarnation: Incarnation::parse("unused").expect("valid"),
        fingerprint: Fingerprint::parse(&world.fingerprint).expect("valid"),
        text: "{}".into(),
        replaces: Some(RulesNumber::new(replaces)),
        above: RulesNumber::default(),
        anew: false,
    };
    let answer = world.ledger.announce(&announcement).await.expect("answered");
    assert!(matches!(answer, Announced::InForce(_)), "{answer:?}");
}

/// The newest run beside follow.
async fn newest(world: &World) -> (Run, Stored) {
    let run = world.ledger.load(&World::scope(), ProcedureKind::Reconcile).await;
    let run = run.expect("answered").expect("one was begun");
    let stored = serde_json::from_str(&run.phase).expect("a phase");
    (run, stored)
}

/// Everything the sink holds is of these rules, equal to the source, and certified.
async fn rebuilt(world: &World, rules: u64) {
    assert_eq!(world.differences(), []);
    let older = |(_, held): &(_, truekeep_sink_memory::Held)| {
        held.rank.is_none_or(|rank| rank.rules != RulesNumber::new(rules))
    };
    assert_eq!(world.sink.contents().into_iter().filter(older).count(), 0, "of other rules");
    let certificate = world.certificate().await;
    assert_eq!(certificate.state, State::Complete, "{certificate:?}");
    assert_eq!(certificate.rules, RulesNumber::new(rules));
}

/// A worker in the middle of a scan whose pages take a second each.
async fn scanning(world: &World) -> (Process, Running) {
    let process = world.process();
    process.tap.fault("sink.apply", u32::MAX, Fault::Slow(Duration::from_secs(1)));
    let running = process.start();
    for _ in 0..100 {
        let run = world.ledger.load(&World::scope(), ProcedureKind::Reconcile).await;
        let phase = run.expect("answered").map_or_else(String::new, |run| run.phase);
        if phase.contains("scanning") && phase.contains("until") {
            return (process, running);
        }
        pass(1).await;
    }
    panic!("it never scanned");
}

/// Rule 57: everything is delivered again, without a new number in the feed, and what only the sink
/// has goes.
#[tokio::test(start_paused = true)]
async fn new_rules_are_delivered_once_and_compared() {
    let world = delivered().await;
    world.source.delete(&row(3));
    plant(&world, "nobody", 3);
    assert_eq!(world.drain().await, Ending::Drained);
    let feed = world.source.feed();
    announce(&world, 1).await;
    assert_eq!(world.certificate().await.state, State::Stale);
    assert_eq!(world.drain().await, Ending::Drained);
    rebuilt(&world, 2).await;
    let (run, stored) = newest(&world).await;
    assert_eq!((run.state, stored.terms.rebuild), (RunState::Succeeded, Some(RulesNumber::new(2))));
    let report = stored.phase.report().expect("a report");
    assert_eq!((report.missing, report.stale, report.orphans), (0, 0, 1), "{report:?}");
    assert!(report.scanned >= 99, "{report:?}");
    let numbered = |(key, row): &(truekeep_core::Key, _)| {
        feed.get(key) != Some(row) && key.as_str() != "nobody"
    };
    assert_eq!(world.source.feed().into_iter().filter(numbered).count(), 0);
    let history = world.ledger.history(&World::scope(), 10).await.expect("answered");
    assert!(history.iter().any(|(_, event)| event.code == Code::REBUILT));
}

/// What changes while a scan is under way waits for one page of it, and never makes it begin anew.
#[tokio::test(start_paused = true)]
async fn a_change_waits_for_one_page_of_a_scan_and_never_restarts_it() {
    let mut world = World::new();
    world.settings.page_rows = 100;
    world.rows(0..10_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    announce(&world, 1).await;
    let (process, running) = scanning(&world).await;
    let mut changes = 0;
    while newest(&world).await.1.phase.name() == "scanning" {
        world.source.put(&row(9_999 - changes), "second");
        pass(4).await;
        assert_eq!(
            world.sink.contents()[&row(9_999 - changes)].rank.map(|r| r.rules.get()),
            Some(2)
        );
        changes += 1;
    }
    assert!((4..100).contains(&changes), "{changes} changes");
    process.tap.heal();
    pass(60).await;
    running.stop().await;
    rebuilt(&world, 2).await;
    let (_, stored) = newest(&world).await;
    assert_eq!(stored.terms.restarts, 0);
}

/// A worker that dies in the middle of a scan leaves no more than a page to be delivered twice.
#[tokio::test(start_paused = true)]
async fn a_scan_goes_on_where_it_was_after_a_death() {
    let world = World::new();
    world.rows(0..20_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    announce(&world, 1).await;
    let (_, running) = scanning(&world).await;
    pass(5).await;
    running.kill().await;
    let Phase::Scanning { report, .. } = newest(&world).await.1.phase else { panic!("it scans") };
    assert!(report.scanned > 0);
    pass(60).await;
    let process = world.process();
    assert_eq!(process.drain().await, Ending::Drained);
    rebuilt(&world, 2).await;
    let (_, stored) = newest(&world).await;
    let again = stored.phase.report().expect("a report").scanned;
    assert_eq!(again, 20_000, "each page counts once");
}

/// Only new rules begin a run anew; each time is counted, and there is an end to it.
#[tokio::test(start_paused = true)]
async fn new_rules_in_the_middle_begin_it_anew_and_are_bounded() {
    let world = World::new();
    world.rows(0..20_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    announce(&world, 1).await;
    let (process, running) = scanning(&world).await;
    announce(&world, 2).await;
    pass(10).await;
    let (run, stored) = newest(&world).await;
    assert_eq!((stored.terms.rebuild, stored.terms.restarts), (Some(RulesNumber::new(3)), 1));
    for rules in 3..u64::from(limits::RESTARTS_MAX) + 2 {
        announce(&world, rules).await;
        pass(10).await;
    }
    assert_eq!(newest(&world).await.1.terms.restarts, limits::RESTARTS_MAX);
    announce(&world, u64::from(limits::RESTARTS_MAX) + 2).await;
    pass(10).await;
    let ended = world.ledger.history(&World::scope(), 100).await.expect("answered");
    assert!(ended.iter().any(|(_, event)| event.code == Code::RULES_UNSETTLED), "{ended:?}");
    process.tap.heal();
    pass(300).await;
    running.stop().await;
    assert_ne!(newest(&world).await.0.id, run.id, "another run does it");
    rebuilt(&world, u64::from(limits::RESTARTS_MAX) + 3).await;
}

/// A reconcile that was under way when rules changed would call everything stale and number it.
#[tokio::test(start_paused = true)]
async fn a_reconcile_under_way_becomes_the_rebuild() {
    let world = delivered().await;
    let process = world.process();
    process.tap.fault("sink.list", u32::MAX, Fault::Slow(Duration::from_secs(5)));
    let running = process.start();
    wish(&world, "wish", false).await;
    while newest(&world).await.1.phase.name() != "comparing" {
        pass(1).await;
    }
    let feed = world.source.feed();
    announce(&world, 1).await;
    pass(60).await;
    running.stop().await;
    rebuilt(&world, 2).await;
    assert_eq!(world.source.feed(), feed, "nothing was numbered");
    assert_eq!(newest(&world).await.1.terms.restarts, 1);
}

/// Records that are refused are items before the scan has passed them, and hold nothing up.
#[tokio::test(start_paused = true)]
async fn refused_records_are_parked_and_the_others_rebuilt() {
    let world = delivered().await;
    announce(&world, 1).await;
    let process = world.process();
    process.tap.bear("00017", Grudge::Refuses);
    process.tap.bear("00018", Grudge::PutsOff);
    let running = process.start();
    pass(600).await;
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.parked), (State::Partial, 2), "{certificate:?}");
    process.tap.heal();
    for n in [17, 18] {
        world.ledger.retry(&World::scope(), &row(n)).await.expect("answered");
    }
    pass(60).await;
    running.stop().await;
    rebuilt(&world, 2).await;
}

/// F3: a record that kills only under the new rules is found in the scan, alone.
#[tokio::test(start_paused = true)]
async fn a_record_that_kills_in_a_scan_is_parked_alone() {
    let mut world = delivered().await;
    world.settings.poll_every = Duration::from_secs(1);
    announce(&world, 1).await;
    let process = world.process();
    process.tap.bear("00037", Grudge::Kills);
    for deaths in 0.. {
        assert!(deaths < 30, "{deaths} died");
        let running = process.start();
        tokio::select! {
            () = process.tap.killed.notified() => running.kill().await,
            () = pass(600) => {
                running.stop().await;
                break;
            }
        }
    }
    let items = world.ledger.list(&World::scope(), ItemFilter::All, None, 100).await;
    let items = items.expect("answered");
    assert_eq!(items.iter().map(|item| item.key.clone()).collect::<Vec<_>>(), [row(37)]);
    assert_eq!((items[0].state, items[0].code.clone()), (ItemState::Parked, Code::KILLS_WORKER));
    assert_eq!(world.certificate().await.state, State::Partial);
}

/// What was read ahead of a page is not sent once follow has sent something: a sink that does not
/// remember deletes would take up again what was just removed.
#[tokio::test(start_paused = true)]
async fn what_was_read_ahead_is_not_sent_after_a_change() {
    let world = World::new();
    world.rows(0..5_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    announce(&world, 1).await;
    let (process, running) = scanning(&world).await;
    let sent = |key: &truekeep_core::Key| process.tap.sent().iter().filter(|k| *k == key).count();
    let mut gone = Vec::new();
    while newest(&world).await.1.phase.name() == "scanning" {
        // The first record that the scan has not come to.
        let held = world.sink.contents();
        let older = |key: &truekeep_core::Key| {
            held.get(key).and_then(|held| held.rank).is_some_and(|rank| rank.rules.get() == 1)
        };
        let Some(key) = world.source.rows().into_keys().find(older) else { break };
        world.source.delete(&key);
        while world.sink.contents().contains_key(&key) {
            pass(1).await;
        }
        gone.push((key.clone(), sent(&key)));
    }
    assert!(gone.len() > 2, "{gone:?}");
    process.tap.heal();
    pass(60).await;
    running.stop().await;
    rebuilt(&world, 2).await;
    for (key, times) in gone {
        assert_eq!(sent(&key), times, "{key} was sent again");
    }
}

/// A sink that must not be kept too busy is sent no more in a second; changes are not held back.
#[tokio::test(start_paused = true)]
async fn a_rebuild_keeps_to_its_rate_and_changes_do_not() {
    let mut world = World::new();
    world.rows(0..3_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    world.rate_max = NonZeroU32::new(100);
    announce(&world, 1).await;
    let running = world.process().start();
    for second in 1..=25 {
        world.source.put(&row(2_999), &format!("changed {second}"));
        pass(1).await;
        assert_eq!(world.differences(), []);
        let held = world.sink.contents();
        let renewed = held.values().filter(|held| held.rank.is_some_and(|r| r.rules.get() == 2));
        assert!(renewed.count() <= (second + 1) * 100 + 1, "after {second} s");
    }
    pass(60).await;
    running.stop().await;
    rebuilt(&world, 2).await;
}

/// An operator who cancels a rebuild is obeyed: it does not begin again by itself.
#[tokio::test(start_paused = true)]
async fn a_cancelled_rebuild_stays_cancelled_and_says_so() {
    let world = World::new();
    world.rows(0..20_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    announce(&world, 1).await;
    let (process, running) = scanning(&world).await;
    let (run, _) = newest(&world).await;
    let answer = world.ledger.cancel(&World::scope(), &run.id, "by an operator").await;
    assert!(matches!(answer, Ok(Cancelled::Ended(_))), "{answer:?}");
    process.tap.heal();
    pass(300).await;
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.code), (State::Stale, Some(Code::CANCELLED)));
    assert_eq!(newest(&world).await.0.id, run.id);
    wish(&world, "wish", false).await;
    pass(300).await;
    running.stop().await;
    rebuilt(&world, 2).await;
    assert_eq!(newest(&world).await.1.terms.rebuild, Some(RulesNumber::new(2)));
}
