//! The fates of the worker processes: they are killed, stopped, stalled past their lease, and
//! started again. In calm weather only the first goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use truekeep_engine::{Report, Stop, Stopper};

use crate::process::Process;
use crate::world::World;

/// How often it is looked whether the weather has changed.
const LOOK: Duration = Duration::from_millis(500);

/// What happens to a process.
#[derive(Debug, Clone, Copy)]
enum End {
    Killed,
    Stopped,
}

/// Keeps a worker going until the world ends; all but the first until it is calm.
pub(crate) async fn keep(world: Arc<World>, slot: usize) {
    let mut draws = world.plan.seed.stream(&format!("fate of worker {slot}"));
    let time = &world.stores.time;
    for start in 0u64.. {
        if world.is_calm() && slot > 0 {
            return;
        }
        let began_calm = world.is_calm();
        let process = Process::new(&world, format!("w{slot}.{start}"));
        world.tell("starts", format_args!("{} with {}", process.name, process.fingerprint));
        let (stopper, stop) = Stopper::new();
        let task = run(&process, stop);
        let mut next = time.now() + draws.ms(1, world.plan.fates.every_ms_max.max(1));
        let end = loop {
            tokio::select! {
                biased;
                () = process.killed.notified() => break End::Killed,
                () = time.pass(left(next, time.now())) => {}
            }
            if world.is_calm() && !began_calm {
                break End::Stopped;
            }
            if world.is_calm() || world.plan.fates.every_ms_max == 0 || time.now() < next {
                continue;
            }
            next = time.now() + draws.ms(1, world.plan.fates.every_ms_max);
            let fates = world.plan.fates;
            match draws.weighted(&[(0, fates.kills), (1, fates.stops), (2, fates.stalls)]) {
                Some(0) => break End::Killed,
                Some(1) => break End::Stopped,
                Some(2) => {
                    let ttl = world.plan.settings.lease_ttl;
                    let length = draws.ms(1, u64::try_from((ttl * 3).as_millis()).unwrap_or(1));
                    world.tell("stalls", format_args!("{} for {length:?}", process.name));
                    process.stall(length);
                }
                Some(_) | None => {}
            }
        };
        finish(&world, &process, end, stopper, task).await;
        if !world.is_calm() {
            time.pass(draws.ms(1, 5_000)).await;
        }
    }
}

/// How long until it is looked again. What is past is not drawn anew in calm weather.
fn left(next: Duration, now: Duration) -> Duration {
    if next > now { LOOK.min(next - now) } else { LOOK }
}

fn run(process: &Arc<Process>, stop: Stop) -> JoinHandle<Report> {
    tokio::spawn(process.worker().run(stop))
}

async fn finish(
    world: &World,
    process: &Process,
    end: End,
    stopper: Stopper,
    mut task: JoinHandle<Report>,
) {
    world.tell("ends", format_args!("{} {end:?}", process.name));
    match end {
        End::Killed => task.abort(),
        End::Stopped => {
            stopper.stop();
            // What hangs does not stop in an orderly way: whoever stops it kills it in the end.
            let patience = world.plan.settings.lease_ttl * 2;
            tokio::select! {
                biased;
                _ = &mut task => return,
                () = world.stores.time.pass(patience) => task.abort(),
            }
        }
    }
    // It was aborted: there is nothing to hear from it.
    let _ = task.await;
}
