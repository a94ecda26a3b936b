//! SQLite connections on threads of their own, durable, with failures classified.

mod database;
mod failure;
mod file;

pub use database::{Access, Database, Options};
pub use failure::{Failure, Role, classify};
pub use file::FileIdentity;
