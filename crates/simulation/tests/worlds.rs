//! Worlds of a few hundred seeds keep every promise, and a seed is the same world each time.

#![expect(clippy::disallowed_methods, reason = "worlds share nothing, so each core runs its own")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use truekeep_simulation::{Seed, run};

/// Worlds of this test.
const SEEDS: u64 = 200;

/// What must have happened in some of them: else they test less than they say.
const KINDS: &[&str] = &[
    "accident",
    "announced",
    "applied",
    "arrives",
    "at rest",
    "certificate",
    "claimed",
    "commit lost",
    "denied",
    "halted",
    "killed",
    "loses",
    "numbered",
    "pruned",
    "reconcile",
    "releases",
    "remedy",
    "stalls",
    "takes",
    "trouble",
    "weather",
    "wish",
    "writes",
];

#[test]
fn worlds_of_every_weather_keep_every_promise() {
    let next = AtomicU64::new(0);
    let seen = Mutex::new(BTreeMap::<&str, u64>::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= SEEDS {
                        return;
                    }
                    let outcome = run(Seed::new(number), 40);
                    if let Some(broken) = outcome.broken {
                        panic!(
                            "{}\n{broken}\nreplay: cargo xtask sim --seed {}",
                            outcome.story, outcome.seed
                        );
                    }
                    let mut seen = seen.lock().expect("sound");
                    outcome
                        .seen
                        .iter()
                        .for_each(|(kind, many)| *seen.entry(kind).or_default() += many);
                }
            });
        }
    });
    let seen = seen.into_inner().expect("sound");
    for kind in KINDS {
        assert!(seen.contains_key(kind), "nothing of the kind `{kind}` happened: {seen:?}");
    }
}

/// Also in another thread, and after other worlds.
#[test]
fn a_seed_replays_exactly() {
    for number in 0..12 {
        let first = run(Seed::new(number), 1_000_000);
        let second = std::thread::spawn(move || run(Seed::new(number), 1_000_000));
        let second = second.join().expect("no panic");
        let mut lines = first.story.lines().zip(second.story.lines());
        assert_eq!(lines.find(|(first, second)| first != second), None, "seed {number}");
        assert_eq!(first, second);
    }
}

#[test]
fn worlds_differ_by_their_seeds() {
    assert_ne!(run(Seed::new(1), 1).trace, run(Seed::new(2), 1).trace);
}
