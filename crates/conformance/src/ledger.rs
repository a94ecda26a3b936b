//! The rules of every ledger.
