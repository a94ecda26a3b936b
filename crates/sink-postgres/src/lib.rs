//! A mirror of the source in a Postgres table, as one JSON column or as mapped columns.
//!
//! Invariant: P3. Ownership, fence, ranks, documents, tombstones and the mark are one transaction:
//! a connection that is cut leaves the whole batch or nothing of it, and the mark says which.

mod columns;
mod delivery;
mod generations;
mod keys;
mod mark;
mod placed;
mod sink;
mod spec;
mod statements;
mod structure;
mod types;
mod verify;

pub use generations::PostgresGenerations;
pub use sink::PostgresSink;
pub use spec::{Layout, MirrorColumn, MirrorSpec};
pub use types::ColumnType;
