//! The rules of a ledger, on the one in memory.
