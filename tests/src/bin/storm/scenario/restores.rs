//! Source, ledger or sink restored from a backup in mid-flight, or several of them: in place beside
//! the workers, under them, or while they are dead. An operator does what the codes say.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Fault;
use crate::database;
use crate::law::Claim;
use crate::sink::Sink;
use crate::world::{Plan, Store, World};
use crate::writer::{self, Keeping};

const RESTORES: u64 = 2;

/// Codes after which nothing goes on without an operator, and which have one remedy.
const HALTS: [&str; 5] =
    ["SOURCE_WENT_BACK", "LEDGER_WENT_BACK", "SINK_AHEAD", "SINK_FENCED", "TOMBSTONES_PRUNED"];

/// How a restore is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The copy's content over the file's, beside whoever has it open.
    InPlace,
    /// Another file in its place, under the workers that have the old one open.
    Underneath,
    /// Another file in its place; the workers were killed before.
    WhileDead,
}

/// What is restored together.
const WHAT: [&[Store]; 9] = [
    &[Store::Source],
    &[Store::Source],
    &[Store::Ledger],
    &[Store::Ledger],
    &[Store::Sink],
    &[Store::Sink],
    &[Store::Source, Store::Sink],
    &[Store::Ledger, Store::Sink],
    &[Store::Source, Store::Ledger, Store::Sink],
];

/// Folders.
pub fn plan(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    super::in_folders(sink, keeping)
}

/// Folders, and a source that is repaired without an operator.
pub fn plan_of_repair(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    Plan { pipeline: "source_went_back = \"repair\"\n", ..super::in_folders(sink, keeping) }
}

/// Restores, one after the other.
pub fn storm(world: &mut World<'_>) -> Result<(), Fault> {
    begin(world)?;
    for _ in 0..RESTORES {
        let time = world.draws.millis(200, 2_000);
        world.live(time)?;
        let what = *world.draws.pick(&WHAT);
        let way = *world.draws.pick(&[Way::InPlace, Way::Underneath, Way::WhileDead]);
        restore(world, what, way).map_err(|error| format!("{what:?} {way:?}: {error}"))?;
    }
    Ok(())
}

/// One restore of the source, that nobody is told to do anything about.
pub fn storm_of_repair(world: &mut World<'_>) -> Result<(), Fault> {
    begin(world)?;
    let way = *world.draws.pick(&[Way::InPlace, Way::Underneath, Way::WhileDead]);
    restore(world, &[Store::Source], way).map_err(|error| format!("{way:?}: {error}").into())
}

fn begin(world: &mut World<'_>) -> Result<(), Fault> {
    world.start_worker(&[])?;
    world.start_worker(&[])?;
    world.start_application()?;
    world.until_certified()
}

fn restore(world: &mut World<'_>, stores: &[Store], way: Way) -> Result<(), Fault> {
    let backup = world.path("backup");
    std::fs::create_dir_all(&backup)?;
    // Copies of several are of one moment, as those of a whole machine.
    if stores.len() > 1 {
        world.kill_all()?;
    }
    for &store in stores {
        match file(world, store) {
            Some(path) => database::copy(&path, &backup.join(store.folder()))?,
            None => world.plan.sink.back_up(&world.at(store), &backup)?,
        }
    }
    if stores.len() > 1 {
        begin(world)?;
    }
    // More than the second within which a source cannot be told from its past.
    let time = world.draws.millis(2_500, 4_500);
    world.live(time)?;
    world.kill_application()?;
    world.listen();
    world.codes.clear();
    if way == Way::WhileDead {
        world.kill_all()?;
    }
    for &store in stores {
        put_back(world, store, way, &backup)?;
        world.tally.restores += 1;
        if store == Store::Sink {
            world.law.sink_restored();
        }
    }
    std::fs::remove_dir_all(&backup)?;
    while world.workers.len() < 2 {
        world.start_worker(&[])?;
    }
    world.law.restored(Instant::now());
    if way == Way::Underneath && stores.contains(&Store::Ledger) {
        begin_anew(world)?;
    }
    // The application goes on, or waits until all is well.
    let at_once = world.draws.one_in(2);
    if at_once {
        world.start_application()?;
    }
    operate(world, stores)?;
    if at_once { Ok(()) } else { world.start_application() }
}

fn put_back(world: &mut World<'_>, store: Store, way: Way, backup: &Path) -> Result<(), Fault> {
    let folder = world.at(store);
    match (file(world, store), way) {
        (Some(path), Way::InPlace) => database::copy(&backup.join(store.folder()), &path),
        (Some(path), _) => database::replace(&path, &backup.join(store.folder())),
        (None, Way::InPlace) if world.plan.sink.restore_live(&folder, backup)? => Ok(()),
        (None, _) => world.plan.sink.restore(&folder, backup),
    }
}

/// The database file of a store; none for the sink, which knows its own.
fn file(world: &World<'_>, store: Store) -> Option<PathBuf> {
    match store {
        Store::Source => Some(world.source()),
        Store::Ledger => Some(world.ledger()),
        Store::Sink => None,
    }
}

/// Workers whose ledger was replaced say so, and do nothing more: an operator starts them anew.
fn begin_anew(world: &mut World<'_>) -> Result<(), Fault> {
    world.until("a worker tells that its ledger was replaced", |world, _| {
        Ok(world.codes.contains("LEDGER_UNAVAILABLE"))
    })?;
    world.kill_all()?;
    world.start_worker(&[])?;
    world.start_worker(&[])?;
    world.law.restored(Instant::now());
    Ok(())
}

/// What an operator does, until all is well again.
fn operate(world: &mut World<'_>, stores: &[Store]) -> Result<(), Fault> {
    // Stores that went back together may fit each other, so that there is nothing to tell.
    if let [store] = stores {
        let expected = match store {
            Store::Source => "SOURCE_WENT_BACK",
            Store::Ledger => "LEDGER_WENT_BACK",
            Store::Sink => "SINK_WENT_BACK",
        };
        world.until(expected, |world, claim| {
            Ok(world.codes.contains(expected) || claim.code.as_deref() == Some(expected))
        })?;
    }
    let by_itself = !world.plan.pipeline.is_empty();
    let newest = writer::truth(&world.source())?.newest;
    world.until("complete after what the operator did", |world, claim| {
        if !by_itself && HALTS.iter().any(|code| world.codes.remove(*code)) {
            apply_again(world)?;
        }
        asked_by_guard(world, claim)?;
        Ok(claim.covers().is_some_and(|moment| moment >= newest))
    })?;
    world.operator(&["reconcile", "--confirm"], 0)?;
    world.until_certified()
}

fn apply_again(world: &mut World<'_>) -> Result<(), Fault> {
    world.operator(&["apply", "--again"], 0)?;
    // Those that halted look again by themselves, now and then; new ones look at once.
    if world.draws.one_in(2) {
        world.kill_worker(0)?;
        world.start_worker(&[])?;
    }
    Ok(())
}

/// What only the lost future had may be more than reconcile deletes unasked.
fn asked_by_guard(world: &World<'_>, claim: &Claim) -> Result<(), Fault> {
    if claim.code.as_deref() != Some("GUARD_REFUSED") {
        return Ok(());
    }
    world.operator(&["reconcile", "--confirm"], 0)
}
