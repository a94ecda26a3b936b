//! Which file a path names: one that is replaced or removed under an open connection goes on
//! taking writes, and nobody else sees them.

use std::path::Path;

/// A file, told from any other that is there while this one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file at a path; none if there is none, or if the platform does not tell.
    #[cfg(unix)]
    pub fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// The file at a path; none if there is none, or if the platform does not tell.
    #[cfg(not(unix))]
    pub fn at(_path: &Path) -> Option<Self> {
        // An open file cannot be removed there.
        None
    }
}
