//! Where a file or folder is: as it is written, and the path that it stands for.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file or folder. It prints as it is written in the configuration, before substitution.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    written: String,
    path: PathBuf,
}

impl Location {
    pub(super) fn new(written: String, path: PathBuf) -> Self {
        Self { written, path }
    }

    /// The path to open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which two spellings of one file are equal, whether the file is there or not.
    pub fn canonical(&self) -> PathBuf {
        if let Ok(path) = self.path.canonicalize() {
            return path;
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok();
        match (folder, self.path.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => self.path.clone(),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({:?})", self.written)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
