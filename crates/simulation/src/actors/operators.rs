//! Operators: they put rules in force, wish for a reconcile, and have records tried again.

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_core::ports::{
    Announced, Announcement, Item, ItemFilter, ItemKind, Items, Ledger, NewRun, Operations,
    ProcedureKind, Steer, Steering,
};
use truekeep_core::reconcile::{Stored, Terms};
use truekeep_core::{Fingerprint, Incarnation, RulesNumber, RunId};

use super::{accidents, writers};
use crate::plan::Wish;
use crate::seed::Stream;
use crate::sink::Contents;
use crate::world::{World, at_once};

/// Wishes now and then, until the world is calm.
pub(crate) async fn wish(world: Arc<World>) {
    let mut draws = world.plan.seed.stream("operator");
    let mut wishes = 0;
    while let Some(wish) = draws.weighted(&world.plan.wishes) {
        world.stores.time.pass(draws.ms(1, world.plan.wishes_ms_max)).await;
        if world.is_calm() {
            return;
        }
        wishes += 1;
        let index = usize::try_from(draws.below(world.stores.targets.len() as u64)).unwrap_or(0);
        match wish {
            Wish::ApplyAgain => {
                apply(&world, index);
            }
            Wish::Deploy => {
                world.configure(format!("rules-{wishes}"));
                for index in 0..world.stores.targets.len() {
                    apply(&world, index);
                }
            }
            Wish::Reconcile => reconcile(&world, index, wishes, false, false),
            Wish::ReconcileConfirmed => reconcile(&world, index, wishes, true, false),
            Wish::ReconcileDeep => reconcile(&world, index, wishes, false, true),
            Wish::Retry => retry(&world, index),
            Wish::Request => request(&world, index, &mut draws),
            Wish::Discard => discard(&world, index),
            Wish::Cancel => cancel(&world, index),
            Wish::Pause => {
                steer(&world, index, Steering::Pause);
                world.stores.time.pass(draws.ms(1, world.plan.wishes_ms_max)).await;
                steer(&world, index, Steering::Resume);
            }
        }
    }
}

/// Puts the present configuration in force, also if it is.
pub(crate) fn apply(world: &World, index: usize) -> Option<RulesNumber> {
    let fingerprint = world.fingerprint();
    let at = world.stores.time.now().as_nanos();
    world.watched(|auditor, stores| {
        let name = stores.targets[index].scope.pipeline();
        let record = at_once(stores.ledger.pipeline(name)).ok().flatten();
        let new = Announcement {
            pipeline: name.clone(),
            incarnation: Incarnation::parse(&format!("operator-{index}-{at}"))
                .expect("visible ASCII"),
            fingerprint: Fingerprint::parse(&fingerprint).expect("visible ASCII"),
            text: fingerprint,
            above: RulesNumber::default(),
            anew: true,
            replaces: record.map(|record| record.rules.number),
        };
        match auditor.announce(stores, &new) {
            Ok(Announced::InForce(record)) => Some(record.rules.number),
            Ok(Announced::Outpaced(_)) | Err(_) => None,
        }
    })
}

/// Wishes for a reconcile.
pub(crate) fn reconcile(world: &World, index: usize, number: u32, confirmed: bool, deep: bool) {
    let deep = deep && world.stores.targets[index].sink.plan.able.verifies;
    let key = format!("wish-{number}");
    world.tell("wish", format_args!("p{index} {key} confirmed: {confirmed}, deep: {deep}"));
    let stored = Stored::first(Terms { confirmed, deep, ..Terms::default() });
    let new = NewRun {
        id: RunId::parse(&format!("{key}-p{index}")).expect("visible ASCII"),
        scope: world.stores.targets[index].scope.clone(),
        procedure: ProcedureKind::Reconcile,
        key,
        phase: serde_json::to_string(&stored).expect("a phase is JSON"),
    };
    // Refused if the pipeline is not known yet.
    let _ = at_once(world.stores.ledger.open_run(&new));
}

/// Has every parked record tried again.
fn retry(world: &World, index: usize) {
    retried(world, index, parked(world, index));
}

/// The same, and what was given up as well: a newer version of it may have a lower number, if the
/// source went back since.
pub(crate) fn retry_all(world: &World, index: usize) {
    let scope = &world.stores.targets[index].scope;
    let given_up = at_once(world.stores.ledger.list(scope, ItemFilter::Discarded, None, 1_000));
    retried(world, index, parked(world, index));
    retried(world, index, given_up.unwrap_or_default());
}

fn retried(world: &World, index: usize, items: Vec<Item>) {
    for item in items {
        let scope = &world.stores.targets[index].scope;
        let said = at_once(world.stores.ledger.retry(scope, &item.key));
        world.tell("wish", format_args!("p{index} retry {}: {said:?}", item.key));
    }
}

/// Gives every parked record up.
fn discard(world: &World, index: usize) {
    for item in parked(world, index) {
        let scope = &world.stores.targets[index].scope;
        let said = world.stores.ledger.discard(scope, &item.key, item.version, "an operator");
        let said = at_once(said);
        world.tell("wish", format_args!("p{index} discard {}: {said:?}", item.key));
    }
}

/// Ends the reconcile that is under way.
fn cancel(world: &World, index: usize) {
    let scope = &world.stores.targets[index].scope;
    let run = at_once(world.stores.ledger.load(scope, ProcedureKind::Reconcile)).ok().flatten();
    let Some(run) = run else { return };
    world.watched(|auditor, _| auditor.justify(index, &[Code::CANCELLED]));
    let said = at_once(world.stores.ledger.cancel(scope, &run.id, "an operator"));
    world.tell("wish", format_args!("p{index} cancel {}: {}", run.key, said.is_ok()));
}

fn steer(world: &World, index: usize, to: Steering) {
    let pipeline = world.stores.targets[index].scope.pipeline();
    let record = at_once(world.stores.ledger.pipeline(pipeline)).ok().flatten();
    let Some(record) = record else { return };
    let (pipeline, by) = (pipeline.clone(), "an operator".to_owned());
    let steer = Steer { pipeline, to, seen: record.revision, by };
    let said = at_once(world.stores.ledger.steer(&steer));
    world.tell("wish", format_args!("p{index} {to:?}: {}", said.is_ok()));
}

/// Resumes what a ledger that was restored has paused again.
pub(crate) fn resume(world: &World, index: usize) {
    steer(world, index, Steering::Resume);
}

/// The parked records.
fn parked(world: &World, index: usize) -> Vec<Item> {
    let scope = &world.stores.targets[index].scope;
    at_once(world.stores.ledger.list(scope, ItemFilter::Parked, None, 1_000)).unwrap_or_default()
}

fn request(world: &World, index: usize, draws: &mut Stream) {
    let key = writers::key(draws.below(world.plan.keys));
    let Some((version, deleted)) = world.stores.source.feed().get(&key).copied() else { return };
    let kind = if deleted { ItemKind::Delete } else { ItemKind::Upsert };
    let scope = &world.stores.targets[index].scope;
    let said = at_once(world.stores.ledger.request(scope, &key, version, kind));
    world.tell("wish", format_args!("p{index} request {key}: {said:?}"));
}

/// What an operator does about a code, as its registered remedy says.
pub(crate) fn remedy(world: &World, index: usize, code: &Code, round: u32) {
    world.tell("remedy", format_args!("p{index} {code}"));
    if *code == Code::GUARD_REFUSED {
        reconcile(world, index, 2_000 + round, true, false);
    } else if *code == Code::CANCELLED {
        reconcile(world, index, 3_000 + round, false, false);
    } else if *code == Code::SINK_OWNED {
        accidents::replace(world, index, Contents::default(), "dropped");
    } else {
        // A ledger that went back may know fewer rules than the sink has seen: once is not enough.
        let seen = world.stores.targets[index].sink.contents().mark.map(|mark| mark.rules);
        loop {
            let known = apply(world, index);
            if known.is_none() || known > seen {
                return;
            }
        }
    }
}
