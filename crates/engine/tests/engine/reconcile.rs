//! Reconcile end to end: drift of every kind is repaired beside the live tail, nothing wrong is
//! deleted, and the certificate never trusts what is in doubt.

use std::sync::Arc;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{
    Announced, Announcement, Archive, Ledger, NewRun, Opened, ProcedureKind, RunState,
};
use truekeep_core::reconcile::{Phase, Stored, Terms};
use truekeep_core::{Document, Fingerprint, Incarnation, Rank, RulesNumber, RunId, Value, Version};
use truekeep_engine::Ending;
use truekeep_sink_memory::Held;

use crate::world::tap::Fault;
use crate::world::{World, key, pass, pass_ms, row};

/// Rows 0 to 99, delivered and certified.
pub async fn delivered() -> World {
    let world = World::new();
    world.rows(0..100, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    assert_eq!(world.certificate().await.state, State::Complete);
    world
}

pub fn plant(world: &World, name: &str, version: u64) {
    let rank = Rank { rules: RulesNumber::new(1), version: Version::new(version) };
    let names = [Box::from("text")].into();
    let document = Arc::new(Document::new(names, vec![Value::Text("planted".into())]));
    world.sink.plant(key(name), Held { rank: Some(rank), document });
}

/// Wishes for a reconcile, as an operator does.
pub async fn wish(world: &World, name: &str, confirmed: bool) {
    wish_under(world, name, Terms { confirmed, ..Terms::default() }).await;
}

pub async fn wish_under(world: &World, name: &str, terms: Terms) {
    let stored = Stored::first(terms);
    let new = NewRun {
        id: RunId::parse(&name.replace(' ', "-")).expect("valid"),
        scope: World::scope(),
        procedure: ProcedureKind::Reconcile,
        key: name.into(),
        phase: serde_json::to_string(&stored).expect("JSON"),
    };
    let opened = world.ledger.open_run(&new).await.expect("answered");
    assert!(matches!(opened, Opened::Run(run) if run.state == RunState::Active));
}

/// How the run of this name stands, by opening it again.
pub async fn ended(world: &World, name: &str) -> (RunState, Phase) {
    let new = NewRun {
        id: RunId::parse("asked").expect("valid"),
        scope: World::scope(),
        procedure: ProcedureKind::Reconcile,
        key: name.into(),
        phase: String::new(),
    };
    match world.ledger.open_run(&new).await.expect("answered") {
        Opened::Run(run) | Opened::Conflict(run) => {
            let stored: Stored = serde_json::from_str(&run.phase).expect("a phase");
            (run.state, stored.phase)
        }
    }
}

pub async fn announce(world: &World) {
    let announcement = Announcement {
        pipeline: World::scope().pipeline().clone(),
        incarnation: Incarnation::parse("unused").expect("valid"),
        fingerprint: Fingerprint::parse(&world.fingerprint).expect("valid"),
        text: "{}".into(),
        replaces: Some(RulesNumber::new(1)),
        above: RulesNumber::default(),
        anew: false,
    };
    let answer = world.ledger.announce(&announcement).await.expect("answered");
    assert!(matches!(answer, Announced::InForce(_)));
}

#[tokio::test(start_paused = true)]
async fn missing_stale_and_orphaned_records_are_repaired_and_certified() {
    let world = delivered().await;
    world.sink.lose(&row(7));
    plant(&world, row(8).as_str(), 1);
    plant(&world, "nobody", 3);
    wish(&world, "wish", false).await;
    assert_eq!(world.drain().await, Ending::Drained);
    let (state, phase) = ended(&world, "wish").await;
    let report = phase.report().expect("a report").clone();
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    assert_eq!((report.missing, report.stale, report.orphans, report.deleted), (1, 1, 1, 1));
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
    let history = world.ledger.history(&World::scope(), 10).await.expect("answered");
    assert!(history.iter().any(|(_, event)| event.code == Code::RECONCILED));
}

/// What was equal is not compared again: the purge and the second round look at what differed.
#[tokio::test(start_paused = true)]
async fn only_what_differed_is_looked_at_again() {
    let world = World::new();
    world.rows(0..10_000, "first");
    assert_eq!(world.drain().await, Ending::Drained);
    for n in [17, 4_711] {
        world.sink.lose(&row(n));
    }
    plant(&world, "nobody", 3);
    wish(&world, "wish", false).await;
    let process = world.process();
    let running = process.start();
    pass(30).await;
    running.stop().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Succeeded);
    assert!(world.equal(), "{:?}", world.differences());
    // Ten pages; then three keys, twice.
    assert_eq!(process.tap.count("sink.list"), 10 + 2 * 3);
}

/// Q1, rule 116 and X14.
#[tokio::test(start_paused = true)]
async fn the_guard_stops_before_the_first_delete_and_leaves_the_sink_untrusted() {
    let world = delivered().await;
    for n in 0..30 {
        plant(&world, &format!("nobody {n}"), 3);
    }
    world.sink.lose(&row(7));
    wish(&world, "wish", false).await;
    world.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::GUARD_REFUSED));
    assert_eq!(world.sink.contents().len(), 130, "what was missing is there, nothing is deleted");
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.code), (State::Stale, Some(Code::GUARD_REFUSED)));
    world.rows(0..1, "later");
    world.drain().await;
    assert_eq!(world.certificate().await.state, State::Stale, "a delivery gives no trust back");
    wish(&world, "yes", true).await;
    world.drain().await;
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Q3 and rules 51 to 54: what is written beside it is kept, and what is deleted is gone.
#[tokio::test(start_paused = true)]
async fn writes_beside_a_reconcile_are_neither_lost_nor_resurrected() {
    let world = delivered().await;
    for n in 0..5 {
        plant(&world, &format!("nobody {n}"), 3);
    }
    let running = world.process().start();
    pass(2).await;
    wish(&world, "wish", false).await;
    for n in 0..40 {
        world.source.put(&key(&format!("nobody {}", n % 5)), "alive after all");
        world.source.delete(&row(n));
        world.source.put(&row(50 + n), "second");
        if n % 3 == 0 {
            world.source.delete(&key(&format!("nobody {}", n % 5)));
        }
        pass_ms(30).await;
    }
    pass(5).await;
    running.stop().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Succeeded);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rule 124.
#[tokio::test(start_paused = true)]
async fn a_sink_that_lost_records_is_reconciled_by_itself() {
    let world = delivered().await;
    let emptied = World { sink: Arc::default(), ..world.clone() };
    assert_eq!(emptied.drain().await, Ending::Drained);
    assert!(emptied.equal(), "{:?}", emptied.differences());
    assert_eq!(emptied.certificate().await.state, State::Complete);
}

/// Rules 121, 122: the lost future is overwritten, and what only it had is removed.
#[tokio::test(start_paused = true)]
async fn a_restored_source_is_repaired_towards_once_an_operator_says_so() {
    let world = World::new();
    world.rows(0..100, "first");
    world.drain().await;
    let backup = world.source.backup();
    let running = world.process().start();
    pass(2).await;
    world.rows(0..50, "lost future");
    world.rows(100..103, "lost future");
    pass(3).await;
    running.stop().await;
    world.source.restore(&backup);
    world.rows(0..60, "after the restore");
    assert!(
        matches!(world.drain().await, Ending::Halted(code, _) if code == Code::SOURCE_WENT_BACK)
    );
    announce(&world).await;
    assert_eq!(world.drain().await, Ending::Drained);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_ahead_of_the_feed_is_left_to_an_operator() {
    let world = delivered().await;
    plant(&world, row(8).as_str(), 9_999);
    wish(&world, "wish", false).await;
    world.drain().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Stopped(Code::SINK_AHEAD));
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.code), (State::Stale, Some(Code::SINK_AHEAD)));
}

/// A reconcile that dies goes on where it was, under the next holder.
#[tokio::test(start_paused = true)]
async fn a_reconcile_survives_its_worker() {
    let world = World::new();
    world.rows(0..5_000, "first");
    world.drain().await;
    for n in 0..50 {
        world.sink.lose(&row(n * 97));
    }
    wish(&world, "wish", false).await;
    for listed in 0..6 {
        let process = world.process();
        process.tap.fault_after("sink.list", listed % 3, 1, Fault::Hangs);
        let running = process.start();
        pass(2).await;
        running.kill().await;
        pass(31).await;
    }
    assert_eq!(world.drain().await, Ending::Drained);
    assert_eq!(ended(&world, "wish").await.0, RunState::Succeeded);
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rules 39 and 114: orphans go the way of every delete, each once; a second run finds none and sends
/// nothing.
#[tokio::test(start_paused = true)]
async fn a_second_reconcile_finds_nothing_and_sends_nothing() {
    let world = delivered().await;
    for n in 0..5 {
        plant(&world, &format!("nobody {n}"), 3);
    }
    let process = world.process();
    wish(&world, "first", false).await;
    process.drain().await;
    let sent = process.tap.sent();
    assert_eq!(sent.len(), 5, "each once: {sent:?}");
    let report = ended(&world, "first").await.1.report().cloned().expect("a report");
    assert_eq!((report.orphans, report.deleted), (5, 5));
    process.tap.forget_log();
    wish(&world, "second", false).await;
    process.drain().await;
    assert_eq!(process.tap.count("sink.apply"), 0);
    let (state, phase) = ended(&world, "second").await;
    assert_eq!(state, RunState::Succeeded);
    assert!(phase.report().is_some_and(|report| report.clean()), "{phase:?}");
}

/// Rule 44: writes that never end keep no reconcile from its end.
#[tokio::test(start_paused = true)]
async fn a_reconcile_ends_beside_writes_that_never_do() {
    let world = delivered().await;
    world.sink.lose(&row(7));
    let running = world.process().start();
    pass(2).await;
    wish(&world, "wish", false).await;
    let mut seconds = 0;
    while ended(&world, "wish").await.0 == RunState::Active {
        world.rows(seconds % 100..seconds % 100 + 1, "again");
        pass(1).await;
        seconds += 1;
        assert!(seconds < 30, "{:?}", ended(&world, "wish").await);
    }
    pass(1).await;
    running.stop().await;
    assert_eq!(ended(&world, "wish").await.0, RunState::Succeeded);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// A table that was rewritten past capture is called so; a few rows are not.
#[tokio::test(start_paused = true)]
async fn a_rewritten_table_is_told_from_a_few_rows_that_capture_missed() {
    for (rows, rewritten) in [(3, 0), (300, 300)] {
        let world = delivered().await;
        for n in 0..rows {
            world.source.pass_by(&row(200 + n), Some("past capture"));
        }
        wish(&world, "wish", false).await;
        assert_eq!(world.drain().await, Ending::Drained);
        let (_, phase) = ended(&world, "wish").await;
        let report = phase.report().expect("a report");
        assert_eq!((report.capture_missed, report.rewritten), (u64::from(rows), rewritten));
        assert_eq!(report.to_string().contains("rewritten"), rewritten > 0, "{report}");
        assert!(world.equal(), "{:?}", world.differences());
    }
}
