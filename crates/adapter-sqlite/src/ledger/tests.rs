//! The ledger in a SQLite file keeps the rules of every ledger.
