//! Postgres connections whose every transaction brings its own settings, with failures classified.
//!
//! Nothing here relies on the state of a session: no settings, no prepared statements, no locks that
//! outlive a transaction; but for a [`Listener`]. So a pooler that changes the server's connection between two transactions
//! changes nothing.

mod database;
mod failure;
mod listener;
mod transaction;

pub use database::{Database, Options};
pub use failure::{Failure, Reach, Role, classify, says};
pub use listener::Listener;
pub use sqlx;
pub use transaction::{Access, Transaction};
