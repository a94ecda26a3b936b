//! The engine: performs what the core decides, through ports, on behalf of many scopes.
//!
//! A turn is always: lease still ours → what is due → perform it through a port → trouble is
//! classified and tried again, a fact becomes an observation → what follows → commit it under the
//! guard. So an effect happens at least once, and because each is keyed by key and rank a repeat
//! is harmless (P1, P3).
//!
//! [`Worker`] is what a program runs; [`Pipeline`] is what it is given.

mod acquire;
mod commit;
mod comparison;
mod delivery;
mod items;
mod keeper;
mod observer;
mod perform;
mod pipeline;
mod read_ahead;
mod reconcile;
mod removal;
mod scope;
mod stop;
mod trouble;
mod turn;
mod worker;

pub use comparison::{Comparison, Drift, Sides, Since, Sorted, Stretch};
pub use keeper::Keeper;
pub use observer::{Happening, Observer, Silent};
pub use pipeline::{Pipeline, Ports, Settings};
pub use removal::{Gone, Progress, Remover, SinkEnd, SourceEnd};
pub use scope::Ending;
pub use stop::{Stop, Stopper};
pub use turn::Turn;
pub use worker::{Report, Worker};
