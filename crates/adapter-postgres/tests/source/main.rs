//! The source over a real server, written by connections of an application.

mod changes;
mod conformance;
mod fixture;
mod keys;
mod moments;
mod signature;
mod trouble;
mod values;
mod writers;
