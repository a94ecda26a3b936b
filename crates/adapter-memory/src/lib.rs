//! The reference ledger and source, in memory.
