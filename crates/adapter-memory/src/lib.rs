//! The reference ledger and source, in memory, and room for what is put aside.

mod ledger;
mod source;
mod spill;

pub use ledger::*;
pub use source::*;
pub use spill::MemorySpill;
