//! The facade of truekeep: a configuration becomes wired ports. The only crate that names adapters, sinks, clocks and randomness.

pub mod config;
