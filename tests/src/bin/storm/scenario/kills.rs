//! Kill storms: two or three rivals, of which any may be killed, or stopped until its lease has
//! ended and then let go on, beside an application that dies too.

use std::time::Duration;

use rustix::process::Signal;

use crate::Fault;
use crate::sink::Sink;
use crate::world::{LEASE, Plan, World};
use crate::writer::Keeping;

const BLOWS: u64 = 14;

/// Folders.
pub fn plan(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    super::in_folders(sink, keeping)
}

/// Kills and pauses.
pub fn storm(world: &mut World<'_>) -> Result<(), Fault> {
    let rivals = 2 + usize::try_from(world.draws.below(2))?;
    world.start_application()?;
    for _ in 0..BLOWS {
        while world.workers.len() < rivals {
            world.start_worker(&[])?;
        }
        let time = world.draws.millis(50, 2_500);
        world.live(time)?;
        match world.draws.below(8) {
            0..4 => {
                let at = victim(world)?;
                world.kill_worker(at)?;
            }
            4..7 => pause(world)?,
            _ => {
                world.kill_application()?;
                world.start_application()?;
            }
        }
    }
    Ok(())
}

/// Mostly the one that works.
fn victim(world: &mut World<'_>) -> Result<usize, Fault> {
    world.listen();
    let holder = world.workers.iter().position(|worker| worker.holds);
    let any = usize::try_from(world.draws.below(world.workers.len() as u64))?;
    Ok(if world.draws.one_in(4) { any } else { holder.unwrap_or(any) })
}

/// SIGSTOP, past the end of the lease, SIGCONT: what it was about to do it does now. Some are killed
/// where they stand.
///
/// It is let go by the time alone. In a rollback-journal mode it may have been stopped while it
/// read the source: then the application waits for it, and whoever looks waits for the application.
fn pause(world: &mut World<'_>) -> Result<(), Fault> {
    let at = victim(world)?;
    let dies = world.draws.one_in(5);
    let time = LEASE + world.draws.millis(200, 2_000);
    let process = &world.workers[at].process;
    process.signal(Signal::STOP)?;
    let let_go = process.signal_after(time, if dies { Signal::KILL } else { Signal::CONT });
    world.workers[at].paused = true;
    world.tally.pauses += 1;
    let lived = world.live(time + Duration::from_millis(200));
    let_go.join().map_err(|_| "the thread that lets a worker go panicked")??;
    lived?;
    if dies {
        return world.kill_worker(at);
    }
    world.workers[at].paused = false;
    Ok(())
}
