//! Storms over the real programs and real SQLite files: power cuts, full disks, kills, restores,
//! clocks. Each scenario ends equal and certified, and no certificate lies on the way.
//!
//! `cargo xtask storm [--minutes M] [--only NAME] [--sink NAME] [--seed S]`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints what it did")]

mod arguments;
mod claim;
mod database;
mod disk;
mod draws;
mod law;
mod privilege;
mod program;
mod scenario;
mod sink;
mod stop;
mod tally;
mod world;
mod writer;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arguments::Arguments;
use draws::Draws;
use scenario::Scenario;
use stop::Stop;
use tally::{HEADING, Row, Tally};
use world::World;
use writer::{Keeping, Orders};

/// Whatever ends a round before its end.
pub type Fault = Box<dyn Error>;

/// The first word of the process that is the application.
pub const WRITE: &str = "write";

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, orders)) if first == WRITE => {
            Orders::parse(orders).and_then(|orders| orders.follow()).map(|()| true)
        }
        Some((first, words)) if first == privilege::INSIDE => {
            Arguments::parse(words).and_then(|arguments| storm(&arguments))
        }
        _ => Arguments::parse(&words).and_then(|_| privilege::enter(&words)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the scenarios, each for its share of the time; whether all went well.
fn storm(arguments: &Arguments) -> Result<bool, Fault> {
    let stop = Stop::listen()?;
    let target = std::env::current_exe()?;
    let target = target.parent().and_then(Path::parent).ok_or("no target folder")?;
    let folder = tempfile::tempdir_in(target)?;
    let scenarios = arguments.scenarios()?;
    let share = Duration::from_secs_f64(arguments.minutes * 60.0 / scenarios.len() as f64);
    println!("seed {}; {} s each", arguments.seed, share.as_secs());
    let mut rows = Vec::new();
    let mut failures = 0;
    for scenario in scenarios {
        let mut sum = Tally::default();
        let begun = Instant::now();
        let mut round = 0;
        while (round == 0 || begun.elapsed() < share) && !stop.is_asked() {
            let kept = target
                .join("storm-failed")
                .join(format!("{}-{}-{round}", scenario.name, arguments.seed));
            let told = play(scenario, arguments, round, folder.path(), &stop, &kept, &mut sum);
            if let Err(error) = told {
                if stop.is_asked() {
                    break;
                }
                failures += 1;
                println!("FAILED {} {round}: {error}", scenario.name);
                println!("  what is left: {}", kept.display());
                println!(
                    "  again: cargo xtask storm --only {} --seed {}",
                    scenario.name, arguments.seed
                );
            }
            round += 1;
        }
        rows.push((scenario.name, sum));
    }
    let mut all = Tally::default();
    println!("\n{HEADING}");
    for (name, tally) in &rows {
        println!("{}", Row(name, tally));
        all.add(tally);
    }
    println!("{}", Row("all", &all));
    if stop.is_asked() {
        println!("\nstopped as asked; nothing is left mounted");
    }
    Ok(failures == 0 && !stop.is_asked())
}

/// One round of a scenario, in a world of its own.
fn play(
    scenario: &Scenario,
    arguments: &Arguments,
    round: u64,
    folder: &Path,
    stop: &Stop,
    kept: &Path,
    sum: &mut Tally,
) -> Result<(), Fault> {
    let begun = Instant::now();
    let draws = Draws::of(arguments.seed, scenario.name, round);
    let sink = arguments.sink(round)?;
    // In turn, so that each comes whatever the seed.
    let at = arguments.seed.wrapping_add(round) % Keeping::ALL.len() as u64;
    let keeping = Keeping::ALL[usize::try_from(at)?];
    let name = format!(
        "{} {round}: {}, source {} {}",
        scenario.name,
        sink.name(),
        keeping.journal,
        keeping.synchronous
    );
    let folder: PathBuf = folder.join(format!("{}-{round}", scenario.name));
    std::fs::create_dir(&folder)?;
    let mut world = World::new(folder.clone(), (scenario.plan)(sink, keeping), draws, stop)?;
    let told = (scenario.storm)(&mut world).and_then(|()| world.settle());
    world.count();
    world.tally.rounds = u64::from(told.is_ok());
    world.tally.took = begun.elapsed();
    sum.add(&world.tally);
    if told.is_ok() {
        println!(
            "{name}: equal and certified, {} checks, {} s",
            world.tally.checks,
            begun.elapsed().as_secs()
        );
    } else if !stop.is_asked() {
        world.keep(kept)?;
    }
    drop(world);
    std::fs::remove_dir_all(&folder)?;
    told.map_err(|error| format!("{name}: {error}").into())
}
