//! The source over real files, written by connections of an application.

mod conformance;
mod fixture;
