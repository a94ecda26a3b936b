//! Accidents: stores go back, clocks jump, others write, capture misses.

use std::sync::Arc;

use truekeep_adapter_memory::{LedgerState, MemoryBackup};
use truekeep_core::code::Code;
use truekeep_core::follow::Phase;
use truekeep_core::ports::{Feed, Ledger, ProcedureKind};
use truekeep_core::{Key, MarkNumber, Place, Rank, Version};

use super::writers;
use crate::plan::Accident;
use crate::seed::Stream;
use crate::sink::{Contents, Record};
use crate::truth::Pasts;
use crate::world::{Store, World, at_once};

/// What is halted, or made stale, once something went back.
const WENT_BACK: &[Code] = &[
    Code::SOURCE_WENT_BACK,
    Code::LEDGER_WENT_BACK,
    Code::SINK_AHEAD,
    Code::TOMBSTONES_PRUNED,
    Code::GUARD_REFUSED,
    Code::DRIFT_FOUND,
    // A source that is repaired numbers every row anew.
    Code::CAPTURE_FILLING,
];

/// Copies of the stores.
#[derive(Debug)]
struct Backup {
    source: MemoryBackup,
    ledger: LedgerState,
    sinks: Vec<Contents>,
    /// The acknowledgement of each pipeline that is in the copy of the source.
    acknowledged: Vec<Option<u64>>,
    /// Which life of the source it was.
    life: u64,
    pasts: Vec<Pasts>,
}

/// Lets accidents happen until the world is calm.
pub(crate) async fn happen(world: Arc<World>) {
    let mut draws = world.plan.seed.stream("accidents");
    let mut backups = vec![backup(&world)];
    while !world.is_calm() {
        world.stores.time.pass(draws.ms(1, world.plan.accidents_ms_max)).await;
        let Some(accident) = draws.weighted(&world.plan.accidents) else { return };
        if world.is_calm() {
            return;
        }
        strike(&world, accident, &backups, &mut draws).await;
        if draws.chance(600) {
            backups.push(backup(&world));
        }
    }
}

fn backup(world: &World) -> Backup {
    let stores = &world.stores;
    let all = 0..stores.targets.len();
    Backup {
        source: stores.source.backup(),
        ledger: stores.ledger.state(),
        sinks: stores.targets.iter().map(|target| target.sink.contents()).collect(),
        acknowledged: all.map(|index| acknowledged(world, index)).collect(),
        life: world.life(Store::Source),
        pasts: world.watched(|auditor, _| auditor.pasts()),
    }
}

fn acknowledged(world: &World, index: usize) -> Option<u64> {
    let consumer = world.stores.consumer(index)?;
    let view = at_once(world.stores.source.view(&consumer, &Place::START)).ok()?;
    Some(view.registration.map_or(0, |registration| registration.counter.get()))
}

/// The acknowledgement that the ledger knows of.
fn registered(world: &World, index: usize) -> Option<u64> {
    let scope = &world.stores.targets[index].scope;
    let run = at_once(world.stores.ledger.load(scope, ProcedureKind::Follow)).ok().flatten()?;
    let phase: Phase = serde_json::from_str(&run.phase).ok()?;
    Some(phase.tail()?.registered.counter.get())
}

async fn strike(world: &Arc<World>, accident: Accident, backups: &[Backup], draws: &mut Stream) {
    let index = usize::try_from(draws.below(world.stores.targets.len() as u64)).unwrap_or(0);
    let backup = draws.pick(backups);
    match accident {
        Accident::ClockJumps => {
            let ttl_ms = i64::try_from(world.plan.settings.lease_ttl.as_millis()).unwrap_or(0);
            let far = *draws.pick(&[ttl_ms / 2, ttl_ms * 2, 3_600_000, 40 * 86_400_000]);
            let ms = if draws.chance(500) { far } else { -far };
            world.tell("accident", format_args!("the ledger's clock jumps by {ms} ms"));
            world.stores.time.jump_ledger(ms);
        }
        Accident::SinkRestored => replace(world, index, backup.sinks[index].clone(), "restored"),
        Accident::SinkReplaced => replace(world, index, Contents::default(), "replaced"),
        Accident::SinkCrashed => crash(world, index),
        Accident::SourceRestored => restore_source(world, backup),
        Accident::LedgerRestored => restore_ledger(world, backup),
        Accident::ForeignWrites => {
            let many = draws.between(1, 4);
            meddle(world, index, draws, many);
        }
        Accident::ForeignFlood => {
            let many = draws.between(10, 100);
            flood(world, index, many);
        }
        Accident::SinkAhead => ahead(world, index, draws),
        Accident::MissedWrites => miss(world, draws),
        Accident::CaptureBroken => break_capture(world, draws).await,
    }
}

pub(crate) fn replace(world: &World, index: usize, contents: Contents, how: &str) {
    world.revive(Store::Sink(index));
    world.tell("accident", format_args!("sink {index} is {how}: {:?}", contents.mark));
    world.watched(|auditor, stores| {
        let sink = &stores.targets[index].sink;
        let before = sink.contents();
        let number = |contents: &Contents| contents.mark.as_ref().map(|mark| mark.number);
        if number(&contents) > number(&before) {
            // The other way round, and after an earlier restore: somebody was mistaken first.
            auditor.justify(index, &[Code::LEDGER_WENT_BACK, Code::SINK_AHEAD]);
        }
        sink.replace(contents);
        auditor.justify(index, &[Code::SINK_WENT_BACK, Code::DRIFT_FOUND, Code::GUARD_REFUSED]);
        auditor.damaged(stores, index, &before, true);
    });
}

fn crash(world: &World, index: usize) {
    world.revive(Store::Sink(index));
    world.watched(|auditor, stores| {
        let lost = stores.targets[index].sink.crash();
        let now = stores.time.now();
        auditor.story.tell(now, "accident", format_args!("sink {index} crashes, lost: {lost}"));
        auditor.crashed(stores, index);
    });
}

/// A backup that is too young is not told from the real source: that is so to within the interval
/// of acknowledgements, and is said so.
fn restore_source(world: &World, backup: &Backup) {
    for (index, acknowledged) in backup.acknowledged.iter().enumerate() {
        let known = registered(world, index).unwrap_or(0);
        if acknowledged.unwrap_or(0) >= known {
            return;
        }
    }
    world.revive(Store::Source);
    world.tell("accident", format_args!("the source is restored"));
    world.watched(|auditor, stores| {
        stores.source.restore(&backup.source);
        auditor.observe_restored(stores);
        for index in 0..stores.targets.len() {
            auditor.justify(index, WENT_BACK);
            auditor.fork(index);
        }
    });
}

/// A ledger that has forgotten that the source went back takes what the sink has of the lost future
/// for a batch of its own whose answer was lost, if it is no more than that.
fn restore_ledger(world: &World, backup: &Backup) {
    let number =
        |contents: &Contents| contents.mark.as_ref().map_or(MarkNumber::default(), |m| m.number);
    for (target, then) in world.stores.targets.iter().zip(&backup.sinks) {
        let told = number(then).turn_after().turn_after();
        if backup.life != world.life(Store::Source) && number(&target.sink.contents()) < told {
            return;
        }
    }
    world.revive(Store::Ledger);
    world.tell("accident", format_args!("the ledger is restored"));
    world.watched(|auditor, stores| {
        stores.ledger.restore(backup.ledger.clone());
        auditor.ledger_restored(stores, &backup.pasts);
        for index in 0..stores.targets.len() {
            auditor.justify(index, WENT_BACK);
            // A ledger that does not know the pipeline yet gives it another life.
            let codes = [Code::RULES_CHANGED, Code::SINK_WENT_BACK, Code::SINK_OWNED];
            auditor.justify(index, &codes);
        }
    });
}

/// Somebody else's record.
fn foreign(text: String) -> Record {
    Record { rank: None, text, made_by: "somebody else".into() }
}

fn meddle(world: &World, index: usize, draws: &mut Stream, many: u64) {
    for _ in 0..many {
        let number = draws.below(world.plan.keys + 3);
        let key = writers::key(number);
        let text = format!("foreign {}", draws.below(1_000));
        let sink = &world.stores.targets[index].sink;
        let held = sink.contents().live.get(&key).cloned();
        let record = match (held, draws.below(3)) {
            // Only a sink that can say what it holds tells that a document was altered.
            (Some(held), 0) if sink.plan.able.verifies => Some(Record { text, ..held }),
            (_, 0 | 1) => None,
            (_, _) => Some(foreign(text)),
        };
        meddled(world, index, &key, record);
    }
}

fn flood(world: &World, index: usize, many: u64) {
    world.watched(|auditor, _| auditor.justify(index, &[Code::GUARD_REFUSED]));
    for number in 0..many {
        let key = Key::new(format!("foreign {number:03}"));
        meddled(world, index, &key, Some(foreign("flood".into())));
    }
}

fn meddled(world: &World, index: usize, key: &Key, record: Option<Record>) {
    let now = world.stores.time.now();
    world.watched(|auditor, stores| {
        auditor.story.tell(now, "accident", format_args!("sink {index} {key}: {record:?}"));
        let sink = &stores.targets[index].sink;
        let before = sink.contents();
        sink.meddle(key, record);
        auditor.justify(index, &[Code::DRIFT_FOUND, Code::NON_CONVERGENT, Code::GUARD_REFUSED]);
        auditor.damaged(stores, index, &before, false);
    });
}

fn ahead(world: &World, index: usize, draws: &mut Stream) {
    let key = writers::key(draws.below(world.plan.keys));
    let contents = world.stores.targets[index].sink.contents();
    let Some(record) = contents.live.get(&key) else { return };
    let Some(rank) = record.rank else { return };
    let version = Version::new(rank.version.get() + 1_000_000);
    world.watched(|auditor, _| auditor.justify(index, &[Code::SINK_AHEAD]));
    let record = Record { rank: Some(Rank { version, ..rank }), ..record.clone() };
    meddled(world, index, &key, Some(record));
}

/// Rows come, go and change past capture. A row that changes past it is found only by a comparison
/// of documents, so that is not drawn for sinks that cannot be asked for them.
fn miss(world: &World, draws: &mut Stream) {
    let now = world.stores.time.now();
    world.watched(|auditor, stores| {
        for index in 0..stores.targets.len() {
            auditor.justify(index, &[Code::DRIFT_FOUND, Code::GUARD_REFUSED]);
        }
        let verifies = stores.targets.iter().all(|target| target.sink.plan.able.verifies);
        for number in 0..draws.between(1, 3) {
            let key = writers::key(draws.below(world.plan.keys));
            let is_there = stores.source.rows().contains_key(&key);
            let known = stores.source.feed().get(&key).is_some_and(|(_, deleted)| !deleted);
            // What was missed already and is missed again comes to a change.
            if known != is_there && !verifies {
                continue;
            }
            let changes = !is_there || (verifies && draws.chance(300));
            let text = changes.then(|| format!("missed {} {number}", now.as_millis()));
            stores.source.pass_by(&key, text.as_deref());
            auditor.truth.miss(&key);
            auditor.story.tell(now, "accident", format_args!("{key} past capture: {text:?}"));
        }
        auditor.observe(stores);
    });
}

async fn break_capture(world: &World, draws: &mut Stream) {
    world.tell("accident", format_args!("capture stops"));
    world.watched(|auditor, stores| {
        stores.source.break_capture();
        for index in 0..stores.targets.len() {
            let codes = [Code::CAPTURE_CHANGED, Code::CAPTURE_FILLING, Code::CAPTURE_MISSING];
            auditor.justify(index, &codes);
            auditor.justify(index, &[Code::DRIFT_FOUND, Code::GUARD_REFUSED]);
        }
    });
    world.stores.time.pass(draws.ms(1, 10_000)).await;
    if draws.chance(700) {
        install(world);
    }
}

/// Puts capture back, and fills it.
pub(crate) fn install(world: &World) {
    use truekeep_core::ports::Capture;
    world.tell("remedy", format_args!("capture is installed"));
    world.watched(|auditor, stores| {
        // A source in memory does not fail.
        let _ = at_once(stores.source.install());
        while auditor.fill(stores).is_ok_and(|progress| !progress.done) {}
    });
}
