//! Clocks that are wrong, and jump: each rival has a clock of its own, by a preloaded library, so
//! that the machine's own is left alone.

use std::path::{Path, PathBuf};

use crate::Fault;
use crate::sink::Sink;
use crate::world::{Plan, World};
use crate::writer::Keeping;

const BLOWS: u64 = 12;
const RIVALS: usize = 3;

/// By how much a clock is wrong.
const OFFSETS: &[&str] = &["+0", "+1s", "-1s", "+90s", "-90s", "+2h", "-2h", "+3d", "-3d"];

/// The library, where Debian's package puts it.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let file = |folder: PathBuf| folder.join("faketime/libfaketimeMT.so.1");
    folders.flatten().map(|folder| file(folder.path())).find(|path| path.is_file())
}

/// It needs the library.
pub fn missing() -> Option<String> {
    let nothing = library().is_none();
    nothing.then(|| "libfaketime is not installed (Debian: apt-get install faketime)".to_owned())
}

/// Folders.
pub fn plan(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    super::in_folders(sink, keeping)
}

/// Jumps and kills.
pub fn storm(world: &mut World<'_>) -> Result<(), Fault> {
    let library = library().ok_or("libfaketime is gone")?;
    world.start_application()?;
    let mut started = 0_u64;
    let mut clocks = Vec::new();
    for _ in 0..BLOWS {
        while world.workers.len() < RIVALS {
            started += 1;
            let clock = world.path(&format!("clock-{started}"));
            let offset = *world.draws.pick(OFFSETS);
            start(world, &library, &clock, offset)?;
            clocks.push(clock);
        }
        let time = world.draws.millis(200, 3_000);
        world.live(time)?;
        let at = usize::try_from(world.draws.below(RIVALS as u64))?;
        if world.draws.one_in(4) {
            world.kill_worker(at)?;
            clocks.remove(at);
        } else {
            let offset = *world.draws.pick(OFFSETS);
            set(&clocks[at], offset)?;
            world.tally.clocks += 1;
        }
    }
    // In the end all clocks are right again, and what they were wrong about must not hold anybody up.
    for clock in &clocks {
        set(clock, "+0")?;
    }
    world.until_certified()
}

fn start(world: &mut World<'_>, library: &Path, clock: &Path, offset: &str) -> Result<(), Fault> {
    set(clock, offset)?;
    let (library, clock) = (library.display().to_string(), clock.display().to_string());
    world.tally.clocks += 1;
    world.start_worker(&[
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME_TIMESTAMP_FILE", clock.as_str()),
        ("FAKETIME_CACHE_DURATION", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ])
}

/// Sets a clock: the library looks once a second.
fn set(clock: &Path, offset: &str) -> Result<(), Fault> {
    let new = clock.with_extension("new");
    std::fs::write(&new, format!("{offset}\n"))?;
    Ok(std::fs::rename(new, clock)?)
}
