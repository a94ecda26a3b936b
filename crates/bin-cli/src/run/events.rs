//! What a worker tells while it works: bars on a terminal, lines elsewhere, JSON for programs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use truekeep::Config;
use truekeep::certificates::Turned;
use truekeep::status::word;
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
    /// What was told last, but for when it is tried again: it is not repeated.
    told: String,
    /// What was told last of the certificate: it turns beside whatever else is told.
    certified: String,
    /// The code of the trouble that was told last, until something goes well.
    ails: Option<String>,
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
    Complete { pipeline: String, moment: &'t Moment },
    Incomplete { pipeline: String, state: &'static str, code: Option<&'t str> },
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
    /// What to print: the line, unless it was the last one, after the end of a trouble.
    fn news(&mut self, out: Output, told: &Told<'_>) -> Option<String> {
        let over = match told {
            Told::Delivered { pipeline, .. } | Told::Idle { pipeline } => self.over(pipeline),
            _ => None,
        };
        let line = self.line(out, told);
        let line = match (over, line) {
            (Some(over), Some(line)) => format!("{over}\n{line}"),
            (over, line) => over.or(line)?,
        };
        let what = match told {
            // When it is tried again, or a lease ends, changes all the time.
            Told::Trouble { code, text, .. } => format!("{code} {text}"),
            Told::Held { holder, .. } => holder.clone(),
            _ => line.clone(),
        };
        match told {
            Told::Trouble { code, .. } | Told::Halted { code, .. } => {
                self.ails = Some((*code).to_owned());
            }
            Told::Inactive { code, .. } if *code != Code::PIPELINE_PAUSED.as_str() => {
                self.ails = Some((*code).to_owned());
            }
            _ => {}
        }
        let last = match told {
            Told::Complete { .. } | Told::Incomplete { .. } => &mut self.certified,
            _ => &mut self.told,
        };
        (std::mem::replace(last, what.clone()) != what).then_some(line)
    }

    /// What to say once something goes well.
    fn over(&mut self, pipeline: &str) -> Option<String> {
        let code = self.ails.take()?;
        Some(format!("{pipeline}: works again, {code} is over"))
    }

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
            Told::Lost { pipeline } => format!("{pipeline}: the lease is lost"),
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
            Told::Complete { pipeline, moment } => format!("{pipeline}: complete at {moment}"),
            Told::Incomplete { pipeline, state, code: None } => {
                format!("{pipeline}: no longer complete, {state}")
            }
            Told::Incomplete { pipeline, state, code: Some(code) } => {
                format!("{pipeline}: no longer complete, {state}, {code}{}", advised(code))
            }
        })
    }
}

impl Events {
    /// A certificate began or ceased to be complete.
    pub fn certified(&self, scope: &ScopeId, turned: &Turned) {
        let pipeline = scope.to_string();
        self.tell(
            scope,
            &match turned {
                Turned::Complete(moment) => Told::Complete { pipeline, moment },
                Turned::Incomplete { state, code } => {
                    let (state, code) = (word(*state), code.as_ref().map(Code::as_str));
                    Told::Incomplete { pipeline, state, code }
                }
            },
        );
    }

    fn tell(&self, scope: &ScopeId, told: &Told<'_>) {
        if self.out.is_json() {
            return self.out.event(told);
        }
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let state = scopes.entry(scope.clone()).or_default();
        if let Some(line) = state.news(self.out, told) {
            match &state.progress {
                Some(progress) => progress.aside(&line),
                None => self.out.note(&line),
            }
        }
    }
}

impl Observer for Events {
    fn happened(&self, scope: &ScopeId, what: &Happening) {
        self.tell(scope, &self.told(scope, what));
    }
}

#[cfg(test)]
mod tests;
