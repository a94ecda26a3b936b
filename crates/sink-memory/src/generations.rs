//! Generations in memory: what every sink with generations is held against.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use truekeep_core::Generation;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Generations, Served, Sink, Survey, Swap, Swapped, generations};

use crate::MemorySink;

#[derive(Debug)]
struct State {
    held: BTreeMap<Generation, Arc<MemorySink>>,
    served: Served,
}

/// Several sinks in memory, of which readers see one.
#[derive(Debug)]
pub struct MemoryGenerations {
    state: Mutex<State>,
}

impl Default for MemoryGenerations {
    fn default() -> Self {
        Self { state: Mutex::new(State { held: BTreeMap::new(), served: Served::FIRST }) }
    }
}

impl MemoryGenerations {
    /// What readers see; none if it was never made.
    pub fn seen(&self) -> Option<Arc<MemorySink>> {
        let state = self.state();
        state.held.get(&state.served.generation).cloned()
    }

    /// A change is made whole or panics before it begins, so a poisoned lock guards a sound state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Generations for MemoryGenerations {
    async fn survey(&self) -> Result<Survey, PortError> {
        let state = self.state();
        Ok(Survey { served: state.served, held: state.held.keys().copied().collect() })
    }

    async fn open(&self, generation: Generation) -> Result<Arc<dyn Sink>, PortError> {
        let mut state = self.state();
        Ok(Arc::clone(state.held.entry(generation).or_default()) as Arc<dyn Sink>)
    }

    async fn swap(&self, swap: &Swap) -> Result<Swapped, PortError> {
        let mut state = self.state();
        match swap.judge(state.served) {
            Err(served) => return Ok(Swapped::Conflict(served)),
            Ok(false) => return Ok(Swapped::Done),
            Ok(true) => {}
        }
        if !state.held.contains_key(&swap.to) {
            return Err(generations::missing(swap.to));
        }
        state.served = Served { generation: swap.to, swap: swap.number };
        Ok(Swapped::Done)
    }

    async fn discard(&self, generation: Generation) -> Result<(), PortError> {
        let mut state = self.state();
        if state.served.generation == generation {
            return Err(generations::served(generation));
        }
        state.held.remove(&generation);
        Ok(())
    }
}
