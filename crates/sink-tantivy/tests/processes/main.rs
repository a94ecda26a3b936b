//! The index and the death, the rights and the full disks of processes.

mod failures;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../index/fixture.rs"]
mod fixture;
mod killed;

/// Between its birth and its own program a child holds all locks of its parent, also those of other
/// tests: they are one after another.
pub static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
