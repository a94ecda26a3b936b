//! The sink's listing as a comparison needs it: keys rise, each stands once, and entries that are
//! none of the pipeline's business are left out.
//!
//! Invariants: M1, M2 (of the page before, only its ends are kept).

use truekeep_core::code::Code;
use truekeep_core::compare::{OutOfOrder, Owns, Side};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Listing, Sink};
use truekeep_core::{Key, Rank};

use super::sorted::Sorted;

/// How often a page may come again as it was before that counts as standing still.
pub(super) const REPEATS_MAX: u32 = 3;

/// A page of the listing.
#[derive(Debug)]
pub(super) struct Page {
    /// What the pipeline answers for.
    pub entries: Vec<(Key, Rank)>,
    /// The last key of the page, whoever wrote it; none on the last page.
    pub bound: Option<Key>,
    /// Entries without a rank of ours that were left out.
    pub unmarked: u64,
}

/// Where entries come from.
#[derive(Debug)]
pub(super) enum Origin<'p> {
    /// A sink that lists in the order of keys.
    Sink(&'p dyn Sink),
    /// A listing that was sorted.
    Sorted(&'p mut Sorted),
}

/// A listing.
#[derive(Debug)]
pub(super) struct Listed<'p> {
    origin: Origin<'p>,
    owns: Owns,
    limit: u32,
    /// The ends of the page before.
    before: Option<(Key, Key)>,
}

impl<'p> Listed<'p> {
    pub fn new(origin: Origin<'p>, owns: Owns, limit: u32) -> Self {
        Self { origin, owns, limit, before: None }
    }

    /// The next page with anything after this key in it, or the last page.
    ///
    /// # Errors
    /// Those of the sink; class Terminal with `SINK_DISORDERED` if keys do not rise, or if it
    /// neither ends nor goes on.
    pub async fn page(&mut self, after: Option<&Key>) -> Result<Page, PortError> {
        for _ in 0..REPEATS_MAX {
            let listing = match &mut self.origin {
                Origin::Sink(sink) => sink.list(after.cloned(), self.limit).await?,
                Origin::Sorted(sorted) => sorted.list(after, self.limit).await?,
            };
            let ends = ends(&listing);
            if !listing.end && (ends.is_none() || ends == self.before) {
                continue;
            }
            self.before = ends;
            if let Some(page) = self.sorted_out(after, listing)? {
                return Ok(page);
            }
        }
        Err(standstill(after))
    }

    /// None if the page holds nothing after the key.
    fn sorted_out(&self, after: Option<&Key>, listing: Listing) -> Result<Option<Page>, PortError> {
        let mut entries: Vec<(Key, Option<Rank>)> = Vec::with_capacity(listing.entries.len());
        for entry in listing.entries {
            let last = entries.last_mut();
            match last.as_ref().map(|(key, _)| key).or(after) {
                Some(last) if *last > entry.key => {
                    let (side, before, after) = (Side::Sink, last.clone(), entry.key);
                    return Err(disordered().caused_by(OutOfOrder { side, before, after }));
                }
                // Listed twice: of two answers the greater rank is the later one.
                Some(before) if *before == entry.key => {
                    if let Some((_, rank)) = last {
                        *rank = entry.rank.max(*rank);
                    }
                }
                Some(_) | None => entries.push((entry.key, entry.rank)),
            }
        }
        let bound = match entries.last() {
            _ if listing.end => None,
            None => return Ok(None),
            Some((last, _)) => Some(last.clone()),
        };
        let all = entries.len();
        // An entry without a rank of ours is as old as can be, or nobody's business.
        let ours = |(key, rank): (Key, Option<Rank>)| match self.owns {
            Owns::All => Some((key, rank.unwrap_or_default())),
            Owns::Marked => rank.map(|rank| (key, rank)),
        };
        let entries: Vec<(Key, Rank)> = entries.into_iter().filter_map(ours).collect();
        let unmarked = (all - entries.len()) as u64;
        Ok(Some(Page { entries, bound, unmarked }))
    }
}

fn ends(listing: &Listing) -> Option<(Key, Key)> {
    let first = listing.entries.first()?.key.clone();
    Some((first, listing.entries.last()?.key.clone()))
}

pub(super) fn standstill(after: Option<&Key>) -> PortError {
    let after = after.map_or("the beginning", Key::as_str);
    disordered().detail(format!("the sink neither ended nor went on after {after}"))
}

fn disordered() -> PortError {
    PortError::new("list the sink", FailureClass::Terminal, Code::SINK_DISORDERED)
}

#[cfg(test)]
mod tests;
