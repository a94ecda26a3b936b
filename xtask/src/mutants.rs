//! `cargo xtask mutants`: takes guards out, one at a time, and demands that a named test notices.
//!
//! A mutant is a patch in `tests/mutants`. Lines before the diff say which guard it takes out and what must notice:
//! `Guard: text`, and one or more `Caught-by: test -p package name` or `Caught-by: sim --seeds N`. Each patch is applied
//! to a copy of the tree; what is built for one is reused for the next.

mod copy;
mod patch;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::ci::cargo;
use crate::error::TaskError;
use crate::tree::{self, Tree};
use copy::Copy;
use patch::{Check, Patch};

/// Worlds that are to catch a mutant if it does not say how many.
const SIM: &str = "sim --seed 0x20000 --seeds 400";

/// What became of a mutant under one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Caught,
    Survived,
}

struct Row {
    name: String,
    check: String,
    fate: Fate,
    took: Duration,
}

/// Which mutants, and against what.
#[derive(Debug, Default)]
pub struct Wanted {
    /// So many at random; all if none.
    pub draw: Option<usize>,
    /// Only these, by name; all if empty.
    pub only: Vec<String>,
    /// The simulation instead of what each names.
    pub sim: bool,
}

/// Runs the checks of the mutants that are wanted.
///
/// # Errors
/// When a patch does not apply or build, or when nothing notices it.
pub fn run(wanted: &Wanted) -> Result<(), TaskError> {
    let root = tree::root();
    let all = Tree::read(&root)?;
    let mut patches = Patch::all(&all)?;
    let copy = Copy::at(&root)?;
    copy.refresh(&all)?;
    // Those that are not drawn are to apply as well: a guard that moves takes its patch with it.
    patches.iter().try_for_each(|patch| copy.fits(patch))?;
    patches.retain(|patch| wanted.only.is_empty() || wanted.only.contains(&patch.name));
    if let Some(many) = wanted.draw {
        draw(&mut patches, many);
    }
    println!("mutants: {}", patches.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(" "));
    let mut rows = Vec::new();
    for patch in &patches {
        println!("mutants: {}: {}", patch.name, patch.guard);
        copy.refresh(&all)?;
        copy.apply(patch)?;
        let of_sim = [Check::parse(SIM).ok_or_else(|| patch.unreadable("the simulation"))?];
        let checks = if wanted.sim { &of_sim[..] } else { &patch.checks[..] };
        for check in checks {
            let began = Instant::now();
            let fate = judge(&copy, check)?;
            let (name, took) = (patch.name.clone(), began.elapsed());
            println!("mutants: {name}: {fate:?} in {:.0} s by {check}", took.as_secs_f64());
            rows.push(Row { name, check: check.to_string(), fate, took });
        }
    }
    copy.refresh(&all)?;
    report(&rows);
    let survived = rows.iter().filter(|row| row.fate == Fate::Survived).count();
    // With the simulation alone it is a question, not a demand.
    if survived > 0 && !wanted.sim { Err(TaskError::Survived { survived }) } else { Ok(()) }
}

/// Three at random, for the gate.
///
/// # Errors
/// As [`run`].
pub fn run_three() -> Result<(), TaskError> {
    run(&Wanted { draw: Some(3), ..Wanted::default() })
}

fn draw(patches: &mut Vec<Patch>, many: usize) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut state = u64::from(since.subsec_nanos()) | 1;
    while patches.len() > many {
        // A linear congruential generator; the upper bits are the random ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(state >> 33).unwrap_or(0) % patches.len();
        patches.remove(index);
    }
}

/// Builds first: a mutant that does not build is no mutant.
fn judge(copy: &Copy, check: &Check) -> Result<Fate, TaskError> {
    let (build, run) = check.commands();
    let built = cargo_in(copy, &build, false)?;
    if !built {
        return Err(TaskError::NoMutant { command: build.join(" ") });
    }
    Ok(if cargo_in(copy, &run, true)? { Fate::Survived } else { Fate::Caught })
}

/// Whether it succeeded.
fn cargo_in(copy: &Copy, arguments: &[String], quiet: bool) -> Result<bool, TaskError> {
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(copy.tree()).env("CARGO_TARGET_DIR", copy.target());
    // Nobody looks into what is built, and it is a third as large without.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    // It is meant to fail, and loudly.
    if quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    // Cargo names the package that runs us; what is run is another one.
    command.env_remove("CARGO_MANIFEST_DIR");
    let name = || format!("cargo {}", arguments.join(" "));
    let status = command.status().map_err(|source| TaskError::Start { command: name(), source })?;
    Ok(status.success())
}

fn report(rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    println!();
    for Row { name, check, fate, took } in rows {
        let fate = match fate {
            Fate::Caught => "caught",
            Fate::Survived => "SURVIVED",
        };
        println!("{name:width$}  {fate:8}  {:4.0} s  {check}", took.as_secs_f64());
    }
}

/// Where mutants are kept, from the root.
const FOLDER: &str = "tests/mutants/";

/// Where the copy and what is built of it are, below the target folder.
fn workshop(root: &Path) -> std::path::PathBuf {
    tree::target(root).join("mutants")
}

#[cfg(test)]
mod tests;
