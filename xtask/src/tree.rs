//! The files of the repository: tracked, or new and not ignored.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::TaskError;

/// The root of the repository: the parent of this package's folder.
///
/// Cargo names the folder when it runs us. What it named at compile time may be another copy of the tree, when two
/// share a target folder.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().unwrap_or(&package).to_path_buf()
}

/// Where cargo builds.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// One file; `text` is empty for what is not UTF-8.
#[derive(Debug)]
pub struct File {
    /// The path from the root, with forward slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl File {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Is it Rust source?
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Does a part of the path between slashes, the file's own name included, equal `part`?
    pub fn has_part(&self, part: &str) -> bool {
        self.path.split('/').any(|own| own == part)
    }

    /// The number, from one, of the first line that `is_wanted` accepts; else one.
    pub fn line_where(&self, is_wanted: impl Fn(&str) -> bool) -> usize {
        self.text.lines().position(is_wanted).map_or(1, |index| index + 1)
    }
}

/// All files, in the order of their paths.
#[derive(Debug, Default)]
pub struct Tree {
    /// The files.
    pub files: Vec<File>,
    root: PathBuf,
}

impl Tree {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// When git cannot list the files or one cannot be read.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        let mut files = Vec::new();
        for path in list(root)? {
            let full = root.join(&path);
            // A file that is deleted but not yet committed is still listed; a link to a folder has no text.
            if !full.is_file() {
                continue;
            }
            let bytes =
                std::fs::read(&full).map_err(|source| TaskError::Read { path: full, source })?;
            files.push(File { path, text: String::from_utf8(bytes).unwrap_or_default() });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files, root: root.to_path_buf() })
    }

    /// All bytes of a file, also of one that is not text.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self, file: &File) -> Result<Vec<u8>, TaskError> {
        let path = self.root.join(&file.path);
        std::fs::read(&path).map_err(|source| TaskError::Read { path, source })
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// A tree of the given paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Self { files, root: PathBuf::new() }
    }
}

fn list(root: &Path) -> Result<Vec<String>, TaskError> {
    let mut command = Command::new("git");
    // The clone may belong to another user than the one who runs the gate.
    command.arg("-c").arg(format!("safe.directory={}", root.display()));
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = command
        .current_dir(root)
        .output()
        .map_err(|source| TaskError::Start { command: "git ls-files".to_owned(), source })?;
    if !output.status.success() {
        return Err(TaskError::Exit { command: "git ls-files".to_owned(), status: output.status });
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
