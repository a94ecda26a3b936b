//! Ledger, source and capture on SQLite.

mod ledger;
mod source;

pub use ledger::*;
pub use source::*;
