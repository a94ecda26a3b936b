//! The built binary over real files: what a user sees, as snapshots, and how it exits.

mod bad_input;
mod cancels;
mod certificate;
mod doctor;
mod drift;
mod first_light;
mod forms;
mod hard_sinks;
mod mirror;
mod parked;
mod pauses;
mod postgres;
mod reconcile;
mod refused;
mod removals;
mod rules;
mod search;
mod several;
mod worker;
mod world;
