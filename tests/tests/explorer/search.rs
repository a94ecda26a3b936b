//! Breadth first through every world: the first broken promise has the shortest story.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Display, Write};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem::{Discriminant, discriminant};

/// Worlds of one search: more are a model that grew out of hand.
const WORLDS_MAX: usize = 4_000_000;
const NOWHERE: Broken = "work goes in a circle and never comes to rest";

/// A broken promise.
pub type Broken = &'static str;

/// A small world, and everything that may happen in it.
pub trait World: Copy + Eq + Hash + Debug {
    /// One thing that happens.
    type Action: Copy + Debug + Display;
    /// What is the same in every world of a search.
    type Laws;

    /// Everything that can happen next.
    fn steps(&self, laws: &mut Self::Laws) -> Vec<Step<Self>>;

    /// What must hold in every world.
    fn always(&self, laws: &Self::Laws) -> Result<(), Broken>;

    /// What must hold between this world and the next.
    fn between(&self, after: &Self, laws: &Self::Laws) -> Result<(), Broken>;

    /// What must hold once no worker has anything left to do.
    fn at_rest(&self, laws: &Self::Laws) -> Result<(), Broken>;

    /// What it looks like, at the end of a story.
    fn tell(&self, laws: &Self::Laws) -> String;
}

/// A step: what happened, and what the world is then.
#[derive(Debug, Clone, Copy)]
pub struct Step<W: World> {
    pub action: W::Action,
    pub world: W,
    /// Whether a worker, or the time that a dead one leaves behind, does it without being made to.
    pub progress: bool,
    /// What the step broke by itself.
    pub broke: Option<Broken>,
}

/// What a search found.
#[derive(Debug)]
pub struct Explored<W: World> {
    pub worlds: usize,
    /// Worlds in which no worker has anything left to do.
    pub at_rest: usize,
    kinds: HashSet<Discriminant<W::Action>>,
    /// The broken promise and the story that leads to it.
    pub broken: Option<(Broken, String)>,
}

/// Mixes word by word: worlds are many small fields, and nobody chooses them to collide.
#[derive(Debug, Default, Clone, Copy)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }

    fn write_u64(&mut self, number: u64) {
        // The constant is 2^64 divided by the golden ratio, as in Knuth's multiplicative hashing.
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// How a world was reached, and where work alone leads from it.
#[derive(Debug, Clone, Copy)]
struct Node<A> {
    came_from: Option<(u32, A)>,
    leads_to: Option<u32>,
}

struct Search<W: World> {
    laws: W::Laws,
    nodes: Vec<Node<W::Action>>,
    known: HashMap<W, u32, BuildHasherDefault<Mix>>,
    kinds: HashSet<Discriminant<W::Action>>,
    at_rest: usize,
}

/// A broken promise, the world before, and the step that broke it.
type Failure<W> = (Broken, u32, Option<Box<Step<W>>>);

/// The world that work alone leads to.
pub fn settled<W: World>(mut world: W, laws: &mut W::Laws) -> W {
    while let Some(step) = world.steps(laws).into_iter().find(|step| step.progress) {
        world = step.world;
    }
    world
}

/// Explores everything that can come of a world.
pub fn explore<W: World>(first: W, laws: W::Laws) -> Explored<W> {
    let mut search = Search {
        laws,
        nodes: Vec::new(),
        known: HashMap::default(),
        kinds: HashSet::new(),
        at_rest: 0,
    };
    let failure = search.run(first).and_then(|()| search.comes_to_rest());
    let told = |(broken, id, step): Failure<W>| (broken, search.tell(id, step));
    let broken = failure.map_err(told).err();
    Explored { worlds: search.nodes.len(), at_rest: search.at_rest, kinds: search.kinds, broken }
}

impl<W: World> Explored<W> {
    /// Whether something of this kind happened in any world.
    pub fn saw(&self, kind: W::Action) -> bool {
        self.kinds.contains(&discriminant(&kind))
    }
}

impl<W: World> Search<W> {
    fn run(&mut self, first: W) -> Result<(), Failure<W>> {
        let mut layer = vec![(self.enter(first, None).0, first)];
        while !layer.is_empty() {
            let mut next = Vec::new();
            for (id, world) in layer {
                self.visit(id, &world, &mut next)?;
            }
            layer = next;
        }
        Ok(())
    }

    fn visit(&mut self, id: u32, world: &W, next: &mut Vec<(u32, W)>) -> Result<(), Failure<W>> {
        let found = world.steps(&mut self.laws);
        if !found.iter().any(|step| step.progress) {
            self.at_rest += 1;
            world.at_rest(&self.laws).map_err(|broken| (broken, id, None))?;
        }
        for step in found {
            step.broke
                .map_or(Ok(()), Err)
                .and_then(|()| world.between(&step.world, &self.laws))
                .and_then(|()| step.world.always(&self.laws))
                .map_err(|broken| (broken, id, Some(Box::new(step))))?;
            let (to, is_new) = self.enter(step.world, Some((id, step.action)));
            self.kinds.insert(discriminant(&step.action));
            if is_new {
                next.push((to, step.world));
            }
            if step.progress {
                self.nodes[id as usize].leads_to.get_or_insert(to);
            }
        }
        Ok(())
    }

    fn enter(&mut self, world: W, came_from: Option<(u32, W::Action)>) -> (u32, bool) {
        let fresh = u32::try_from(self.nodes.len()).expect("few worlds");
        match self.known.entry(world) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(place) => {
                assert!(self.nodes.len() < WORLDS_MAX, "more than {WORLDS_MAX} worlds");
                place.insert(fresh);
                self.nodes.push(Node { came_from, leads_to: None });
                (fresh, true)
            }
        }
    }

    /// Whether work alone, without new changes and faults, always ends.
    fn comes_to_rest(&self) -> Result<(), Failure<W>> {
        let (mut ends, mut path) = (vec![false; self.nodes.len()], Vec::new());
        for start in 0..self.nodes.len() {
            let mut here = start;
            while !ends[here] {
                path.push(here);
                if path.len() > self.nodes.len() {
                    return Err((NOWHERE, u32::try_from(start).unwrap_or(0), None));
                }
                let Some(next) = self.nodes[here].leads_to else { break };
                here = next as usize;
            }
            path.drain(..).for_each(|passed| ends[passed] = true);
        }
        Ok(())
    }

    fn tell(&self, mut id: u32, step: Option<Box<Step<W>>>) -> String {
        let mut actions: Vec<W::Action> = step.iter().map(|step| step.action).collect();
        let last = step.map(|step| step.world);
        let last =
            last.or_else(|| self.known.iter().find(|(_, known)| **known == id).map(|(w, _)| *w));
        while let Some((before, action)) = self.nodes[id as usize].came_from {
            actions.push(action);
            id = before;
        }
        let mut text = String::new();
        for (number, action) in (1..).zip(actions.iter().rev()) {
            _ = writeln!(text, "{number:>3}. {action}");
        }
        last.map_or(text.clone(), |world| text + &world.tell(&self.laws))
    }
}
