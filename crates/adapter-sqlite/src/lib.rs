//! Ledger, source and capture on SQLite.
