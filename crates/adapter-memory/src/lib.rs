//! The reference ledger and source, in memory.

mod ledger;
mod source;

pub use ledger::*;
pub use source::*;
