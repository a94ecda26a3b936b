//! Spill files in a folder: they have no name, so that nothing of them is left once they are closed
//! or the process has ended, however that was.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::spawn_blocking;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Spill, SpillFile};

/// A folder for spill files.
#[derive(Debug, Clone)]
pub struct FolderSpill {
    folder: Arc<Path>,
}

/// A file without a name.
#[derive(Debug)]
struct NamelessFile {
    file: Arc<File>,
    folder: Arc<Path>,
    length: u64,
}

impl FolderSpill {
    /// In this folder, or else in the system's for temporary files.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder: folder.unwrap_or_else(std::env::temp_dir).into() }
    }
}

#[async_trait]
impl Spill for FolderSpill {
    async fn file(&self) -> Result<Box<dyn SpillFile>, PortError> {
        let folder = Arc::clone(&self.folder);
        let file = aside(move || tempfile::tempfile_in(&*folder)).await;
        let file = Arc::new(file.map_err(|error| failed("make", &self.folder, error))?);
        Ok(Box::new(NamelessFile { file, folder: Arc::clone(&self.folder), length: 0 }))
    }
}

#[async_trait]
impl SpillFile for NamelessFile {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), PortError> {
        let (file, at) = (Arc::clone(&self.file), self.length);
        self.length += bytes.len() as u64;
        let written = aside(move || file.write_all_at(&bytes, at)).await;
        written.map_err(|error| failed("write", &self.folder, error))
    }

    async fn read(&self, at: u64, length: usize) -> Result<Vec<u8>, PortError> {
        let file = Arc::clone(&self.file);
        let length =
            usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX).min(length);
        let read = move || {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, at).map(|()| bytes)
        };
        aside(read).await.map_err(|error| failed("read", &self.folder, error))
    }
}

/// Runs a call that may wait for a disk on a thread that may.
async fn aside<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(call).await.unwrap_or_else(|broken| Err(io::Error::other(broken)))
}

fn failed(what: &str, folder: &Path, error: io::Error) -> PortError {
    PortError::new(
        "put aside what does not fit in memory",
        FailureClass::Halted,
        Code::SPILL_FAILED,
    )
    .detail(format!("failed to {what} a file without a name in {}", folder.display()))
    .caused_by(error)
}

#[cfg(test)]
mod tests;
