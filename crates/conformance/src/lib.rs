//! The rules that every ledger, source and sink obeys, as functions that anyone can run.
//!
//! A failure panics with the rule's name; run the functions in the tests of an implementation.

mod draws;
pub mod generations;
pub mod ledger;
pub mod sink;
pub mod source;
