//! What a worker tells while it works: bars on a terminal, lines elsewhere, JSON for programs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use truekeep::Config;
use truekeep_core::code::Code;
use truekeep_core::{Moment, Place, ScopeId};
use truekeep_engine::{Happening, Observer};

use crate::output::{Output, plain};
use crate::progress::Progress;

/// Prints what happens.
#[derive(Debug)]
pub struct Events {
    out: Output,
    config: Config,
    scopes: Mutex<BTreeMap<ScopeId, Scope>>,
}

#[derive(Debug, Default)]
struct Scope {
    progress: Option<Progress>,
    /// The last line, which is not repeated.
    told: String,
    /// Records since the scope was last idle.
    delivered: u64,
    failed: u64,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told<'t> {
    Acquired { pipeline: String, fence: u64 },
    Held { pipeline: String, holder: String, until: String },
    Released { pipeline: String },
    Lost { pipeline: String },
    Delivered { pipeline: String, records: u64, failed: u64, cursor: &'t Place, newest: &'t Moment },
    Idle { pipeline: String },
    Trouble { pipeline: String, code: &'t str, text: String, again_in_ms: u128 },
    Halted { pipeline: String, code: &'t str, text: String },
    Inactive { pipeline: String, code: &'t str },
}

impl Events {
    pub fn new(out: Output, config: Config) -> Self {
        Self { out, config, scopes: Mutex::default() }
    }

    /// Takes the bars away.
    pub fn end(&self) {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        for scope in scopes.values_mut() {
            if let Some(progress) = scope.progress.take() {
                progress.end();
            }
        }
    }

    fn told<'t>(&self, scope: &ScopeId, what: &'t Happening) -> Told<'t> {
        let pipeline = scope.to_string();
        match what {
            Happening::Acquired(fence) => Told::Acquired { pipeline, fence: fence.get() },
            Happening::HeldBy(holder, until) => {
                Told::Held { pipeline, holder: holder.to_string(), until: until.to_string() }
            }
            Happening::Released => Told::Released { pipeline },
            Happening::Lost => Told::Lost { pipeline },
            Happening::Delivered { records, failed, cursor, newest } => {
                Told::Delivered { pipeline, records: *records, failed: *failed, cursor, newest }
            }
            Happening::Idle => Told::Idle { pipeline },
            Happening::Trouble { code, text, again_in } => Told::Trouble {
                pipeline,
                code: code.as_str(),
                text: self.config.redact(text),
                again_in_ms: again_in.as_millis(),
            },
            Happening::Halted { code, text } => {
                Told::Halted { pipeline, code: code.as_str(), text: self.config.redact(text) }
            }
            Happening::Inactive(code) => Told::Inactive { pipeline, code: code.as_str() },
        }
    }
}

impl Scope {
    /// The line to print, if there is anything to say.
    fn line(&mut self, out: Output, told: &Told<'_>) -> Option<String> {
        let advised = |code: &str| {
            let remedy = Code::from_outside(code).entry().map_or("", |entry| entry.remedy);
            format!("\n  hint: {remedy} (`truekeep explain {code}`)")
        };
        Some(match told {
            Told::Acquired { pipeline, fence } => format!("{pipeline}: at work, fence {fence}"),
            Told::Held { pipeline, holder, until } => {
                format!("{pipeline}: {holder} has the lease until {until}")
            }
            Told::Lost { pipeline } => format!("{pipeline}: somebody else took over"),
            Told::Released { .. } => return None,
            Told::Delivered { pipeline, records, failed, cursor, newest } => {
                self.delivered += records;
                self.failed += failed;
                let progress = self.progress.get_or_insert_with(|| {
                    Progress::new(out, pipeline.as_str(), newest.newest().get())
                });
                progress.at(cursor.passed.newest().get(), newest.newest().get());
                return None;
            }
            Told::Idle { pipeline } => {
                if let Some(progress) = self.progress.take() {
                    progress.end();
                }
                let (delivered, failed) =
                    (std::mem::take(&mut self.delivered), std::mem::take(&mut self.failed));
                match (delivered, failed) {
                    (0, 0) => return None,
                    (delivered, 0) => format!("{pipeline}: up to date, {delivered} delivered"),
                    (delivered, failed) => format!(
                        "{pipeline}: nothing more is due, {delivered} delivered, {failed} failed: \
                         see `truekeep parked list`"
                    ),
                }
            }
            Told::Trouble { pipeline, code, text, again_in_ms } => {
                let text = plain(text);
                let again = format!("again in {:.1} s", *again_in_ms as f64 / 1_000.0);
                format!("{pipeline}: {code}, {again}: {text}{}", advised(code))
            }
            Told::Halted { pipeline, code, text } => {
                format!("{pipeline}: halted, {code}: {}{}", plain(text), advised(code))
            }
            Told::Inactive { pipeline, code } => {
                format!("{pipeline}: not worked on, {code}{}", advised(code))
            }
        })
    }
}

impl Observer for Events {
    fn happened(&self, scope: &ScopeId, what: &Happening) {
        let told = self.told(scope, what);
        if self.out.is_json() {
            return self.out.event(&told);
        }
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = scopes.entry(scope.clone()).or_default();
        if let Some(line) = state.line(self.out, &told).filter(|line| *line != state.told) {
            match &state.progress {
                Some(progress) => progress.aside(&line),
                None => self.out.note(&line),
            }
            state.told = line;
        }
    }
}

#[cfg(test)]
mod tests;
