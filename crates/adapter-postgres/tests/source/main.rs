//! The source over a real server, written by connections of an application.

mod access;
mod advice;
mod audits;
mod changes;
mod collations;
mod conformance;
mod equality;
mod failures;
mod fixture;
mod keys;
mod moments;
mod restores;
mod signature;
mod trouble;
mod values;
mod waking;
mod writers;
