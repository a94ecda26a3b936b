//! The table of steps and their seconds.

use std::fmt::Write;
use std::time::Duration;

use super::Outcome;

/// One line per step, then the total.
pub fn render(rows: &[(&'static str, Outcome)]) -> String {
    let mut text = format!("{:<16} {:>9}\n", "step", "seconds");
    let mut total = Duration::ZERO;
    for (name, outcome) in rows {
        let (took, note) = match outcome {
            Outcome::Passed(took) => (Some(*took), ""),
            Outcome::Failed(took) => (Some(*took), "  failed"),
            Outcome::NotRun => (None, "  not run"),
        };
        total += took.unwrap_or_default();
        let seconds = took.map_or("-".to_owned(), seconds);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<16} {seconds:>9}{note}");
    }
    let _ = write!(text, "{:<16} {:>9}", "total", seconds(total));
    text
}

fn seconds(took: Duration) -> String {
    format!("{:.1}", took.as_secs_f64())
}
