//! What this process has seen of its scopes since it started, kept for whoever asks over HTTP.
//!
//! It decides nothing: who holds a lease and what a certificate says is the ledger's to tell.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use truekeep::certificates::Turned;
use truekeep::status::word;
use truekeep::trouble::remedy;
use truekeep_core::code::Code;
use truekeep_core::ports::Clock;
use truekeep_core::{Fence, ScopeId};
use truekeep_engine::{Happening, Observer};

/// How work on a scope goes, as far as this process knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// The lease is not ours, and nobody else is known to have it.
    #[default]
    Seeking,
    /// The lease is ours and turns succeed.
    Working,
    /// Another worker has the lease.
    Waiting,
    /// An operator has paused it.
    Paused,
    /// Something failed and is tried again.
    Troubled(Ailment),
    /// Nothing goes on without an operator.
    Halted(Ailment),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ailment {
    /// Its code.
    pub code: Code,
    /// The text with its causes.
    pub text: String,
}

/// What was seen of one scope.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// How it goes.
    pub condition: Condition,
    /// The fence of the lease, while it is ours.
    pub fence: Option<Fence>,
    /// When something was last heard, by this machine's clock.
    pub heard_at: Duration,
    /// Until when nothing is to be heard, as the next try is due only then.
    pub quiet_until: Duration,
    /// By how many versions the cursor is behind the feed, once that is known.
    pub behind: Option<u64>,
    /// Records that the sink was sent.
    pub delivered: u64,
    /// Records that failed and became items.
    pub failed: u64,
    /// Failures of turns, by code.
    pub troubles: BTreeMap<Code, u64>,
}

impl Facts {
    /// How long nothing was heard although something was due.
    pub fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(self.heard_at.max(self.quiet_until))
    }

    /// What is wrong, if anything is.
    pub fn ailment(&self) -> Option<&Ailment> {
        match &self.condition {
            Condition::Troubled(ailment) | Condition::Halted(ailment) => Some(ailment),
            Condition::Seeking | Condition::Working | Condition::Waiting | Condition::Paused => {
                None
            }
        }
    }

    fn hear(&mut self, what: &Happening, now: Duration) {
        self.heard_at = now;
        match what {
            Happening::Acquired(fence) => {
                self.fence = Some(*fence);
                if self.ailment().is_none() {
                    self.condition = Condition::Working;
                }
            }
            Happening::HeldBy(..) => self.let_go(Condition::Waiting),
            // What went wrong before stays told until something goes well.
            Happening::Released | Happening::Lost => match self.condition {
                Condition::Working => self.let_go(Condition::Seeking),
                _ => self.let_go(self.condition.clone()),
            },
            Happening::Delivered { records, failed, cursor, newest } => {
                self.condition = Condition::Working;
                self.delivered += records;
                self.failed += failed;
                self.behind =
                    Some(newest.newest().get().saturating_sub(cursor.passed.newest().get()));
            }
            Happening::Idle => {
                self.condition = Condition::Working;
                self.behind = Some(0);
            }
            Happening::Trouble { code, text, again_in } => {
                self.quiet_until = now + *again_in;
                *self.troubles.entry(code.clone()).or_default() += 1;
                let ailment = Ailment { code: code.clone(), text: text.clone() };
                self.condition = Condition::Troubled(ailment);
            }
            Happening::Halted { code, text } => {
                *self.troubles.entry(code.clone()).or_default() += 1;
                let ailment = Ailment { code: code.clone(), text: text.clone() };
                self.condition = Condition::Halted(ailment);
                // Nobody reads the feed meanwhile.
                self.behind = None;
            }
            Happening::Inactive(code) if *code == Code::PIPELINE_PAUSED => {
                self.let_go(Condition::Paused);
            }
            Happening::Inactive(code) => {
                let ailment = Ailment { code: code.clone(), text: String::new() };
                self.let_go(Condition::Halted(ailment));
            }
        }
    }

    fn let_go(&mut self, condition: Condition) {
        self.condition = condition;
        self.fence = None;
        self.behind = None;
    }
}

/// The facts of all scopes.
#[derive(Debug)]
pub struct Board {
    clock: Arc<dyn Clock>,
    facts: Mutex<BTreeMap<ScopeId, Facts>>,
}

impl Board {
    /// A board on which nothing stands yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, facts: Mutex::default() }
    }

    /// What was seen of a scope.
    pub fn facts(&self, scope: &ScopeId) -> Facts {
        self.locked().get(scope).cloned().unwrap_or_default()
    }

    /// Now, by the clock that the facts go by.
    pub fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<ScopeId, Facts>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Board {
    fn happened(&self, scope: &ScopeId, what: &Happening) {
        let changed = {
            let mut facts = self.locked();
            let facts = facts.entry(scope.clone()).or_default();
            let before = facts.ailment().cloned();
            let condition = facts.condition.clone();
            facts.hear(what, self.clock.monotonic());
            if let (Some(over), Condition::Working) = (&before, &facts.condition) {
                tracing::info!(%scope, code = %over.code, "works again");
            }
            facts.condition != condition
        };
        log(scope, what, changed);
    }
}

/// What repeats while nothing changes is told once.
fn log(scope: &ScopeId, what: &Happening, changed: bool) {
    match what {
        Happening::HeldBy(holder, until) if changed => {
            tracing::info!(%scope, %holder, %until, "another worker has the lease");
        }
        Happening::Released => tracing::info!(%scope, "lease given back"),
        Happening::Lost => tracing::warn!(%scope, "lease lost"),
        Happening::Delivered { records, failed, cursor, newest } => {
            tracing::debug!(%scope, records, failed, %cursor, %newest, "delivered");
        }
        Happening::Halted { code, text } if changed => {
            tracing::error!(%scope, %code, error = text, hint = remedy(code), "halted");
        }
        Happening::Inactive(code) if changed && *code == Code::PIPELINE_PAUSED => {
            tracing::info!(%scope, "paused by an operator");
        }
        Happening::Inactive(code) if changed => {
            tracing::error!(%scope, %code, hint = remedy(code), "not worked on");
        }
        Happening::Trouble { code, text, again_in } if changed => {
            let hint = remedy(code);
            tracing::warn!(%scope, %code, error = text, ?again_in, hint, "tried again");
        }
        // The engine tells the taking of a lease; the others go on as they were.
        Happening::Acquired(_)
        | Happening::Idle
        | Happening::HeldBy(..)
        | Happening::Trouble { .. }
        | Happening::Halted { .. }
        | Happening::Inactive(_) => {}
    }
}

/// A certificate began or ceased to be complete.
pub fn certified(scope: &ScopeId, turned: &Turned) {
    match turned {
        Turned::Complete(moment) => tracing::info!(%scope, %moment, "complete"),
        Turned::Incomplete { state, code } => {
            let (state, hint) = (word(*state), code.as_ref().map(remedy));
            let code = code.as_ref().map(Code::as_str);
            tracing::warn!(%scope, state, code, hint, "no longer complete");
        }
    }
}

#[cfg(test)]
mod tests;
