//! Source and capture on Postgres.

mod source;

pub use source::*;
