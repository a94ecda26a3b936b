//! The index as a sink: its rules, its values, its structure, and what it does in trouble.

mod failures;
mod fixture;
mod killed;
mod listing;
mod reference;
mod rules;
mod search;
mod structure;
mod values;
