//! What must hold in every world, between a world and the next, and once nothing is left to do.

use truekeep_core::certificate::State;

use super::ledger::ItemState;
use super::machine::{Machine, Remembered};
use super::sink::{Held, TURN, rank};
use super::source::{KEYS, Source};
use super::world::World;
use crate::search::Broken;

/// What must hold in every world.
pub fn always(world: &World, machine: &Machine) -> Result<(), Broken> {
    certificate(world)?;
    let memory = machine.memory(world.ledger.run);
    if memory.halted && !world.lost {
        return Err("F2: nothing went back, and yet the run halted");
    }
    let (Some(one), Some(two)) = (world.workers[0].lease(), world.workers[1].lease()) else {
        return memory.tail.map_or(Ok(()), |tail| remembered(world, tail));
    };
    if one.fence == two.fence {
        return Err("L2: a fence was given twice");
    }
    memory.tail.map_or(Ok(()), |tail| remembered(world, tail))
}

/// C1: for every key the sink is at least as new as the moment says.
fn certificate(world: &World) -> Result<(), Broken> {
    let certified = world.ledger.certificate;
    let excused = |key: u8| match certified.state {
        State::Complete => false,
        State::Partial => world.ledger.items[usize::from(key)].is_some(),
        State::Never | State::Running | State::Stale | State::Failed => true,
    };
    let says_complete = matches!(certified.state, State::Complete | State::Partial);
    let Some(moment) = certified.moment else {
        return if says_complete { Err("C1: complete, but at no moment") } else { Ok(()) };
    };
    if says_complete && certified.rules != world.ledger.rules {
        return Err("rule 57: complete under rules that are no longer in force");
    }
    let lies = |key: &u8| {
        let document = world.sink.document(*key);
        !excused(*key) && !is_as_new(&world.source, *key, document, moment)
    };
    // Until a sink that lost what it held is written again, nobody can know.
    if !world.lost && (0..KEYS).any(|key| lies(&key)) {
        return Err("C1: the certificate lies");
    }
    Ok(())
}

fn is_as_new(source: &Source, key: u8, document: Option<u8>, moment: u8) -> bool {
    match (source.last_change(key, moment), document) {
        (None, _) => true,
        (Some((version, _)), Some(document)) => document >= version,
        (Some((version, _)), None) => source.was_absent_since(key, version),
    }
}

/// F1, and what the run knows of the mark and of the registration.
fn remembered(world: &World, tail: Remembered) -> Result<(), Broken> {
    let written = if world.lost { 0 } else { KEYS };
    for key in 0..written {
        let Some((version, live)) = world.source.last_change(key, u8::MAX) else { continue };
        let is_item = world.ledger.items[usize::from(key)].is_some();
        if version > tail.cursor || is_item {
            continue;
        }
        let held = world.sink.keys[usize::from(key)];
        let wanted = rank(if tail.outdated { 1 } else { tail.rules }, version);
        let is_there = match (world.source.find(key), held) {
            (_, None) => !live,
            // A tombstone that is pruned is delivered once, under the rules of that time.
            (None, Some(held)) => held.document.is_none(),
            (Some(_), Some(held)) => held.rank() >= wanted,
        };
        if !is_there {
            return Err("F1: the cursor passed a change that is not delivered and no item");
        }
    }
    let one_ahead = |ours: u8, theirs: u8| theirs == ours || theirs == ours + 1;
    let (ours, theirs) = (tail.mark, world.sink.newest());
    let turns = (tail.sent / TURN, theirs.number / TURN);
    if !world.lost && (theirs < ours || !one_ahead(turns.0, turns.1)) {
        return Err("F2: the sink's mark is neither the run's nor one ahead");
    }
    let acknowledged = world.source.acknowledged.map_or(0, |acknowledged| acknowledged.counter);
    if !one_ahead(tail.registered, acknowledged) {
        return Err("F2: the registration is neither the run's nor one ahead");
    }
    Ok(())
}

/// What must hold between a world and the next.
pub fn between(before: &World, after: &World, machine: &Machine) -> Result<(), Broken> {
    let ranks = before.sink.keys.iter().zip(&after.sink.keys);
    let went_back = |(old, new): (&Option<Held>, &Option<Held>)| match (old, new) {
        (Some(old), Some(new)) => new.rank() < old.rank(),
        (None, _) | (_, None) => false,
    };
    let restored = before.left.restores != after.left.restores;
    if !restored && ranks.into_iter().any(went_back) {
        return Err("the sink went back in rank");
    }
    let (old, new) = (before.ledger.certificate, after.ledger.certificate);
    if old.rules == new.rules && new.moment < old.moment {
        return Err("C3: a moment went down under the same rules");
    }
    let tail = |world: &World| machine.memory(world.ledger.run).tail;
    if let (Some(old), Some(new)) = (tail(before), tail(after)) {
        if new.rules < old.rules || (new.rules == old.rules && new.cursor < old.cursor) {
            return Err("F1: the cursor went back under the same rules");
        }
    } else if tail(before).is_some() {
        return Err("the run forgot where it was");
    }
    Ok(())
}

/// What must hold once no worker has anything left to do: the sink is the source, and it is said.
pub fn at_rest(world: &World, machine: &Machine) -> Result<(), Broken> {
    if world.lost {
        return Ok(());
    }
    let mut parked = false;
    for key in 0..KEYS {
        if let Some(item) = world.ledger.items[usize::from(key)] {
            if item.state != ItemState::Parked {
                return Err("at rest: an item that is not parked was left");
            }
            parked = true;
        } else if world.sink.document(key) != world.source.document(key) {
            return Err("at rest: the sink is not what the source is");
        }
    }
    let certified = world.ledger.certificate;
    if machine.memory(world.ledger.run).tail.is_some_and(|tail| tail.outdated) {
        let says = matches!(certified.state, State::Stale | State::Running);
        return if says { Ok(()) } else { Err("at rest: it is trusted before the rebuild") };
    }
    let wanted = if parked { State::Partial } else { State::Complete };
    if certified.state != wanted
        || certified.moment != Some(world.source.newest())
        || certified.rules != world.ledger.rules
    {
        return Err("at rest: the certificate does not say what holds");
    }
    Ok(())
}
