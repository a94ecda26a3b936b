//! The law: what a complete certificate says is so, and no key at the sink ever grows older.
//!
//! It trusts nothing of truekeep's but the certificate's own words and the counter that numbers are
//! drawn from. The application writes down, in each of its transactions, which keys it touched and
//! how far the counter then was. **Order of reading**: certificate, sink, source. A key whose newest
//! change is at or below the moment cannot have changed since the certificate was read, so it has to
//! be *equal* on both sides, not merely as new.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A restore is recognised at the latest this long after a worker could have looked; a certificate
/// that was given before it is not held against us until then.
const RECOGNISED_WITHIN: Duration = Duration::from_secs(10);

/// At most so many lies of one look are told.
const TOLD_MAX: usize = 5;

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// Its state, as it is printed.
    pub state: String,
    /// Why it is not complete.
    pub code: Option<String>,
    /// The moment, where it vouches for one.
    pub moment: Option<u64>,
}

impl Claim {
    /// The moment up to which everything is said to be in the sink.
    pub fn covers(&self) -> Option<u64> {
        self.moment.filter(|_| self.state == "complete")
    }
}

/// What a sink holds of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// (rules, version).
    pub rank: (u64, u64),
    /// The record as text; none for a deletion that is remembered.
    pub row: Option<String>,
}

/// What a sink holds, by key.
pub type Held = BTreeMap<String, Entry>;

/// What the application says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The counter after the newest transaction that touched it.
    pub token: u64,
    /// The record as text; none if it is gone.
    pub row: Option<String>,
}

/// The source, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truth {
    /// The counter.
    pub newest: u64,
    /// Every key that ever was.
    pub keys: BTreeMap<String, Touched>,
}

impl Truth {
    /// In what the sink differs from the rows that are there, ever so many.
    pub fn differences(&self, held: &Held) -> Vec<String> {
        let mut found = Vec::new();
        for (key, touched) in &self.keys {
            compare(key, touched, held, &mut found);
        }
        strangers(self, held, &mut found);
        found
    }
}

/// What has been looked at so far.
#[derive(Debug, Default)]
pub struct Law {
    /// Looks at all three.
    pub checks: u64,
    /// The moments of complete certificates that were held against both sides.
    pub moments: BTreeSet<u64>,
    /// What was not so.
    pub lies: Vec<String>,
    greatest: BTreeMap<String, (u64, u64)>,
    excused: Option<Instant>,
}

impl Law {
    /// Holds a certificate against both sides.
    pub fn judge(&mut self, claim: &Claim, held: &Held, truth: &Truth, now: Instant) {
        self.checks += 1;
        let mut lies = self.older(held);
        if self.excuses(claim, now) {
            self.note(lies);
            return;
        }
        if let Some(moment) = claim.covers() {
            self.moments.insert(moment);
            lies.extend(untrue(moment, held, truth));
        }
        self.note(lies);
    }

    /// The sink was restored: its keys may be older than they were.
    pub fn sink_restored(&mut self) {
        self.greatest.clear();
    }

    /// Something was restored, and a worker may look from now on.
    pub fn restored(&mut self, now: Instant) {
        self.excused = Some(now + RECOGNISED_WITHIN);
    }

    /// Whether the certificate is one that nobody could have taken back yet.
    fn excuses(&mut self, claim: &Claim, now: Instant) -> bool {
        let excused = self.excused.is_some_and(|until| now < until) && claim.covers().is_some();
        if !excused {
            self.excused = None;
        }
        excused
    }

    /// Keys that went back, or were forgotten.
    fn older(&mut self, held: &Held) -> Vec<String> {
        let mut found = Vec::new();
        for (key, was) in &self.greatest {
            match held.get(key) {
                None => found.push(format!("{key} was at {was:?} and is forgotten")),
                Some(entry) if entry.rank < *was => {
                    found.push(format!("{key} went from {was:?} back to {:?}", entry.rank));
                }
                Some(_) => {}
            }
        }
        self.greatest = held.iter().map(|(key, entry)| (key.clone(), entry.rank)).collect();
        found
    }

    fn note(&mut self, lies: Vec<String>) {
        let more = lies.len().saturating_sub(TOLD_MAX);
        self.lies.extend(lies.into_iter().take(TOLD_MAX));
        if more > 0 {
            self.lies.push(format!("and {more} more"));
        }
    }
}

/// In what a certificate at this moment is wrong.
fn untrue(moment: u64, held: &Held, truth: &Truth) -> Vec<String> {
    let mut found = Vec::new();
    if moment > truth.newest {
        found.push(format!("the source is only at {}", truth.newest));
    }
    for (key, touched) in truth.keys.iter().filter(|(_, touched)| touched.token <= moment) {
        compare(key, touched, held, &mut found);
    }
    strangers(truth, held, &mut found);
    found.iter().map(|what| format!("complete at {moment}, but {what}")).collect()
}

fn compare(key: &str, touched: &Touched, held: &Held, found: &mut Vec<String>) {
    let there = held.get(key);
    let row = there.and_then(|entry| entry.row.as_ref());
    if row != touched.row.as_ref() {
        let rank = there.map(|entry| entry.rank);
        found.push(format!("{key} is {row:?} at {rank:?} and should be {touched:?}"));
    }
}

/// Records in the sink that never were in the source.
fn strangers(truth: &Truth, held: &Held, found: &mut Vec<String>) {
    for (key, entry) in held {
        if entry.row.is_some() && !truth.keys.contains_key(key) {
            found.push(format!("{key} never was, and is {entry:?}"));
        }
    }
}

#[cfg(test)]
mod tests;
