//! A mirror of the source in a SQLite table, as one JSON column or as mapped columns.
//!
//! Invariant: P3. Ownership, fence, ranks, documents, tombstones and the mark are one transaction:
//! a process that dies leaves the whole batch or nothing of it.

mod columns;
mod connections;
mod delivery;
mod generations;
mod mark;
mod sink;
mod spec;
mod statements;
mod structure;
mod verify;

pub use generations::SqliteGenerations;
pub use sink::SqliteSink;
pub use spec::{Layout, MirrorColumn, MirrorSpec};
