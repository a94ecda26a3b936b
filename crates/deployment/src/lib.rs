//! The facade of truekeep: a configuration becomes wired ports. The only crate that names adapters, sinks, clocks and randomness.
//!
//! Beside the wiring it holds what readers ask of a ledger ([`status`], [`coverage`]) and of both
//! sides at once ([`diff`]), as data that a program prints or serves.

pub mod announce;
pub mod certificates;
pub mod clock;
pub mod codes;
pub mod config;
pub mod coverage;
pub mod diff;
pub mod doctor;
pub mod entropy;
pub mod init;
pub mod operator;
pub mod reconcile;
pub mod removal;
pub mod rules;
pub mod search;
pub mod spill;
pub mod status;
pub mod trouble;
pub mod wiring;
pub mod worker;

pub use config::Config;
pub use trouble::Trouble;
