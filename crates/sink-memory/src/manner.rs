//! How a sink in memory lists: in the order of keys and at once, or worse.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use truekeep_core::ports::{Entry, Listing};
use truekeep_core::{Key, Rank};

/// A clock that tells how long something runs.
pub type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// How a sink lists.
#[derive(Clone, Default)]
pub struct Manner {
    /// Not in the order of keys.
    pub scattered: bool,
    /// Each entry twice.
    pub repeats: bool,
    /// What was written less than so long ago does not show.
    pub lag: Option<(Duration, Elapsed)>,
}

impl fmt::Debug for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lag = self.lag.as_ref().map(|(lag, _)| lag);
        let Self { scattered, repeats, .. } = self;
        let mut text = f.debug_struct("Manner");
        text.field("scattered", scattered).field("repeats", repeats).field("lag", &lag).finish()
    }
}

/// What changed lately: when, which key, and the rank that it had; none if it was not there.
pub type Recent = VecDeque<(Duration, Key, Option<Option<Rank>>)>;

impl Manner {
    /// Whether it lists in order, at once, and each entry once.
    pub(crate) fn is_plain(&self) -> bool {
        !self.scattered && !self.repeats && self.lag.is_none()
    }

    pub(crate) fn lag(&self) -> Duration {
        self.lag.as_ref().map_or(Duration::ZERO, |(lag, _)| *lag)
    }

    /// Notes a change, and forgets those that show.
    pub fn note(&self, recent: &mut Recent, key: &Key, before: Option<Option<Rank>>) {
        let Some((lag, now)) = &self.lag else { return };
        let now = now();
        while recent.front().is_some_and(|(at, ..)| *at + *lag <= now) {
            recent.pop_front();
        }
        recent.push_back((now, key.clone(), before));
    }

    /// A page of what shows.
    pub fn list(
        &self,
        live: impl Iterator<Item = (Key, Option<Rank>)>,
        recent: &Recent,
        after: Option<&Key>,
        limit: u32,
    ) -> Listing {
        let mut shown: BTreeMap<Key, Option<Rank>> = live.collect();
        if let Some((lag, now)) = &self.lag {
            let now = now();
            let hidden = recent.iter().rev().take_while(|(at, ..)| *at + *lag > now);
            for (_, key, before) in hidden {
                match before {
                    Some(rank) => shown.insert(key.clone(), *rank),
                    None => shown.remove(key),
                };
            }
        }
        let mut entries: Vec<Entry> =
            shown.into_iter().map(|(key, rank)| Entry { key, rank }).collect();
        entries.sort_by_cached_key(|entry| self.place(&entry.key));
        if let Some(after) = after.map(|after| self.place(after)) {
            entries.retain(|entry| self.place(&entry.key) > after);
        }
        if self.repeats {
            entries = entries.into_iter().flat_map(|entry| [entry.clone(), entry]).collect();
        }
        let end = entries.len() <= limit as usize;
        entries.truncate(limit as usize);
        Listing { entries, end }
    }

    /// Scattered: by the bytes of the key read backwards.
    fn place(&self, key: &Key) -> Vec<u8> {
        let mut place = key.as_str().as_bytes().to_vec();
        if self.scattered {
            place.reverse();
        }
        place
    }
}
