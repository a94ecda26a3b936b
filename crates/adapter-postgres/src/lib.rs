//! Ledger, source and capture on Postgres.

mod ledger;
mod source;

pub use ledger::{MigrationReport, PostgresLedger};
pub use source::*;
