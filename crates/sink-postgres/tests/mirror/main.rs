//! The mirror on real servers.

mod broken;
mod fixture;
mod generations;
mod rules;
mod structure;
mod trouble;
mod values;
