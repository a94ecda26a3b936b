//! SQLite connections on threads of their own, durable, with failures classified.

mod database;
mod failure;
mod file;
mod lock;
mod patience;

pub use database::{Access, Database, Options};
pub use failure::{Failure, Role, classify};
pub use file::FileIdentity;
pub use lock::write_lock;
pub use patience::impatient;

/// The version of the SQLite library that is compiled in.
pub fn version() -> &'static str {
    rusqlite::version()
}
