//! Progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::output::Output;

/// How often a plain line is printed: a log stays readable.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress towards a total that may be an estimate.
#[derive(Debug)]
pub struct Progress {
    what: String,
    out: Output,
    bar: Option<ProgressBar>,
    began: Instant,
    told: Instant,
    done: u64,
    total: u64,
}

impl Progress {
    pub fn new(out: Output, what: impl Into<String>, total: u64) -> Self {
        let what = what.into();
        let style = "{msg} {wide_bar} {human_pos}/{human_len} {rate} {eta} left";
        let bar = out.draws().then(|| {
            let bar = ProgressBar::new(total).with_message(what.clone());
            match ProgressStyle::with_template(style) {
                Ok(style) => bar.with_style(style.with_key("rate", rate)),
                Err(_) => bar,
            }
        });
        let now = Instant::now();
        Self { what, out, bar, began: now, told: now, done: 0, total }
    }

    /// So many are done, of about so many.
    pub fn at(&mut self, done: u64, total: u64) {
        (self.done, self.total) = (done, total.max(done));
        if let Some(bar) = &self.bar {
            bar.set_length(self.total);
            bar.set_position(self.done);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            self.out.note(&self.line());
        }
    }

    /// Tells something beside the bar.
    pub fn aside(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.out.note(text)),
            None => self.out.note(text),
        }
    }

    /// It is over; the answer speaks for itself.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self) -> String {
        line(&self.what, self.done, self.total, self.began.elapsed())
    }
}

fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that cannot be drawn is no failure of the work.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

fn line(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = done.saturating_mul(1_000) / millis;
    let left = match total.saturating_sub(done).checked_div(rate) {
        Some(seconds) => format!("{seconds} s left"),
        None => "time left unknown".to_owned(),
    };
    format!("{what}: {done} of {total}, {rate}/s, {left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_time_left() {
        let text = line("cities", 10_000, 30_000, Duration::from_secs(10));
        assert_eq!(text, "cities: 10000 of 30000, 1000/s, 20 s left");
        let text = line("cities", 0, 30_000, Duration::ZERO);
        assert_eq!(text, "cities: 0 of 30000, 0/s, time left unknown");
    }
}
