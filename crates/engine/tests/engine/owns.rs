//! Rule 37: what others wrote into a sink is too much, or none of our business.

use std::sync::Arc;

use truekeep_core::certificate::State;
use truekeep_core::compare::Owns;
use truekeep_core::ports::{Feed, RunState};
use truekeep_core::reconcile::Terms;
use truekeep_core::{Document, Value};
use truekeep_sink_memory::Held;

use crate::reconcile::{delivered, ended, plant, wish_under};
use crate::world::{World, key, row};

/// Puts an entry there that carries no rank of ours.
fn plant_unmarked(world: &World, name: &str) {
    let names = [Box::from("text")].into();
    let document = Arc::new(Document::new(names, vec![Value::Text("theirs".into())]));
    world.sink.plant(key(name), Held { rank: None, document });
}

/// Rows 0 to 99, delivered; of others: an entry of their own, one over row 7, and two under keys
/// that no row can have, one of them with a rank like ours.
async fn shared() -> World {
    let world = delivered().await;
    world.source.declare_foreign("~");
    plant_unmarked(&world, "others");
    plant_unmarked(&world, row(7).as_str());
    plant_unmarked(&world, "~unmarked");
    plant(&world, "~marked", 3);
    world
}

#[tokio::test(start_paused = true)]
async fn under_all_what_others_wrote_is_stale_or_an_orphan() {
    let world = shared().await;
    wish_under(&world, "wish", Terms::default()).await;
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.stale, report.orphans, report.deleted, report.foreign), (1, 3, 3, 2));
    assert_eq!(report.unmarked, 0);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.certificate().await.state, State::Complete);
    let keys = ["~marked", "~unmarked"].map(key);
    let buried = world.source.find(&keys).await.expect("answered");
    assert_eq!(buried, [None, None], "X62: a foreign entry is never buried in the feed");
}

/// What the source wants is delivered all the same, over whatever stands there.
#[tokio::test(start_paused = true)]
async fn under_marked_what_others_wrote_stays_and_is_counted() {
    let world = World { owns: Owns::Marked, ..shared().await };
    plant(&world, "an orphan of ours", 3);
    wish_under(&world, "wish", Terms { owns: Owns::Marked, ..Terms::default() }).await;
    world.drain().await;
    let (state, phase) = ended(&world, "wish").await;
    assert_eq!(state, RunState::Succeeded, "{phase:?}");
    let report = phase.report().expect("a report");
    assert_eq!((report.missing, report.stale, report.orphans, report.deleted), (1, 0, 1, 1));
    assert_eq!((report.listed, report.unmarked), (100, 4));
    let others = ["others", "~marked", "~unmarked"].map(key);
    assert_eq!(world.differences(), others);
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Entries of others are no part of the share that the guard judges by.
#[tokio::test(start_paused = true)]
async fn entries_of_others_do_not_thin_out_the_guard() {
    let world = delivered().await;
    for n in 0..1_000 {
        plant_unmarked(&world, &format!("others {n}"));
    }
    for n in 0..21 {
        plant(&world, &format!("orphan {n}"), 3);
    }
    wish_under(&world, "wish", Terms { owns: Owns::Marked, ..Terms::default() }).await;
    world.drain().await;
    let stopped = RunState::Stopped(truekeep_core::code::Code::GUARD_REFUSED);
    assert_eq!(ended(&world, "wish").await.0, stopped);
}

/// A run that begins by itself works under what the pipeline owns.
#[tokio::test(start_paused = true)]
async fn a_run_that_begins_by_itself_deletes_nothing_of_others() {
    let world = World { owns: Owns::Marked, ..delivered().await };
    let emptied = World { sink: Arc::default(), ..world.clone() };
    plant_unmarked(&emptied, "others");
    emptied.drain().await;
    assert_eq!(emptied.differences(), [key("others")]);
    assert_eq!(emptied.certificate().await.state, State::Complete);
}
