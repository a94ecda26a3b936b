//! What was done and seen, counted, and the table of it.

use std::fmt;
use std::time::Duration;

/// The counts of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Worlds that were made, stormed and found equal.
    pub rounds: u64,
    /// Power cuts.
    pub cuts: u64,
    /// kill -9, of workers and of the application.
    pub kills: u64,
    /// SIGSTOP past the end of the lease, then SIGCONT.
    pub pauses: u64,
    /// Disks that were filled.
    pub full: u64,
    /// Files that were restored from a backup.
    pub restores: u64,
    /// Clocks that were set.
    pub clocks: u64,
    /// From the kill of a lease's holder to the next delivery by another.
    pub takeovers: Vec<Duration>,
    /// Records that were delivered.
    pub records: u64,
    /// Transactions of the application that it saw committed and a power cut undid.
    pub undone: u64,
    /// Looks at certificate, sink and source.
    pub checks: u64,
    /// Different moments of complete certificates that were held against both sides.
    pub moments: u64,
    /// What a certificate said and was not so.
    pub lies: u64,
    /// How long it took.
    pub took: Duration,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.pauses += other.pauses;
        self.full += other.full;
        self.restores += other.restores;
        self.clocks += other.clocks;
        self.takeovers.extend(&other.takeovers);
        self.records += other.records;
        self.undone += other.undone;
        self.checks += other.checks;
        self.moments += other.moments;
        self.lies += other.lies;
        self.took += other.took;
    }
}

/// The table's head.
pub const HEADING: &str = "\
| scenario | rounds | power cuts | kills | pauses | full disks | restores | clocks set | take-overs (least / middle / most) | records | commits undone by a cut | checks | moments | lies | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// A row of the table.
#[derive(Debug)]
pub struct Row<'t>(pub &'t str, pub &'t Tally);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, tally) = self;
        write!(
            f,
            "| {name} | {} | {} | {} | {} ",
            tally.rounds, tally.cuts, tally.kills, tally.pauses
        )?;
        write!(f, "| {} | {} | {} ", tally.full, tally.restores, tally.clocks)?;
        write!(f, "| {} | {} | {} ", spread(&tally.takeovers), tally.records, tally.undone)?;
        write!(f, "| {} | {} | {} ", tally.checks, tally.moments, tally.lies)?;
        write!(f, "| {} |", tally.took.as_secs())
    }
}

/// How many, and the least, the middle and the most of them.
fn spread(times: &[Duration]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return "0".to_owned();
    };
    let seconds = |time: &Duration| format!("{:.2}", time.as_secs_f64());
    let middle = seconds(&sorted[sorted.len() / 2]);
    format!("{} ({} / {middle} / {} s)", sorted.len(), seconds(least), seconds(most))
}

#[cfg(test)]
mod tests;
