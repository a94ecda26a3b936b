//! The simulation: the real engine in a world that is drawn from one seed.
//!
//! Ports that fail, stores that go back, rivals, operators and applications act at once, in virtual
//! time, on one thread; an auditor holds every write against the invariants of
//! [`truekeep_core::invariant`], and once everything is at rest holds each certificate against what
//! is. A seed replays exactly.

mod actors;
mod auditor;
mod plan;
mod poison;
mod ports;
mod process;
mod rest;
mod seed;
mod sink;
mod story;
mod time;
mod truth;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

pub use auditor::Broken;
pub use seed::{InvalidSeed, Seed};

use actors::{accidents, operators, workers, writers};
use plan::Plan;
use world::World;

/// What became of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What it was drawn from.
    pub seed: Seed,
    /// The promise that was broken, if one was.
    pub broken: Option<Broken>,
    /// The last events.
    pub story: String,
    /// A hash of everything that happened.
    pub trace: u64,
    /// How often each kind of event happened.
    pub seen: BTreeMap<&'static str, u64>,
}

/// Runs the world of a seed to its end, and keeps its last `told` events for the story.
///
/// # Panics
/// If no runtime can be made: the machine lacks what every program needs.
pub fn run(seed: Seed, told: usize) -> Outcome {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread");
    runtime.block_on(live(Plan::draw(seed), told))
}

async fn live(plan: Plan, told: usize) -> Outcome {
    let seed = plan.seed;
    let world = Arc::new(World::new(plan, told));
    tokio::select! {
        biased;
        () = world.alarm.notified() => {}
        () = story(&world) => {}
    }
    world.watched(|auditor, _| Outcome {
        seed,
        broken: auditor.broken.clone(),
        story: auditor.story.to_string(),
        trace: auditor.story.hash(),
        seen: auditor.story.seen().clone(),
    })
}

/// Weather, then calm.
async fn story(world: &Arc<World>) {
    let mut actors = JoinSet::new();
    for index in 0..world.plan.writers.len() {
        actors.spawn(writers::write(Arc::clone(world), index));
    }
    actors.spawn(accidents::happen(Arc::clone(world)));
    actors.spawn(operators::wish(Arc::clone(world)));
    let mut processes = JoinSet::new();
    for slot in 0..world.plan.workers {
        processes.spawn(workers::keep(Arc::clone(world), slot));
    }
    world.stores.time.pass(world.plan.chaos).await;
    world.calm_down();
    world.tell("calm", format_args!("the weather is over"));
    while let Some(ended) = actors.join_next().await {
        if let Err(error) = ended {
            world.watched(|auditor, _| auditor.broke("harness", error.to_string()));
        }
    }
    rest::settle(world).await;
}
