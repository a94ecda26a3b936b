//! A pass over the listing of a sink that lists in no order, or late: such a listing is older than
//! the moment at which it is compared.
//!
//! Invariant: Q3. Only what was delivered before a pass began is judged by it, since what is
//! delivered meanwhile may not show in its listing. A pass lives no longer than its holder: the next
//! one begins a pass of its own at the run's checkpoint.

use std::collections::BTreeSet;
use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_core::ports::Registration;
use truekeep_core::{Key, Place, RunId};

use super::look::PAGE;
use crate::comparison::{Since, Sorted, Sorting};
use crate::scope::{Held, Runner};

/// Pages of a listing that one step reads: follow's next turn waits no longer.
const PAGES_PER_STEP: u32 = 16;

/// Deliveries of items that a pass keeps in mind; after more of them it begins anew.
const REDELIVERED_MAX: usize = 10_000;

/// A pass.
#[derive(Debug)]
pub(crate) struct Pass {
    run: RunId,
    /// Every change before it was delivered before the pass began.
    cursor: Place,
    /// When all of that shows in a listing, by the holder's own clock.
    shows_at: Duration,
    listing: Listing,
    /// The run goes on after this key.
    place: Option<Key>,
    /// Items that were delivered since.
    redelivered: BTreeSet<Key>,
}

#[derive(Debug)]
enum Listing {
    /// The sink's own, read as it is compared.
    Ordered,
    /// It is to be sorted.
    Scattered,
    Sorting(Sorting),
    Sorted(Sorted),
}

/// How far a pass is.
#[derive(Debug)]
pub(super) enum Stage {
    /// None is needed, or its listing can be compared.
    Ready,
    /// It has just begun.
    Begun,
    /// It waits so long until the sink shows what it was given.
    Waits(Duration),
    /// It lists.
    Lists,
}

impl Pass {
    /// Notes what was delivered beside the feed; false if that is too much to keep in mind.
    pub fn note(&mut self, keys: impl Iterator<Item = Key>) -> bool {
        self.redelivered.extend(keys);
        self.redelivered.len() <= REDELIVERED_MAX
    }

    /// The acknowledgement that keeps the tombstones of everything that a pass judges by: a record
    /// that is listed still would else look as if the source had never had it.
    pub fn keep_back(&self, registration: Registration) -> Registration {
        let passed = &self.cursor.passed;
        if passed.includes(&registration.passed) {
            return registration;
        }
        Registration { passed: passed.clone(), ..registration }
    }

    /// The listing to compare, if it is not the sink's own, and what has happened since it began.
    pub(super) fn parts(&mut self, passed: Place) -> (Option<&mut Sorted>, Place, Since<'_>) {
        let Self { listing, redelivered, cursor, place, .. } = self;
        let mut sorted = match listing {
            Listing::Sorted(sorted) => Some(sorted),
            Listing::Ordered | Listing::Scattered | Listing::Sorting(_) => None,
        };
        if let (Some(sorted), Some(place)) = (&mut sorted, place) {
            sorted.release(place);
        }
        (sorted, cursor.clone(), Since { passed, redelivered })
    }

    pub(super) fn moves_to(&mut self, place: Option<Key>) {
        self.place = place;
    }
}

impl Runner {
    /// Makes ready what the comparison after this key needs, one step at a time.
    pub(super) async fn stage(
        &self,
        held: &mut Held,
        run: &RunId,
        after: Option<&Key>,
    ) -> Result<Stage, PortError> {
        let able = self.pipeline.sink.capabilities();
        if able.ordered_listing && able.listing_lag.is_zero() {
            return Ok(Stage::Ready);
        }
        let now = self.ports.clock.monotonic();
        let fits = |pass: &Pass| pass.run == *run && pass.place.as_ref() == after;
        let cursor = held.cursor().cloned().unwrap_or_default();
        let Some(pass) = held.pass.as_mut().filter(|pass| fits(pass)) else {
            held.pass = Some(Pass {
                run: run.clone(),
                cursor,
                shows_at: now.saturating_add(able.listing_lag),
                listing: if able.ordered_listing { Listing::Ordered } else { Listing::Scattered },
                place: after.cloned(),
                redelivered: BTreeSet::new(),
            });
            return Ok(Stage::Begun);
        };
        if now < pass.shows_at {
            return Ok(Stage::Waits(pass.shows_at.saturating_sub(now)));
        }
        match std::mem::replace(&mut pass.listing, Listing::Scattered) {
            ready @ (Listing::Ordered | Listing::Sorted(_)) => {
                pass.listing = ready;
                return Ok(Stage::Ready);
            }
            Listing::Scattered => {
                let (spill, room) = (self.ports.spill.as_ref(), self.settings.sort_bytes);
                let sorting = Sorting::begin(spill, room, after.cloned(), PAGE).await?;
                pass.listing = Listing::Sorting(sorting);
            }
            Listing::Sorting(mut sorting) => {
                match sorting.advance(self.pipeline.sink.as_ref(), PAGES_PER_STEP).await {
                    Ok(true) => pass.listing = Listing::Sorted(sorting.sorted().await?),
                    advanced => {
                        pass.listing = Listing::Sorting(sorting);
                        advanced?;
                    }
                }
            }
        }
        Ok(Stage::Lists)
    }
}
