//! What is printed: data for programs, short tables for people, errors with what to do.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use truekeep::trouble::TroubleReport;

use crate::args::Format;

/// Where and how answers are printed. A reader that has gone away is no error.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    format: Format,
    stderr_is_terminal: bool,
}

impl Output {
    pub fn new(format: Format) -> Self {
        Self { format, stderr_is_terminal: std::io::stderr().is_terminal() }
    }

    /// Whether errors may have colours.
    pub fn colour(self) -> bool {
        self.stderr_is_terminal && std::env::var_os("NO_COLOR").is_none()
    }

    /// Whether an answer may have colours.
    pub fn colours_answers(self) -> bool {
        std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
    }

    /// Whether progress may be drawn.
    pub fn draws(self) -> bool {
        self.stderr_is_terminal && !self.format.is_json()
    }

    pub fn is_json(self) -> bool {
        self.format.is_json()
    }

    /// Prints an answer: as it is for programs, in words for people.
    pub fn show<T: Serialize>(self, answer: &T, words: impl FnOnce(&T) -> String) {
        let text = if self.format.is_json() { json(answer) } else { words(answer) };
        let text = text.trim_end();
        if !text.is_empty() {
            let _ = writeln!(std::io::stdout().lock(), "{text}");
        }
    }

    /// Prints one line of JSON at once, for what goes on.
    pub fn event<T: Serialize>(self, event: &T) {
        let line = serde_json::to_string(event).unwrap_or_default();
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    /// Tells people something beside the answer.
    pub fn note(self, text: &str) {
        if !self.format.is_json() && !text.is_empty() {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// Prints a failure; `shown` replaces its first line.
    pub fn failed(self, report: &TroubleReport, shown: Option<&str>) {
        #[derive(Serialize)]
        struct Failure<'r> {
            error: &'r TroubleReport,
        }
        let mut err = std::io::stderr().lock();
        let _ = match (self.format.is_json(), shown) {
            (true, _) => writeln!(err, "{}", json(&Failure { error: report })),
            (false, Some(shown)) => writeln!(err, "{shown}"),
            (false, None) => {
                let TroubleReport { message, hint, code, .. } = report;
                // What is wrong with a command line needs no registry.
                let more = match code.as_str() {
                    "CONFIG_INVALID" | "GUARD_REFUSED" => String::new(),
                    code => format!(" (`truekeep explain {code}`)"),
                };
                writeln!(err, "error: {message}\nhint: {hint}{more}")
            }
        };
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A table: columns as wide as their widest cell, two spaces between them, no trailing space.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = head.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| {
            let pad = width.saturating_sub(cell.chars().count());
            format!("{cell}{}", " ".repeat(pad))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let body = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(head)).chain(body).collect()
}

/// A text in one line of a terminal: control characters are shown, not obeyed.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// A value, or a dash where there is none.
pub fn dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
