//! The certificate: what readers may rely on, judged in the transaction that stores it.
//!
//! Invariants: C1 (complete at M means at least as new as M for every key), C2 (M never passes the
//! oldest unsettled item), C3 (M never goes down under the same rules), C4 (trust never comes from
//! nothing: only a claim that says so makes complete).

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::{Moment, RulesNumber, Timestamp};

/// What a certificate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing was ever delivered.
    Never,
    /// The first delivery is under way.
    Running,
    /// Every key is at least as new as the moment says.
    Complete,
    /// As complete, but for the records that are parked.
    Partial,
    /// It was complete or partial at the moment; what happened since is not vouched for.
    Stale,
    /// A run ended with nothing good to show.
    Failed,
}

impl State {
    /// The word that is printed and stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Stale => "stale",
            Self::Failed => "failed",
        }
    }
}

/// A certificate of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// What it says.
    pub state: State,
    /// Why it is not complete, if there is a reason to name.
    pub code: Option<Code>,
    /// The moment it speaks of.
    pub moment: Option<Moment>,
    /// The rules it speaks of.
    pub rules: RulesNumber,
    /// Records that are parked.
    pub parked: u64,
    /// Records that are still being tried.
    pub unsettled: u64,
    /// When it last changed, by the ledger's clock.
    pub changed_at: Timestamp,
}

impl Certificate {
    /// The certificate of a scope that was never worked on.
    pub fn never(rules: RulesNumber, now: Timestamp) -> Self {
        Self {
            state: State::Never,
            code: None,
            moment: None,
            rules,
            parked: 0,
            unsettled: 0,
            changed_at: now,
        }
    }
}

/// What a run says about its scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Work has begun that has no moment yet.
    Begun,
    /// Everything up to this moment was delivered and confirmed, or is an item.
    UpTo(Moment),
    /// What happened since the last moment is not vouched for.
    Broken(Code),
}

/// The items of a scope, counted in the transaction of the judgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Pending, leased or in retry.
    pub unsettled: u64,
    /// Parked.
    pub parked: u64,
}

/// The certificate that follows from a claim and from the items as they are.
pub fn judge(
    before: &Certificate,
    claim: &Claim,
    tally: Tally,
    rules: RulesNumber,
    now: Timestamp,
) -> Certificate {
    let same_rules = before.rules == rules;
    let held = before.moment.clone();
    let vouched = held.clone().filter(|_| same_rules);
    let (state, code, moment) = match claim {
        Claim::Begun => match before.state {
            State::Never | State::Running | State::Failed => (State::Running, None, vouched),
            State::Complete | State::Partial if same_rules => {
                (before.state, before.code.clone(), vouched)
            }
            State::Complete | State::Partial => (State::Stale, Some(Code::RULES_CHANGED), held),
            State::Stale => (State::Stale, before.code.clone(), held),
        },
        Claim::Broken(code) => match before.state {
            State::Never | State::Running => (State::Running, Some(code.clone()), vouched),
            State::Failed => (State::Failed, Some(code.clone()), vouched),
            State::Complete | State::Partial | State::Stale => {
                (State::Stale, Some(code.clone()), held)
            }
        },
        Claim::UpTo(_) if tally.unsettled > 0 => match before.state {
            State::Never | State::Running | State::Failed => (State::Running, None, vouched),
            State::Complete | State::Partial | State::Stale => {
                (before.state, before.code.clone(), held)
            }
        },
        Claim::UpTo(moment) => {
            let moment =
                vouched.filter(|held| held.includes(moment)).unwrap_or_else(|| moment.clone());
            let state = if tally.parked > 0 { State::Partial } else { State::Complete };
            (state, None, Some(moment))
        }
    };
    let rules = if state == State::Stale { before.rules } else { rules };
    let judged = Certificate {
        state,
        code,
        moment,
        rules,
        parked: tally.parked,
        unsettled: tally.unsettled,
        changed_at: before.changed_at,
    };
    if judged == *before { judged } else { Certificate { changed_at: now, ..judged } }
}

/// One state for several scopes: unknown > running > stale > partial > all never > all failed >
/// partial. `None` is a scope whose state is not known; no scope at all is never.
///
/// A certificate of other rules counts as stale: the caller passes it as such.
pub fn aggregate(states: impl IntoIterator<Item = Option<State>>) -> Option<State> {
    let states: Vec<State> = states.into_iter().collect::<Option<_>>()?;
    let any = |state| states.contains(&state);
    let all = |state| states.iter().all(|s| *s == state);
    Some(if all(State::Never) {
        State::Never
    } else if any(State::Running) {
        State::Running
    } else if any(State::Stale) {
        State::Stale
    } else if all(State::Complete) {
        State::Complete
    } else if all(State::Failed) {
        State::Failed
    } else {
        State::Partial
    })
}

#[cfg(test)]
mod tests;
