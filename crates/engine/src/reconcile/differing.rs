//! The keys that a run's first comparison did not find equal. What the run looks at afterwards, to
//! remove what is too much and to see whether its repairs arrived, it looks at them alone: everything
//! else was equal, and follow keeps it so.
//!
//! Invariants: Q1, Q3, M2. Only their holder knows them, and only if that comparison was its own from
//! the beginning and found no more than can be kept in mind. Otherwise everything is compared again.

use std::collections::BTreeSet;
use std::ops::Bound;

use truekeep_core::failure::PortError;
use truekeep_core::ports::Clock;
use truekeep_core::{Key, RunId, limits};

use super::look::DIFFERENCES_PER_STEP;
use crate::comparison::{Comparison, Sides, Stretch};

/// Keys that are kept in mind: some hundred kilobytes of them.
const KEYS_MAX: usize = 2_000;

/// Keys of either side that are read at once near one that is looked for.
const NEAR: u32 = 16;

/// What did not compare as equal.
#[derive(Debug)]
pub(crate) struct Differing {
    run: RunId,
    keys: BTreeSet<Key>,
    /// Whether the comparison came to its end.
    whole: bool,
}

impl Differing {
    /// Nothing yet: the first comparison of a run begins.
    pub(super) fn begin(run: RunId) -> Self {
        Self { run, keys: BTreeSet::new(), whole: false }
    }

    /// Takes what a part of the comparison did not find equal; false if that is too much.
    pub(super) fn note(&mut self, keys: Vec<Key>, end: bool) -> bool {
        self.keys.extend(keys);
        self.whole |= end;
        self.keys.len() <= KEYS_MAX
    }

    /// Whether this is all that differs for a run.
    pub(super) fn is_of(&self, run: &RunId) -> bool {
        self.whole && self.run == *run
    }

    /// Compares around each of the keys after this one, as many as one step may take; and where the
    /// next step begins.
    pub(super) async fn compare(
        &self,
        sides: Sides<'_>,
        after: Option<Key>,
        clock: &dyn Clock,
    ) -> Result<(Stretch, Option<Key>), PortError> {
        let (began, mut seen, mut place) = (clock.monotonic(), Stretch::default(), after);
        while let Some(key) = self.after(place.as_ref()) {
            let near = key.just_before().max(place);
            let mut comparison = Comparison::begin(sides.clone(), near, NEAR);
            while let Some(part) = comparison.advance().await? {
                seen.extend(part);
                seen.gone.extend(comparison.gone().await?);
                if comparison.place().is_none_or(|place| place >= key) {
                    break;
                }
            }
            place = comparison.place().cloned();
            let over = clock.monotonic().saturating_sub(began) >= limits::BESIDE_STEP;
            if place.is_none() || over || seen.is_full(DIFFERENCES_PER_STEP) {
                break;
            }
        }
        let left = place.filter(|place| self.after(Some(place)).is_some());
        Ok((seen, left))
    }

    fn after(&self, place: Option<&Key>) -> Option<&Key> {
        let lower = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range((lower, Bound::Unbounded)).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M2.
    #[test]
    fn no_more_keys_are_kept_in_mind_than_fit() {
        let mut known = Differing::begin(RunId::parse("run").expect("valid"));
        let keys = |numbers: std::ops::Range<usize>| -> Vec<Key> {
            numbers.map(|n| Key::new(n.to_string())).collect()
        };
        assert!(known.note(keys(0..KEYS_MAX), false));
        assert!(known.note(keys(0..KEYS_MAX), false), "keys that come again are the same");
        assert!(!known.note(keys(KEYS_MAX..KEYS_MAX + 1), true));
    }
}
