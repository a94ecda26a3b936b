//! The index as a sink: its rules, its values and its structure. No test here starts a process: see
//! `processes`.

mod fixture;
mod generations;
mod listing;
mod reference;
mod rules;
mod search;
mod structure;
mod values;
