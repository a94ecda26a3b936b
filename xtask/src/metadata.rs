//! What we read of `cargo metadata`: packages, their licences and their declared dependencies.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::TaskError;

/// The resolved graph, all platforms and features included.
#[derive(Debug, Default, Deserialize)]
pub struct Metadata {
    /// Every package of the graph.
    pub packages: Vec<Package>,
    /// The ids of our own packages.
    pub workspace_members: Vec<String>,
}

/// One package.
#[derive(Debug, Default, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its id, equal to the one in `workspace_members`.
    pub id: String,
    /// Its licence expression.
    #[serde(default)]
    pub license: Option<String>,
    /// The full path of its manifest.
    #[serde(default)]
    pub manifest_path: String,
    /// What it declares.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
}

/// One declared dependency.
#[derive(Debug, Default, Deserialize)]
pub struct Dependency {
    /// The package's name, before any rename.
    pub name: String,
    /// `None` for a normal one, else `dev` or `build`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Is it behind a feature?
    #[serde(default)]
    pub optional: bool,
}

impl Dependency {
    /// Is it for tests, benchmarks and examples only?
    pub fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

impl Metadata {
    /// Asks cargo, which must not need to change the lockfile.
    ///
    /// # Errors
    /// When cargo fails, or says something we do not understand.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        let command = "cargo metadata --format-version 1 --locked";
        let output = Command::new(crate::ci::cargo())
            .args(command.split(' ').skip(1))
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| TaskError::Start { command: command.to_owned(), source })?;
        if !output.status.success() {
            return Err(TaskError::Exit { command: command.to_owned(), status: output.status });
        }
        serde_json::from_slice(&output.stdout).map_err(|source| TaskError::Metadata { source })
    }

    /// Our own packages.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_member(package))
    }

    /// Is the package ours?
    pub fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }
}
