//! The built binary over real files: what a user sees, as snapshots, and how it exits.

mod bad_input;
mod cancels;
mod certificate;
mod doctor;
mod drift;
mod first_light;
mod parked;
mod pauses;
mod reconcile;
mod rules;
mod search;
mod worker;
mod world;
