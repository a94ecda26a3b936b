//! A mutant as it is written down.

use std::fmt;
use std::path::PathBuf;

use super::FOLDER;
use crate::error::TaskError;
use crate::tree::{self, File, Tree};

/// A patch that takes a guard out.
#[derive(Debug, PartialEq, Eq)]
pub struct Patch {
    /// The file's name without its ending.
    pub name: String,
    /// The whole path.
    pub path: PathBuf,
    /// What it takes out.
    pub guard: String,
    /// What must notice, each by itself.
    pub checks: Vec<Check>,
}

/// What must notice.
#[derive(Debug, PartialEq, Eq)]
pub enum Check {
    /// `cargo test` with these words.
    Test(Vec<String>),
    /// The simulation with these words.
    Sim(Vec<String>),
}

impl Patch {
    /// Every mutant, by name.
    ///
    /// # Errors
    /// When one does not say what it takes out and what must notice.
    pub fn all(tree: &Tree) -> Result<Vec<Self>, TaskError> {
        let files = tree
            .files
            .iter()
            .filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".patch"));
        files.map(Self::read).collect()
    }

    fn read(file: &File) -> Result<Self, TaskError> {
        let head = || file.text.lines().take_while(|line| !line.starts_with("---"));
        let after = |word: &str| {
            let lines = head().filter_map(|line| line.strip_prefix(word));
            lines.map(|rest| rest.trim().to_owned()).collect::<Vec<_>>()
        };
        let patch = Self {
            name: file.name().trim_end_matches(".patch").to_owned(),
            path: tree::root().join(&file.path),
            guard: after("Guard:").concat(),
            checks: Vec::new(),
        };
        let checks: Option<Vec<_>> =
            after("Caught-by:").iter().map(|line| Check::parse(line)).collect();
        let checks = checks.filter(|checks| !checks.is_empty() && !patch.guard.is_empty());
        let checks = checks.ok_or_else(|| patch.unreadable("a `Guard:` and a `Caught-by:`"))?;
        Ok(Self { checks, ..patch })
    }

    /// It lacks something.
    pub fn unreadable(&self, lacks: &'static str) -> TaskError {
        TaskError::Unreadable { path: self.path.clone(), lacks }
    }
}

impl Check {
    /// Reads `test ..` or `sim ..`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        match words.next()?.as_str() {
            "test" => Some(Self::Test(words.collect())),
            "sim" => Some(Self::Sim(words.collect())),
            _ => None,
        }
    }

    /// What cargo is to build, and what it is to run.
    pub fn commands(&self) -> (Vec<String>, Vec<String>) {
        let with = |fixed: &[&str], words: &[String]| {
            fixed.iter().map(|word| (*word).to_owned()).chain(words.iter().cloned()).collect()
        };
        match self {
            Self::Test(words) => (
                with(&["test", "--quiet", "--locked", "--no-run"], words),
                with(&["test", "--quiet", "--locked"], words),
            ),
            Self::Sim(words) => {
                let of =
                    ["--quiet", "--locked", "--package", "truekeep-simulation", "--bin", "sim"];
                let build = [&["build"], &of[..]].concat();
                let run = [&["run"], &of[..], &["--"]].concat();
                (with(&build, &[]), with(&run, words))
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, rest) = match self {
            Self::Test(words) => ("test", words),
            Self::Sim(words) => ("sim", words),
        };
        write!(f, "{word} {}", rest.join(" "))
    }
}
