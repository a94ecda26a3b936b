//! A copy of the tree that mutants are made of. Only files that differ are written, so that little is built anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::patch::Patch;
use crate::error::TaskError;
use crate::tree::Tree;

/// The copy.
#[derive(Debug)]
pub struct Copy {
    workshop: PathBuf,
}

impl Copy {
    /// The copy of the tree at `root`.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn at(root: &Path) -> Result<Self, TaskError> {
        let copy = Self { workshop: super::workshop(root) };
        std::fs::create_dir_all(copy.tree()).map_err(|source| copy.failed(copy.tree(), source))?;
        Ok(copy)
    }

    /// Its root.
    pub fn tree(&self) -> PathBuf {
        self.workshop.join("tree")
    }

    /// Where it is built.
    pub fn target(&self) -> PathBuf {
        self.workshop.join("build")
    }

    /// Makes it what the tree is. Files that the tree has no more may stay: nothing names them.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn refresh(&self, of: &Tree) -> Result<(), TaskError> {
        for file in &of.files {
            let path = self.tree().join(&file.path);
            let bytes = of.bytes(file)?;
            if std::fs::read(&path).is_ok_and(|there| there == bytes) {
                continue;
            }
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(|source| self.failed(folder.into(), source))?;
            }
            std::fs::write(&path, bytes).map_err(|source| self.failed(path.clone(), source))?;
        }
        Ok(())
    }

    /// Applies a patch.
    ///
    /// # Errors
    /// When it does not apply.
    pub fn apply(&self, patch: &Patch) -> Result<(), TaskError> {
        self.git(&["apply"], patch)
    }

    /// Whether a patch applies.
    ///
    /// # Errors
    /// When it does not.
    pub fn fits(&self, patch: &Patch) -> Result<(), TaskError> {
        self.git(&["apply", "--check"], patch)
    }

    fn git(&self, words: &[&str], patch: &Patch) -> Result<(), TaskError> {
        let mut command = Command::new("git");
        command.args(words).arg(&patch.path).current_dir(self.tree());
        // The copy lies inside a repository, of which it is no part.
        command.env("GIT_CEILING_DIRECTORIES", &self.workshop);
        let name = || format!("git {} {}", words.join(" "), patch.path.display());
        let status =
            command.status().map_err(|source| TaskError::Start { command: name(), source })?;
        if status.success() { Ok(()) } else { Err(TaskError::Exit { command: name(), status }) }
    }

    fn failed(&self, path: PathBuf, source: std::io::Error) -> TaskError {
        TaskError::Write { path, source }
    }
}
