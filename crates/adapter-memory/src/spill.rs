//! Spill files in memory: the reference, for tests and for sinks that are small.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Spill, SpillFile};

/// Room in memory, for all files together.
#[derive(Debug, Clone)]
pub struct MemorySpill {
    left: Arc<AtomicUsize>,
}

/// A file of it, which gives its room back when it is dropped.
#[derive(Debug)]
struct MemoryFile {
    bytes: Vec<u8>,
    left: Arc<AtomicUsize>,
}

impl MemorySpill {
    /// Room for so many bytes.
    pub fn new(room: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(room)) }
    }

    /// How much room is left.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Spill for MemorySpill {
    async fn file(&self) -> Result<Box<dyn SpillFile>, PortError> {
        Ok(Box::new(MemoryFile { bytes: Vec::new(), left: Arc::clone(&self.left) }))
    }
}

#[async_trait]
impl SpillFile for MemoryFile {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), PortError> {
        let take = |left: usize| left.checked_sub(bytes.len());
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            let class = FailureClass::Halted;
            let error = PortError::new("write a spill file", class, Code::SPILL_FAILED);
            return Err(error.detail("no room is left"));
        }
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, PortError> {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = &self.bytes[at..];
        Ok(rest[..rest.len().min(length)].to_vec())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes.len(), Ordering::SeqCst);
    }
}
