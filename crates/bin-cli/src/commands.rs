//! The commands, one file each.

pub mod apply;
pub mod cancel;
pub mod capture;
pub mod check;
pub mod completions;
pub mod coverage;
pub mod diff;
pub mod doctor;
pub mod document;
pub mod explain;
pub mod finding;
pub mod history;
pub mod init;
pub mod migrate;
pub mod parked;
pub mod rebuild;
pub mod reconcile;
pub mod remove;
pub mod search;
pub mod status;
pub mod steer;
pub mod wait;
