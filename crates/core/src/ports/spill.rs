//! Room on disk for what does not fit in memory and need not outlive the process.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::failure::PortError;

/// Where such room is made.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Spill: Debug + Send + Sync {
    /// An empty file of its own. Nothing is left of it once it is dropped, or once the process has
    /// ended, however that was.
    ///
    /// # Errors
    /// Class Halted with `SPILL_FAILED` if there is no place for it.
    async fn file(&self) -> Result<Box<dyn SpillFile>, PortError>;
}

/// A file that is written from front to back and read anywhere. It has one user.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SpillFile: Debug + Send + Sync {
    /// Adds bytes at the end. After an error the file is of no use.
    ///
    /// # Errors
    /// Class Halted with `SPILL_FAILED` if they could not be written.
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), PortError>;

    /// So many bytes from a place on; fewer where the file ends.
    ///
    /// # Errors
    /// Class Halted with `SPILL_FAILED` if they could not be read.
    async fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, PortError>;
}
