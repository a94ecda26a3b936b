//! Generations: a sink that holds several versions of all its records beside each other, of which
//! readers see one.
//!
//! A generation is filled and compared while readers see another one, and then swapped in at once.
//! Writers name the generation that they write, never what readers see.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Sink;
use crate::code::Code;
use crate::failure::{FailureClass, PortError};
use crate::{Generation, SwapNumber};

/// What readers see, and since which swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The generation.
    pub generation: Generation,
    /// The swap that put it there; 0 for the first generation.
    pub swap: SwapNumber,
}

impl Served {
    /// What a sink serves that was never swapped.
    pub const FIRST: Self = Self { generation: Generation::new(1), swap: SwapNumber::new(0) };
}

/// Readers are to see another generation. A rollback is a swap like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Grows with each swap of the pipeline, so that a late one has no effect.
    pub number: SwapNumber,
    /// What they are to see now.
    pub from: Generation,
    /// What they are to see then.
    pub to: Generation,
}

/// The answer to a swap. A lost race is a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swapped {
    /// Readers see the new one, by this call or by an earlier one.
    Done,
    /// Readers see something else than the swap began from, and go on seeing it.
    Conflict(Served),
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// What readers see.
    pub served: Served,
    /// Every generation that takes room, rising.
    pub held: Vec<Generation>,
}

impl Swap {
    /// What becomes of a swap, given what is served: the one place where that is decided.
    /// `Ok(true)`: it is to be done. `Ok(false)`: it was done.
    ///
    /// # Errors
    /// What is served, if that is not what the swap began from.
    pub fn judge(&self, served: Served) -> Result<bool, Served> {
        if served.generation == self.to && served.swap == self.number {
            return Ok(false);
        }
        if served.generation == self.from && served.swap < self.number {
            return Ok(true);
        }
        Err(served)
    }
}

/// A sink with generations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Generations: Debug + Send + Sync {
    /// What there is. Writes nothing.
    async fn survey(&self) -> Result<Survey, PortError>;

    /// The sink over one generation. [`Sink::prepare`] makes it, empty and unseen by readers, if it
    /// is not there; the first one is what readers see until a swap. Each has a mark of its own.
    /// A repeat is harmless.
    async fn open(&self, generation: Generation) -> Result<Arc<dyn Sink>, PortError>;

    /// Makes readers see another generation, at once and durably: at no time do they see a mix,
    /// or nothing. What they saw before is kept. A repeat is harmless.
    ///
    /// # Errors
    /// Class Terminal with `GENERATION_MISSING` if `to` was not prepared; class Halted with a code
    /// that names them if things of others depend on what is served and cannot be carried over.
    async fn swap(&self, swap: &Swap) -> Result<Swapped, PortError>;

    /// Removes a generation with all it holds. A repeat is harmless.
    ///
    /// # Errors
    /// Class Terminal with `GENERATION_SERVED` if readers see it.
    async fn discard(&self, generation: Generation) -> Result<(), PortError>;
}

/// A generation that is to be swapped in is not there.
pub fn missing(generation: Generation) -> PortError {
    PortError::new("swap generations", FailureClass::Terminal, Code::GENERATION_MISSING)
        .detail(format!("there is no generation {generation}"))
}

/// A generation that is to be removed is what readers see.
pub fn served(generation: Generation) -> PortError {
    PortError::new("remove a generation", FailureClass::Terminal, Code::GENERATION_SERVED)
        .detail(format!("readers see generation {generation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X12: a late or repeated swap of a former holder moves nothing.
    #[test]
    fn a_swap_is_done_once_and_only_from_what_it_began_from() {
        let (one, two, three) = (Generation::new(1), Generation::new(2), Generation::new(3));
        let swap = |number, from, to| Swap { number: SwapNumber::new(number), from, to };
        let served = |generation, swap| Served { generation, swap: SwapNumber::new(swap) };
        let table = [
            (swap(1, one, two), Served::FIRST, Ok(true)),
            (swap(1, one, two), served(two, 1), Ok(false)),
            (swap(2, two, one), served(two, 1), Ok(true)),
            (swap(1, one, two), served(one, 2), Err(served(one, 2))),
            (swap(2, two, one), served(one, 0), Err(served(one, 0))),
            (swap(3, two, three), served(one, 2), Err(served(one, 2))),
            (swap(2, one, three), served(two, 1), Err(served(two, 1))),
        ];
        for (swap, held, judged) in table {
            assert_eq!(swap.judge(held), judged, "{swap:?} {held:?}");
        }
    }
}
