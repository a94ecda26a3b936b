//! What must hold in every world, between a world and the next, and once nothing is left to do.

use truekeep_core::certificate::State;

use super::Laws;
use super::machine::{Memory, Standing, count};
use super::source::{ALL, each, has};
use super::world::World;
use crate::follow::ledger::ItemState;
use crate::search::Broken;

/// What must hold in every world.
pub fn always(world: &World, laws: &Laws) -> Result<(), Broken> {
    trusted(world)?;
    let seen = |key: &u8| !has(world.ghost.spoiled[0], *key);
    if each(ALL).filter(seen).any(|key| !world.source.is_told(key)) {
        return Err("Q2: the feed is wrong about a row, and capture saw all of its changes");
    }
    let Some(run) = world.run.map(|run| laws.machine.memory(run)) else { return Ok(()) };
    let counted = u64::from(count(world.ghost.counted));
    if run.report.listed > counted || run.report.live > counted {
        return Err("a range was counted twice");
    }
    if world.ghost.sound && (!run.report.clean() || run.standing == Standing::Failed) {
        return Err("Q3: a difference was found where there is none");
    }
    Ok(())
}

/// C1, and that what was found and not repaired is never vouched for.
fn trusted(world: &World) -> Result<(), Broken> {
    let certified = world.ledger.certificate;
    if !matches!(certified.state, State::Complete | State::Partial) {
        return Ok(());
    }
    let Some(moment) = certified.moment else { return Err("C1: complete, but at no moment") };
    for key in each(ALL) {
        let place = usize::from(key);
        if certified.state == State::Partial && world.ledger.items[place].is_some() {
            continue;
        }
        if world.ghost.known[place] > 0 {
            return Err("a difference that was found and not repaired is vouched for");
        }
        let held = world.sink.keys[place];
        let lies = match (world.source.feed(key), held) {
            (Some(row), _) if row.version > moment => false,
            (Some(row), held) if row.live => held.is_none_or(|held| held.version < row.version),
            (Some(_) | None, held) => held.is_some_and(|held| held.document.is_some()),
        };
        if lies && !world.ghost.excuses(key) {
            return Err("C1: the certificate lies");
        }
    }
    Ok(())
}

/// What must hold between a world and the next.
pub fn between(before: &World, after: &World, laws: &Laws) -> Result<(), Broken> {
    let spoiled = |world: &World| (world.left.spoils, world.left.restores);
    if spoiled(before) == spoiled(after) {
        let ranks = before.sink.keys.iter().zip(&after.sink.keys);
        for (old, new) in ranks.filter_map(|(old, new)| Some(((*old)?, *new))) {
            if new.is_none_or(|new| new.rank() < old.rank()) {
                return Err("the sink went back in rank");
            }
        }
    }
    let (old, new) = (before.ledger.certificate, after.ledger.certificate);
    if new.moment < old.moment {
        return Err("C3: a moment went down under the same rules");
    }
    let memory = |world: &World| world.run.map(|run| laws.machine.memory(run));
    match (memory(before), memory(after)) {
        (Some(old), Some(new)) if before.ghost.runs == after.ghost.runs => advanced(old, new),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// A run that has ended stays as it is, and none comes to a place twice but one that began again.
fn advanced(old: &Memory, new: &Memory) -> Result<(), Broken> {
    if old.standing != Standing::Active && (old.name, &old.report) != (new.name, &new.report) {
        return Err("a run that had ended went on");
    }
    let same = (old.name, old.report.rounds) == (new.name, new.report.rounds);
    if same && new.after < old.after {
        return Err("a run went back to a range that it had passed");
    }
    Ok(())
}

/// What must hold once no worker has anything left to do.
pub fn at_rest(world: &World, laws: &Laws) -> Result<(), Broken> {
    let follow = laws.follow.memory(world.ledger.run);
    let run = world.run.map(|run| laws.machine.memory(run));
    let halted = follow.halted;
    if run.is_some_and(|run| run.standing == Standing::Active) && !halted {
        return Err("at rest: a run did not come to its end");
    }
    if halted {
        return if world.ghost.sound { Err("at rest: halted for nothing") } else { Ok(()) };
    }
    let mut parked = false;
    for key in each(ALL) {
        if let Some(item) = world.ledger.items[usize::from(key)] {
            if item.state != ItemState::Parked {
                return Err("at rest: an item that is not parked was left");
            }
            parked = true;
        } else if world.sink.document(key) != world.source.row(key)
            && !world.ghost.excuses(key)
            && follow.doubt.is_none()
        {
            return Err("at rest: the sink is not what the source is");
        }
    }
    let certified = world.ledger.certificate;
    let wanted = match (follow.doubt, parked) {
        (Some(_), _) => State::Stale,
        (None, true) => State::Partial,
        (None, false) => State::Complete,
    };
    let newest = follow.doubt.is_some() || certified.moment == Some(world.source.newest);
    if certified.state != wanted || !newest {
        return Err("at rest: the certificate does not say what holds");
    }
    Ok(())
}
