//! The pure core of truekeep: words, phase machines, retry math, comparison, certificates and the ports.
//!
//! It touches nothing: no runtime, clock, randomness, driver or logging. Time and draws are
//! arguments. Invariants are defined once, in [`invariant`].

#![deny(clippy::wildcard_enum_match_arm)]

pub mod certificate;
pub mod code;
pub mod compare;
pub mod failure;
pub mod follow;
pub mod guard;
pub mod invariant;
pub mod lease;
pub mod limits;
pub mod ports;
pub mod procedure;
pub mod reconcile;
pub mod relation;
pub mod retry;
pub mod sort;
mod words;

pub use words::*;
