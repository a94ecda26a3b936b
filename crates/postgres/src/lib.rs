//! Postgres connections whose every transaction brings its own settings, with failures classified.
//!
//! Nothing here relies on the state of a session: no settings, no prepared statements, no locks that
//! outlive a transaction. So a pooler that changes the server's connection between two transactions
//! changes nothing.

mod database;
mod failure;
mod transaction;

pub use database::{Database, Options};
pub use failure::{Failure, Reach, Role, classify, says};
pub use sqlx;
pub use transaction::{Access, Transaction};
