//! A full-text index of the source in a tantivy directory, and the search in it.
//!
//! Invariant: P3. Ownership, fence, ranks, documents, tombstones and the mark are one commit of the
//! index: a process that dies leaves the whole batch or nothing of it.

mod analysis;
mod date;
mod delivery;
mod digest;
mod directory;
mod document;
mod failure;
mod generations;
mod held;
mod hit;
mod index;
mod keeper;
mod listing;
mod mark;
mod schema;
mod search;
mod sink;
mod spec;
mod verify;

pub use analysis::{Analysis, LANGUAGES, Language, Split};
pub use generations::TantivyGenerations;
pub use hit::{Hit, Snippet};
pub use search::{BadQuery, Found, SearchError, SearchIndex, SearchRequest};
pub use sink::TantivySink;
pub use spec::{DateUnit, FieldKind, FieldSpec, IndexSpec, WRITER_BYTES, WRITER_BYTES_MIN};
