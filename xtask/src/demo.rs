//! `cargo xtask demo`: the main job, on real data, from a clean clone.
//!
//! It runs the programs that a user runs, and prints each command before it runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::run_cargo;
use crate::error::TaskError;
use crate::tree;

/// A line of the demo.
enum Line {
    /// Something worth reading.
    Say(&'static str),
    /// A program with its words, and the exit code that it has to end with.
    Run(&'static str, &'static [&'static str], i32),
}

use Line::{Run, Say};

/// The demo. Exit codes: 0 done, 3 drift found, 4 not complete.
const SCRIPT: &[Line] = &[
    Say("An application's database: the world's cities, with their names in many scripts."),
    Run("cities", &["make", "cities.db"], 0),
    Say("Its changes are captured by triggers in the same file."),
    Run("truekeep", &["capture", "install"], 0),
    Say("Everything is delivered into a mirror and a search index, and certified."),
    Run("truekeep", &["run", "--once"], 0),
    Run("truekeep", &["coverage"], 0),
    Run("truekeep", &["diff"], 0),
    Say("The index is searched, in any script."),
    Run("truekeep", &["search", "places", "東京", "--limit", "1"], 0),
    Run("truekeep", &["search", "places", "paris country:france", "--limit", "1"], 0),
    Say("The application goes on: it renames, deletes, moves keys, rewrites a country."),
    Run("cities", &["change", "cities.db"], 0),
    Say("The certificate still speaks of the moment before; nothing has drifted."),
    Run("truekeep", &["diff"], 0),
    Run("truekeep", &["coverage", "--max-age", "1 ms"], 4),
    Run("truekeep", &["run", "--once"], 0),
    Run("truekeep", &["coverage"], 0),
    Run("truekeep", &["search", "places", "lutetia country:france"], 0),
    Run("truekeep", &["search", "places", "country:nippon population:[5000000 TO *]"], 0),
    Say("Somebody damages the mirror behind our back."),
    Run("cities", &["damage", "mirror.db"], 0),
    Run("truekeep", &["diff"], 3),
    Say("It is repaired beside the live tail, and certified again."),
    Run("truekeep", &["reconcile"], 0),
    Run("truekeep", &["diff"], 0),
    Run("truekeep", &["status"], 0),
];

/// Builds the programs, runs the script in a new folder, and leaves it there to look at.
///
/// # Errors
/// When a program cannot be built or started, or ends with another code than the script says.
pub fn run() -> Result<(), TaskError> {
    let root = tree::root();
    run_cargo(
        &root,
        "build --locked --package truekeep-cli --package truekeep-example-cities",
        None,
    )?;
    let folder = fresh_folder(&root)?;
    println!("demo: in {}", folder.display());
    for line in SCRIPT {
        match line {
            Say(text) => println!("\n# {text}"),
            Run(program, words, code) => step(&root, &folder, program, words, *code)?,
        }
    }
    println!("\ndemo: done; the files are in {}", folder.display());
    Ok(())
}

fn fresh_folder(root: &Path) -> Result<PathBuf, TaskError> {
    let folder = tree::target(root).join("demo");
    let write = |source| TaskError::Write { path: folder.clone(), source };
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(write)?;
    }
    std::fs::create_dir_all(&folder).map_err(write)?;
    std::fs::copy(root.join("examples/cities/truekeep.toml"), folder.join("truekeep.toml"))
        .map_err(write)?;
    Ok(folder)
}

fn step(
    root: &Path,
    folder: &Path,
    program: &str,
    words: &[&str],
    code: i32,
) -> Result<(), TaskError> {
    println!("$ {program} {}", words.join(" "));
    let path = tree::target(root).join("debug").join(program);
    let name = || format!("{program} {}", words.join(" "));
    let status = Command::new(path)
        .args(words)
        .current_dir(folder)
        .status()
        .map_err(|source| TaskError::Start { command: name(), source })?;
    if status.code() == Some(code) {
        return Ok(());
    }
    Err(TaskError::Exit { command: name(), status })
}
