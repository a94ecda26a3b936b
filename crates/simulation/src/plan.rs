//! What a seed draws: the size of the world, its weather, who acts in it and what goes wrong.
//!
//! Most worlds have few kinds of trouble and some have all: a fault is found where the others do
//! not drown it.

use std::time::Duration;

use truekeep_core::follow::SourceWentBack;
use truekeep_core::ports::{Capabilities, Memory};
use truekeep_core::retry::{Jitter, RetryPolicy};
use truekeep_engine::Settings;

use crate::seed::{Seed, Stream};

/// How calls of one kind of store go wrong, in thousandths of all calls while it is gusty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sky {
    /// Surely not done, and said so.
    pub refused: u64,
    /// Done, and the answer is lost.
    pub lost: u64,
    /// Given up by the caller, and done later.
    pub late: u64,
    /// Never answered; done or not.
    pub hangs: u64,
    /// On its way for long.
    pub slow: u64,
    /// A page holds less than was asked for.
    pub clamped: u64,
    /// The longest way, in milliseconds.
    pub slow_ms_max: u64,
    /// The latest that a given-up call is done, in milliseconds.
    pub late_ms_max: u64,
}

/// Something that nobody wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Accident {
    /// The ledger's clock jumps.
    ClockJumps,
    /// A backup of a sink takes its place.
    SinkRestored,
    /// A sink is made anew, empty.
    SinkReplaced,
    /// A sink stops at once and loses what it had not confirmed.
    SinkCrashed,
    /// A backup of the source takes its place.
    SourceRestored,
    /// A backup of the ledger takes its place.
    LedgerRestored,
    /// Somebody else writes and deletes in a sink.
    ForeignWrites,
    /// Somebody else puts many records into a sink.
    ForeignFlood,
    /// A sink holds a version that was never given.
    SinkAhead,
    /// Rows change past capture.
    MissedWrites,
    /// Capture stops to record, and is put back later.
    CaptureBroken,
}

/// What an operator does now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// The same rules once more.
    ApplyAgain,
    /// Other rules; workers take them up as they start anew.
    Deploy,
    /// Both sides held against each other.
    Reconcile,
    /// The same, and yes to every deletion.
    ReconcileConfirmed,
    /// Documents as well.
    ReconcileDeep,
    /// A parked record tried again.
    Retry,
    /// A record delivered again.
    Request,
    /// A parked record given up.
    Discard,
    /// A reconcile ended.
    Cancel,
    /// Nobody works on it, for some time.
    Pause,
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Poison {
    /// Its document cannot be made.
    Unloadable,
    /// The sink refuses it.
    Refused,
    /// The sink refuses any batch with it.
    RefusesBatch,
    /// The sink cannot take it for some time.
    PutOff,
    /// Whoever sends it dies.
    Kills,
    /// Whoever loads it dies.
    KillsReader,
}

/// How an application writes.
#[derive(Debug, Clone)]
pub(crate) struct WriterPlan {
    /// The longest pause between two transactions, in milliseconds.
    pub pause_ms_max: u64,
    /// The most rows of a transaction.
    pub rows_max: u64,
    /// Deletions, in thousandths.
    pub deletes: u64,
    /// Writes of the hot key, in thousandths.
    pub hot: u64,
    /// Poisoned rows, in thousandths.
    pub poisoned: u64,
}

/// How a sink is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinkPlan {
    /// What it can do.
    pub able: Capabilities,
    /// Whether it lists each entry twice.
    pub repeats: bool,
    /// The longest until a batch is confirmed, in milliseconds; 0 confirms at once.
    pub confirms_ms_max: u64,
}

/// How a worker process fares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fates {
    /// The longest until something happens to it, in milliseconds; 0: nothing does.
    pub every_ms_max: u64,
    /// Sudden deaths, stops and stalls, by weight.
    pub kills: u32,
    /// Orderly stops.
    pub stops: u32,
    /// Pauses that may outlast the lease.
    pub stalls: u32,
}

/// A world as it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub seed: Seed,
    pub keys: u64,
    pub workers: usize,
    pub sinks: Vec<SinkPlan>,
    pub settings: Settings,
    pub reconcile_every: Option<Duration>,
    pub source_went_back: SourceWentBack,
    /// How long the weather lasts.
    pub chaos: Duration,
    pub ledger_sky: Sky,
    pub source_sky: Sky,
    pub sink_sky: Sky,
    pub writers: Vec<WriterPlan>,
    pub poisons: Vec<Poison>,
    pub fates: Fates,
    pub accidents: Vec<(Accident, u32)>,
    /// The longest pause between two accidents.
    pub accidents_ms_max: u64,
    pub wishes: Vec<(Wish, u32)>,
    pub wishes_ms_max: u64,
}

impl Plan {
    /// Draws a world.
    pub fn draw(seed: Seed) -> Self {
        let mut draws = seed.stream("plan");
        let ttl = draws.ms(2_000, 10_000);
        let gusty = draws.chance(750);
        let sky = |draws: &mut Stream| if gusty { sky(draws, ttl) } else { Sky::default() };
        let (ledger_sky, source_sky, sink_sky) =
            (sky(&mut draws), sky(&mut draws), sky(&mut draws));
        let poisons = subset(&mut draws, 300, POISONS);
        Self {
            seed,
            keys: draws.between(3, 40),
            workers: usize::try_from(draws.between(1, 3)).unwrap_or(1),
            sinks: (0..draws.between(1, 2)).map(|_| sink(&mut draws)).collect(),
            settings: settings(&mut draws, ttl),
            reconcile_every: draws.chance(300).then(|| draws.ms(5_000, 60_000)),
            source_went_back: *draws.pick(&[SourceWentBack::Halt, SourceWentBack::Repair]),
            chaos: draws.ms(20_000, 90_000),
            ledger_sky,
            source_sky,
            sink_sky,
            writers: (0..draws.between(1, 2))
                .map(|_| writer(&mut draws, !poisons.is_empty()))
                .collect(),
            poisons,
            fates: fates(&mut draws),
            accidents: subset(&mut draws, 200, ACCIDENTS).into_iter().map(|a| (a, 1)).collect(),
            accidents_ms_max: draws.between(3_000, 30_000),
            wishes: subset(&mut draws, 300, WISHES).into_iter().map(|wish| (wish, 1)).collect(),
            wishes_ms_max: draws.between(3_000, 30_000),
        }
    }
}

const POISONS: &[Poison] = &[
    Poison::Unloadable,
    Poison::Refused,
    Poison::RefusesBatch,
    Poison::PutOff,
    Poison::Kills,
    Poison::KillsReader,
];

const ACCIDENTS: &[Accident] = &[
    Accident::ClockJumps,
    Accident::SinkRestored,
    Accident::SinkReplaced,
    Accident::SinkCrashed,
    Accident::SourceRestored,
    Accident::LedgerRestored,
    Accident::ForeignWrites,
    Accident::ForeignFlood,
    Accident::SinkAhead,
    Accident::MissedWrites,
    Accident::CaptureBroken,
];

const WISHES: &[Wish] = &[
    Wish::ApplyAgain,
    Wish::Deploy,
    Wish::Reconcile,
    Wish::ReconcileConfirmed,
    Wish::ReconcileDeep,
    Wish::Retry,
    Wish::Request,
    Wish::Discard,
    Wish::Cancel,
    Wish::Pause,
];

/// Each of these, so many times in a thousand; none at all in a third of all worlds.
fn subset<T: Copy>(draws: &mut Stream, per_mille: u64, all: &[T]) -> Vec<T> {
    let any = draws.chance(667);
    all.iter().copied().filter(|_| draws.chance(per_mille) && any).collect()
}

fn sky(draws: &mut Stream, ttl: Duration) -> Sky {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let mut rate = |most: u64| if draws.chance(500) { draws.between(1, most) } else { 0 };
    Sky {
        refused: rate(80),
        lost: rate(80),
        late: rate(40),
        hangs: rate(6),
        slow: rate(200),
        clamped: rate(500),
        slow_ms_max: draws.between(10, ttl_ms * 2),
        late_ms_max: draws.between(10, ttl_ms * 3),
    }
}

/// What the engine relies on without asking, a sink is not drawn without: one that overwrites newer
/// by older, or forgets deletions while a message may still be late.
fn sink(draws: &mut Stream) -> SinkPlan {
    let remembers = match draws.chance(300) {
        // Longer than any world: the latest of all messages comes before.
        true => Memory::For(Duration::from_secs(86_400)),
        false => Memory::Forever,
    };
    SinkPlan {
        able: Capabilities {
            versioned_writes: true,
            versioned_deletes: true,
            remembers_deletes: remembers,
            fenced_writes: draws.chance(700),
            ordered_listing: draws.chance(700),
            marked: true,
            listing_lag: if draws.chance(300) { draws.ms(1, 5_000) } else { Duration::ZERO },
            verifies: draws.chance(800),
        },
        repeats: draws.chance(200),
        confirms_ms_max: if draws.chance(400) { draws.between(1, 3_000) } else { 0 },
    }
}

fn writer(draws: &mut Stream, poisons: bool) -> WriterPlan {
    WriterPlan {
        pause_ms_max: draws.between(20, 5_000),
        rows_max: if draws.chance(300) { draws.between(2, 60) } else { draws.between(1, 3) },
        deletes: draws.between(0, 500),
        hot: draws.between(0, 500),
        poisoned: if poisons { draws.between(1, 60) } else { 0 },
    }
}

fn fates(draws: &mut Stream) -> Fates {
    let every_ms_max = if draws.chance(700) { draws.between(500, 20_000) } else { 0 };
    let mut weight = || u32::try_from(draws.between(0, 3)).unwrap_or(0);
    Fates { every_ms_max, kills: weight(), stops: weight(), stalls: weight() }
}

fn settings(draws: &mut Stream, ttl: Duration) -> Settings {
    let delivery = RetryPolicy {
        base: draws.ms(10, 1_000),
        cap: Duration::from_secs(5),
        attempts_max: u32::try_from(draws.between(2, 5)).unwrap_or(2),
        jitter: *draws.pick(&[Jitter::None, Jitter::Additive(0.25), Jitter::Full, Jitter::Equal]),
    };
    Settings {
        lease_ttl: ttl,
        page_rows: u32::try_from(draws.between(1, 12)).unwrap_or(1),
        page_bytes: usize::try_from(draws.between(10, 600)).unwrap_or(10),
        trouble: RetryPolicy { base: draws.ms(10, 1_000), ..delivery },
        delivery,
        register_every: draws.ms(100, 3_000),
        halted_recheck: draws.ms(1_000, 20_000),
        poll_every: draws.ms(50, 500),
        idle_every: draws.ms(500, 3_000),
        turn_max: ttl * u32::try_from(draws.between(1, 4)).unwrap_or(1),
        turns_at_once: usize::try_from(draws.between(1, 2)).unwrap_or(1),
        sort_bytes: usize::try_from(draws.between(64, 4_096)).unwrap_or(64),
    }
}
