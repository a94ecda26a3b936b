//! Full disks: at the source, the ledger and the sink in turn. The worker says so, with the code of
//! the store; nothing is lost; it goes on by itself once there is room.

use std::time::{Duration, Instant};

use crate::Fault;
use crate::database;
use crate::sink::Sink;
use crate::world::{LEASE, Plan, Store, World};
use crate::writer::{self, Keeping};

/// For how long the application commits nothing before its disk counts as full for it.
const STUCK: Duration = Duration::from_secs(1);

/// Three small disks, and records that need room.
pub fn plan(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    Plan { disks: Some([64, 16, 64]), body_max: 8_000, ..super::in_folders(sink, keeping) }
}

/// Each disk once, in any order.
pub fn storm(world: &mut World<'_>) -> Result<(), Fault> {
    world.start_worker(&[])?;
    world.start_worker(&[])?;
    world.start_application()?;
    let mut stores = Store::ALL.to_vec();
    while !stores.is_empty() {
        let at = usize::try_from(world.draws.below(stores.len() as u64))?;
        let time = world.draws.millis(300, 1_500);
        world.live(time)?;
        full(world, stores.remove(at))?;
    }
    Ok(())
}

fn full(world: &mut World<'_>, store: Store) -> Result<(), Fault> {
    world.listen();
    world.codes.clear();
    // A log that is begun anew needs no room: while somebody reads, it has to grow.
    let reader = match store {
        Store::Source => Some(database::pin(&world.source())?),
        Store::Ledger => Some(database::pin(&world.ledger())?),
        Store::Sink => world.plan.sink.pin(&world.at(Store::Sink))?,
    };
    world.disk(store)?.fill()?;
    world.tally.full += 1;
    let code = match store {
        Store::Source => "SOURCE_UNAVAILABLE",
        Store::Ledger => "LEDGER_UNAVAILABLE",
        Store::Sink => "SINK_UNAVAILABLE",
    };
    if store == Store::Source {
        // A worker reads there; it writes one row a second, and only while there is news.
        until_stuck(world)?;
    } else {
        world.until("the code is told", |world, _| Ok(world.codes.contains(code)))?;
    }
    let time = world.draws.millis(200, 2_000);
    world.live(time)?;
    let dies = world.draws.one_in(3);
    if dies {
        world.kill_worker(0)?;
        world.live(LEASE)?;
    }
    if let Some(other) = world.codes.iter().find(|told| *told != code) {
        return Err(format!("the {} is full, and a worker told {other}", store.folder()).into());
    }
    drop(reader);
    world.disk(store)?.make_room()?;
    goes_on(world)?;
    if dies { world.start_worker(&[]) } else { Ok(()) }
}

/// The application cannot commit any more.
fn until_stuck(world: &mut World<'_>) -> Result<(), Fault> {
    let (mut noted, mut since) = (None, Instant::now());
    world.until("the application is stuck", |world, _| {
        let now = writer::noted(&world.notes())?;
        if now != noted {
            (noted, since) = (now, Instant::now());
        }
        Ok(since.elapsed() > STUCK)
    })
}

/// The certificate moves on, by the workers that were there.
fn goes_on(world: &mut World<'_>) -> Result<(), Fault> {
    let newest = writer::truth(&world.source())?.newest;
    world.until("complete beyond what the full disk held up", |_, claim| {
        Ok(claim.covers().is_some_and(|moment| moment > newest))
    })?;
    for worker in &mut world.workers {
        if let Some(status) = worker.process.ended()? {
            return Err(format!("a worker ended: {status}").into());
        }
    }
    Ok(())
}
