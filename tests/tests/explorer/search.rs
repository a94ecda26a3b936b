//! Breadth first through every world: the first broken promise has the shortest story.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

use crate::Breaks;
use crate::invariants::{self, Broken};
use crate::machine::Machine;
use crate::story::{self, Action};
use crate::world::{Budget, Steps, World};

/// Worlds of one search: more are a model that grew out of hand.
const WORLDS_MAX: usize = 5_000_000;

/// What a search found.
#[derive(Debug)]
pub struct Explored {
    pub worlds: usize,
    /// Worlds in which no worker has anything left to do.
    pub at_rest: usize,
    /// The broken promise and the story that leads to it.
    pub broken: Option<(Broken, String)>,
}

/// Explores everything within a budget.
pub fn explore(budget: Budget, breaks: Breaks) -> Explored {
    let mut machine = Machine::new();
    let first = World::new(budget);
    let mut known = HashSet::from([first]);
    let mut came_from: Vec<Option<(usize, Action)>> = vec![None];
    let mut queue = VecDeque::from([(0, first)]);
    let mut at_rest = 0;
    while let Some((id, world)) = queue.pop_front() {
        let mut steps = Steps { machine: &mut machine, breaks, found: Vec::new() };
        world.steps(&mut steps);
        let found = steps.found;
        if !found.iter().any(|step| step.progress) {
            at_rest += 1;
            if let Err(broken) = invariants::at_rest(&world) {
                let story = tell(&came_from, id, None, &world, &machine);
                return Explored { worlds: known.len(), at_rest, broken: Some((broken, story)) };
            }
        }
        for step in found {
            let checked = step
                .broke
                .map_or(Ok(()), Err)
                .and_then(|()| invariants::between(&world, &step.world, &machine))
                .and_then(|()| invariants::always(&step.world, &machine));
            if let Err(broken) = checked {
                let story = tell(&came_from, id, Some(step.action), &step.world, &machine);
                return Explored { worlds: known.len(), at_rest, broken: Some((broken, story)) };
            }
            if known.insert(step.world) {
                queue.push_back((came_from.len(), step.world));
                came_from.push(Some((id, step.action)));
                assert!(known.len() <= WORLDS_MAX, "more than {WORLDS_MAX} worlds");
            }
        }
    }
    Explored { worlds: known.len(), at_rest, broken: None }
}

fn tell(
    came_from: &[Option<(usize, Action)>],
    mut id: usize,
    last: Option<Action>,
    world: &World,
    machine: &Machine,
) -> String {
    let mut actions: Vec<Action> = last.into_iter().collect();
    while let Some((before, action)) = came_from[id] {
        actions.push(action);
        id = before;
    }
    let mut text = String::new();
    for (number, action) in (1..).zip(actions.iter().rev()) {
        _ = writeln!(text, "{number:>3}. {action}");
    }
    text + &story::tell(world, machine)
}
