//! Every order of events of small worlds, under the machines that the worker runs.
//!
//! The search visits every world that a budget of changes and faults can reach, and holds each
//! against the invariants. Then guards are taken out one by one, and each has to be noticed.

mod follow;
mod reconcile;
mod search;
