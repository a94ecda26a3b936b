//! After the weather: everything is drained, and what the certificates say is held against what is.
//!
//! 1. Nothing moves any more: what is said is true, or was not to be noticed yet.
//! 2. One more write, so that whatever went back is noticed: what is said is true, but for what only
//!    a comparison finds.
//! 3. Operators do what the codes tell them to: in the end both sides are equal, and it is said.

use std::sync::Arc;
use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::Ledger;

use crate::actors::{accidents, operators, writers};
use crate::auditor::Excused;
use crate::poison;
use crate::world::{World, at_once};

/// Longer than anything that moves by itself lies still: a repair is begun each minute.
const STILL: Duration = Duration::from_secs(85);

/// Nothing takes longer to come to rest: a killer costs a lease for every half of its page.
const RESTLESS_MAX: Duration = Duration::from_secs(3_600);

/// How often operators try their remedies.
const ROUNDS_MAX: u32 = 6;

/// Brings a world to rest and holds it against the law.
pub(crate) async fn settle(world: &Arc<World>) {
    for index in 0..world.stores.targets.len() {
        operators::resume(world, index);
    }
    still(world).await;
    check(world, Excused::Unnoticed);
    nudge(world);
    still(world).await;
    check(world, Excused::Silent);
    for round in 0..ROUNDS_MAX {
        world.tell("round", format_args!("{round}"));
        mend(world, round);
        still(world).await;
        if is_whole(world) && round > 0 {
            return;
        }
    }
    world.watched(|auditor, stores| {
        for index in 0..stores.targets.len() {
            if let Err(broken) = auditor.is_whole(stores, index) {
                auditor.broke(broken.promise, broken.how);
            }
        }
    });
}

/// Returns once nothing has moved for long.
async fn still(world: &World) {
    let time = &world.stores.time;
    let began = time.now();
    let moved = || world.watched(|auditor, _| auditor.moved_at.max(began));
    while time.now() < moved() + STILL {
        time.pass(Duration::from_secs(5)).await;
        if time.now() > began + RESTLESS_MAX {
            return world.watched(|auditor, _| auditor.broke("at rest", "it never comes to rest"));
        }
    }
    world.tell("at rest", format_args!(""));
}

fn check(world: &World, excused: Excused) {
    let worked_on: Vec<bool> =
        (0..world.stores.targets.len()).map(|i| in_force(world, i)).collect();
    world.watched(|auditor, stores| {
        for (index, worked_on) in worked_on.into_iter().enumerate() {
            if !worked_on && auditor.is_justified(index, &Code::RULES_CHANGED) {
                continue;
            }
            if let Err(broken) = auditor.rests(stores, index, excused) {
                auditor.broke(broken.promise, broken.how);
            }
        }
    });
}

fn is_whole(world: &World) -> bool {
    world.watched(|auditor, stores| {
        (0..stores.targets.len()).all(|index| auditor.is_whole(stores, index).is_ok())
    })
}

/// One more write.
fn nudge(world: &World) {
    let now = world.stores.time.now();
    world.watched(|auditor, stores| {
        stores.source.put(&writers::key(0), "nudged");
        auditor.observe(stores);
        auditor.story.tell(now, "writes", format_args!("one more"));
    });
}

/// Operators do what they are told.
fn mend(world: &World, round: u32) {
    heal(world, round);
    let capture = at_once(truekeep_core::ports::Capture::verify(&world.stores.source));
    let trusted = |state| matches!(state, truekeep_core::ports::CaptureState::Trusted(_));
    if capture.is_ok_and(|report| !trusted(report.state)) {
        accidents::install(world);
    }
    for index in 0..world.stores.targets.len() {
        let certificate = world.watched(|auditor, stores| auditor.certificate(stores, index));
        if !in_force(world, index) {
            operators::apply(world, index);
            continue;
        }
        operators::retry_all(world, index);
        let Some(certificate) = certificate else { continue };
        match (certificate.state, &certificate.code) {
            (State::Complete | State::Partial, _) | (_, None) => {
                operators::reconcile(world, index, 1_000 + round, false, round.is_multiple_of(2));
            }
            (_, Some(code)) if code.as_str().starts_with("CAPTURE") => {}
            (_, Some(code)) if *code == Code::DRIFT_FOUND => {}
            (_, Some(code)) => operators::remedy(world, index, code, round),
        }
    }
}

/// Whether the rules that workers are started with are in force.
fn in_force(world: &World, index: usize) -> bool {
    let scope = &world.stores.targets[index].scope;
    let record = at_once(world.stores.ledger.pipeline(scope.pipeline())).ok().flatten();
    record.is_some_and(|record| record.rules.fingerprint.as_str() == world.fingerprint())
}

/// Poisoned rows are written again, without poison.
fn heal(world: &World, round: u32) {
    let now = world.stores.time.now();
    world.watched(|auditor, stores| {
        for (key, text) in stores.source.rows() {
            if poison::of(&text).is_some() {
                stores.source.put(&key, &format!("healed {round} {key}"));
                auditor.story.tell(now, "writes", format_args!("{key} is healed"));
            }
        }
        auditor.observe(stores);
    });
}
