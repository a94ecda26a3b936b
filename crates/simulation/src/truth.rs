//! What really happened to every row of the source, and when each moment was: what a certificate is
//! held against.
//!
//! Times here are places in the source's own history, not a clock's.

use std::collections::BTreeMap;

use truekeep_core::{Key, Moment, Version};

/// A time in the source's history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(u64);

/// One row's past.
#[derive(Debug, Clone, Default)]
struct History {
    /// What it became, and when. Before the first it was absent.
    states: Vec<(Time, Option<String>)>,
    /// When the feed took note of it, and under which version; none if the feed lost it.
    noted: Vec<(Time, Option<Version>)>,
    /// Whether it changed past capture since.
    missed: bool,
}

/// The past of all rows.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    now: Time,
    rows: BTreeMap<Key, History>,
}

/// When each moment was that a pipeline has read the feed's end under the name of. A name may be one
/// of several pasts, once something went back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pasts {
    moments: Vec<(Moment, Time)>,
    /// When something went back that no claim was made since.
    open: Vec<Time>,
    /// When anything ever did.
    forks: Vec<Time>,
    /// Of a backup: when it was made.
    now: Time,
}

impl Truth {
    /// Takes what the source and its feed hold now as the newest of its past. A feed that was
    /// restored has taken note of what it has lost as well; else it only cleans up.
    pub fn observe(
        &mut self,
        rows: &BTreeMap<Key, String>,
        feed: &BTreeMap<Key, (Version, bool)>,
        restored: bool,
    ) {
        self.now = Time(self.now.0 + 1);
        let now = self.now;
        for key in rows.keys().chain(feed.keys()) {
            if !self.rows.contains_key(key) {
                self.rows.insert(key.clone(), History::default());
            }
        }
        for (key, history) in &mut self.rows {
            let state = rows.get(key);
            if history.states.last().and_then(|(_, state)| state.as_ref()) != state {
                history.states.push((now, state.cloned()));
            }
            let version = feed.get(key).map(|(version, _)| *version);
            let known = history.noted.last().and_then(|(_, version)| *version);
            if known != version && (restored || version.is_some()) {
                history.noted.push((now, version));
                history.missed = false;
            }
        }
    }

    /// A row has changed past capture, which nothing tells but a comparison.
    pub fn miss(&mut self, key: &Key) {
        self.rows.entry(key.clone()).or_default().missed = true;
    }

    /// Whether a row changed past capture, and the feed took no note of it since.
    pub fn is_missed(&self, key: &Key) -> bool {
        self.rows.get(key).is_some_and(|history| history.missed)
    }

    /// Time passes, and nothing changes.
    pub fn pass(&mut self) -> Time {
        self.now = Time(self.now.0 + 1);
        self.now
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Every key that ever was.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.keys()
    }

    /// Whether a record that is `held` so is at least as new as the last change that the feed had
    /// taken note of by then.
    pub fn is_as_new(&self, key: &Key, held: Option<&str>, then: Time) -> bool {
        let Some(history) = self.rows.get(key) else { return held.is_none() };
        let noted = history.noted.iter().rev().find(|(at, _)| *at <= then);
        let since = noted.map_or(Time(0), |(at, _)| *at);
        history.was(held, since, self.now)
    }

    /// Whether a row was absent at some time since the feed gave it this version.
    pub fn was_absent_since(&self, key: &Key, version: Version) -> bool {
        let Some(history) = self.rows.get(key) else { return true };
        let given = history.noted.iter().find(|(_, given)| *given == Some(version));
        // A version that is not of this past is nobody's promise.
        given.is_none_or(|(at, _)| history.was(None, *at, self.now))
    }

    /// What a row was since then, for people.
    pub fn told(&self, key: &Key, then: Time) -> String {
        let Some(history) = self.rows.get(key) else { return "never was".to_owned() };
        let noted = history.noted.iter().rev().find(|(at, _)| *at <= then);
        let since = noted.map_or(Time(0), |(at, _)| *at);
        let states = history.states.iter().rev().take_while(|(at, _)| *at > since);
        let mut states: Vec<_> =
            states.map(|(at, state)| format!("{state:?} at {}", at.0)).collect();
        let before = history.states.iter().rev().find(|(at, _)| *at <= since);
        states.push(format!("{:?}", before.and_then(|(_, state)| state.as_ref())));
        format!("since {} was never so; newest first: {}", since.0, states.join(", "))
    }

    /// Whether everything that the feed took note of had happened by then.
    pub fn is_newest(&self, then: Time) -> bool {
        self.rows.values().all(|history| history.noted.last().is_none_or(|(at, _)| *at <= then))
    }
}

impl Pasts {
    /// The feed's end was read under this name.
    pub fn name(&mut self, moment: Moment, now: Time) {
        if self.moments.last().is_none_or(|last| *last != (moment.clone(), now)) {
            self.moments.push((moment, now));
        }
    }

    /// Something went back: what its cursor and its numbers say is of another past.
    pub fn fork(&mut self, now: Time) {
        self.forks.push(now);
        self.open.push(now);
    }

    /// What a ledger that is copied now knows of.
    pub fn backup(&self, now: Time) -> Self {
        Self { now, ..self.clone() }
    }

    /// The ledger is as it was at a backup: it knows of nothing that happened since.
    pub fn restore(&mut self, backup: &Self) {
        let since = self.forks.iter().copied().filter(|fork| *fork > backup.now);
        self.open = backup.open.iter().copied().chain([backup.now]).chain(since).collect();
    }

    /// A moment is claimed.
    pub fn claim(&mut self, moment: &Moment) {
        if let Some(claimed) = self.last(moment, None) {
            self.open.retain(|fork| claimed < *fork);
        }
    }

    /// Everything is delivered anew.
    pub fn begin_anew(&mut self) {
        self.open.clear();
    }

    /// When something went back first that no claim was made since.
    pub fn forked(&self) -> Option<Time> {
        self.open.iter().min().copied()
    }

    /// When a moment was that is claimed.
    pub fn when(&self, moment: &Moment) -> Option<Time> {
        self.last(moment, self.forked())
    }

    /// The last time a moment was named; before a time, if one is given.
    fn last(&self, moment: &Moment, before: Option<Time>) -> Option<Time> {
        let mut named = self.moments.iter().rev();
        let it = |(named, at): &&(Moment, Time)| {
            named == moment && before.is_none_or(|before| *at < before)
        };
        named.find(it).map(|(_, at)| *at)
    }
}

impl History {
    /// Whether the row was so at some time from `since` to `until`.
    fn was(&self, held: Option<&str>, since: Time, until: Time) -> bool {
        let before = self.states.iter().rev().find(|(at, _)| *at <= since);
        let at_first = before.and_then(|(_, state)| state.as_deref());
        let later = self.states.iter().filter(|(at, _)| *at > since && *at <= until);
        at_first == held || later.map(|(_, state)| state.as_deref()).any(|state| state == held)
    }
}

#[cfg(test)]
mod tests;
