//! A figure: what was measured, beside the bare loop of the same run, and the bar it has to pass.

use std::fmt;
use std::time::{Duration, Instant};

/// How a figure has to stand to its bar.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Only stated.
    Stated,
}

/// One line of the table.
#[derive(Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// Ours, as text with its unit.
    pub ours: String,
    /// The bare loop, as text with its unit.
    pub bare: String,
    /// The number that is held against the bar.
    pub value: f64,
    /// The bar.
    pub bar: Bar,
}

impl Figure {
    /// The heading of the table, in Markdown.
    pub const HEADING: &'static str =
        "| what | ours | bare | figure | bar | |\n|---|---|---|---|---|---|";

    /// The ratio of two rates: ours to bare.
    pub fn rates(name: &str, work: u64, ours: Duration, bare: Duration, bar: Bar) -> Self {
        let rate = |took: Duration| work as f64 / took.as_secs_f64();
        Self {
            name: name.into(),
            ours: format!("{:.0}/s", rate(ours)),
            bare: format!("{:.0}/s", rate(bare)),
            value: rate(ours) / rate(bare),
            bar,
        }
    }

    /// How many times as long as the bare loop ours takes for the same work.
    pub fn times(name: &str, work: u64, ours: Duration, bare: Duration, bar: Bar) -> Self {
        let value = ours.as_secs_f64() / bare.as_secs_f64();
        Self { value, ..Self::rates(name, work, ours, bare, bar) }
    }

    /// A figure of its own, without a bare loop.
    pub fn alone(name: &str, value: f64, unit: &str, bar: Bar) -> Self {
        Self { name: name.into(), ours: format!("{value:.3} {unit}"), bare: "-".into(), value, bar }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bar, verdict) = match self.bar {
            Bar::AtLeast(bar) => (format!(">= {bar}"), self.value >= bar),
            Bar::AtMost(bar) => (format!("<= {bar}"), self.value <= bar),
            Bar::Stated => ("stated".into(), true),
        };
        let verdict = if verdict { "ok" } else { "MISSED" };
        let Self { name, ours, bare, value, .. } = self;
        write!(f, "| {name} | {ours} | {bare} | {value:.2} | {bar} | {verdict} |")
    }
}

/// How long work takes.
pub fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Duration), E> {
    let began = Instant::now();
    let done = work()?;
    Ok((done, began.elapsed()))
}

/// The middle of some durations.
pub fn median(all: Vec<Duration>) -> Duration {
    quantile(&all, 0.5)
}

/// The least duration that this share of them does not exceed.
pub fn quantile(all: &[Duration], share: f64) -> Duration {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The machine, as it names itself.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("?");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores of{}", model.trim_start_matches(['\t', ' ', ':']).replacen("", " ", 1))
}

/// A line of this process's status, in bytes.
pub fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or("");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    kib * 1024
}

/// CPU time that this process has used.
pub fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("");
    // Fields 14 and 15 of proc(5) stat, in ticks of a hundredth of a second.
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|word| word.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}
