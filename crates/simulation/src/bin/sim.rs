//! Runs worlds, one after the other on each core: `sim [--seeds N] [--minutes M] [--seed S]`.
//!
//! A world that breaks a promise is told as a short story, and as the one line that replays it.
//! `--story N` tells the last N events, also of worlds that keep every promise.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its result")]
#![expect(
    clippy::disallowed_methods,
    reason = "how long to go on and on how many cores is no part of any world"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use truekeep_simulation::{Seed, run};

/// Worlds that are run if nobody says how many.
const SEEDS: u64 = 100;
/// Events of a story.
const TOLD: usize = 40;

/// What is wanted.
struct Wanted {
    first: Seed,
    seeds: u64,
    within: Duration,
    told: usize,
    /// Whether a world that keeps its promises is told as well.
    tells: bool,
}

fn main() -> ExitCode {
    let wanted = match wanted(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let began = Instant::now();
    let (next, ran, broken) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let print = Mutex::new(());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !broken.load(Ordering::Relaxed) && began.elapsed() < wanted.within {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= wanted.seeds {
                        return;
                    }
                    let outcome = run(wanted.first.after(number), wanted.told);
                    ran.fetch_add(1, Ordering::Relaxed);
                    if outcome.broken.is_some() {
                        broken.store(true, Ordering::Relaxed);
                    }
                    let _one_at_a_time = print.lock();
                    if let Some(broken) = &outcome.broken {
                        let (story, seed) = (&outcome.story, outcome.seed);
                        println!("\n{story}\n{broken}\n\nreplay: cargo xtask sim --seed {seed}\n");
                    } else if wanted.tells {
                        println!("{}", outcome.story);
                    }
                }
            });
        }
    });
    let (ran, took) = (ran.into_inner(), began.elapsed().as_secs_f64());
    println!("sim: {ran} worlds from {} in {took:.1} s", wanted.first);
    if broken.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn wanted(words: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut words = words;
    let (mut seed, mut seeds, mut minutes, mut told) = (None, None, None, None);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no number"));
        match word.as_str() {
            "--seed" => seed = Some(value.parse().map_err(|error| format!("{error}"))?),
            "--seeds" => seeds = Some(number()?),
            "--minutes" => minutes = Some(number()?),
            "--story" => {
                told = Some(usize::try_from(number()?).map_err(|error| error.to_string())?)
            }
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let drawn = Seed::new(u64::try_from(since.as_nanos() % u128::from(u64::MAX)).unwrap_or(1));
    // Alone, a seed is one world; minutes alone are as many worlds as fit.
    let all = if minutes.is_some() { u64::MAX } else { SEEDS };
    Ok(Wanted {
        first: seed.unwrap_or(drawn),
        seeds: seeds.unwrap_or(if seed.is_some() && minutes.is_none() { 1 } else { all }),
        within: minutes.map_or(Duration::MAX, |minutes| Duration::from_secs(minutes * 60)),
        told: told.unwrap_or(TOLD),
        tells: told.is_some(),
    })
}
