//! What a storm has to know of a kind of sink, so that it can be held against its source.

mod index;
mod mirror;

use std::fmt::Debug;
use std::path::Path;

use rusqlite::Connection;

use crate::Fault;
use crate::law::Held;

pub use index::Index;
pub use mirror::Mirror;

/// A kind of sink. All its files are in one folder, which is a disk of its own.
pub trait Sink: Debug {
    /// Its name in what is printed.
    fn name(&self) -> &'static str;

    /// The lines of `[sink.things]`; paths begin with `sink/`.
    fn config(&self) -> &'static str;

    /// What it holds, read in one snapshot; nothing before it was first written. Records are texts
    /// as [`crate::writer::RECORD`] makes them.
    fn held(&self, folder: &Path) -> Result<Held, Fault>;

    /// Copies it as it is now, beside whoever writes it.
    fn back_up(&self, folder: &Path, to: &Path) -> Result<(), Fault>;

    /// Puts a copy in its place; nobody has it open.
    fn restore(&self, folder: &Path, from: &Path) -> Result<(), Fault>;

    /// Puts a copy in its place beside whoever writes it; false where that cannot be done.
    fn restore_live(&self, folder: &Path, from: &Path) -> Result<bool, Fault>;

    /// Keeps it from using room again that it has used before, while the answer lives; none where
    /// it needs new room for each write anyway.
    fn pin(&self, folder: &Path) -> Result<Option<Connection>, Fault>;

    /// Says whether its files are sound after a cut.
    fn verify(&self, folder: &Path) -> Result<(), Fault>;
}

/// Every kind.
pub fn all() -> Vec<Box<dyn Sink>> {
    vec![Box::new(Mirror), Box::new(Index)]
}
