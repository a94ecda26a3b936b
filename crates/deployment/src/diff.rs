//! Compares a sink with its source, and the source's feed with its table. Writes nothing anywhere.
//!
//! Invariants: M1, M2. Range by range the sink is listed first and the source is read second: what
//! a worker delivers meanwhile is then seen on both sides or has a version after the cursor.
//! A difference that the pipeline has not come to yet is `in flight`, not drift.

use serde::Serialize;
use truekeep_core::code::Code;
use truekeep_core::compare::Difference;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Capture, Clock, Spill};
use truekeep_core::reconcile::{BlastGuard, Report};
use truekeep_core::{Key, Rank, limits};
use truekeep_engine::{Comparison, Drift, Sides, Sorted};

/// Differences that are named; more are counted.
pub const NAMED_MAX: usize = 1_000;

/// Keys of one page of either side.
const PAGE: u32 = 1_000;

/// Ranges of which the differences are judged at once.
const RANGES: u32 = 8;

/// The kinds of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The source has it, the sink has not.
    Missing,
    /// The sink has an older one.
    Stale,
    /// The sink has another document at the same version.
    Altered,
    /// The sink has it, the source has not.
    Orphan,
    /// The sink has a newer one than the source knows.
    Ahead,
    /// The source's own feed does not have the change: no worker would ever deliver it.
    CaptureMissed,
}

/// One difference, as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// How it differs.
    pub kind: Kind,
    /// Which record.
    pub key: Key,
    /// What the source wants, as rules and version.
    pub wanted: Option<Rank>,
    /// What the sink holds.
    pub held: Option<Rank>,
    /// Whether the record is parked.
    pub parked: bool,
    /// Whether no record of the source can have this key.
    pub foreign: bool,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Keys that are equal.
    pub equal: u64,
    /// Keys that the sink lacks.
    pub missing: u64,
    /// Keys of which the sink has an older version.
    pub stale: u64,
    /// Keys of which the sink has another document at the same version; none if documents were not
    /// compared.
    pub altered: Option<u64>,
    /// Keys that only the sink has.
    pub orphan: u64,
    /// Keys of which the sink has a newer version.
    pub ahead: u64,
    /// Rows whose change is not in the feed.
    pub capture_missed: u64,
    /// How many of all these are parked, and so known already.
    pub parked: u64,
    /// Differences that the pipeline has not come to yet.
    pub in_flight: u64,
    /// Entries of the sink that are not the pipeline's and are left alone.
    pub unmarked: u64,
    /// The first differences, in the order they were found.
    pub named: Vec<Named>,
}

impl Found {
    /// How many differences are drift.
    pub fn drift(&self) -> u64 {
        let Self { missing, stale, altered, orphan, ahead, capture_missed, .. } = *self;
        missing + stale + altered.unwrap_or(0) + orphan + ahead + capture_missed
    }

    /// Whether a reconcile would ask before it deletes orphans, or writes altered documents again.
    pub fn guard_refuses(&self) -> bool {
        let Self { equal, missing, stale, altered, orphan, ahead, .. } = *self;
        let both = equal + stale + altered.unwrap_or(0) + ahead;
        let (live, listed) = (both + missing, both + orphan);
        let report = Report { live, listed, orphans: orphan, altered, ..Report::default() };
        BlastGuard::default().judge(&report).is_err()
    }

    fn add(&mut self, named: Named) {
        let count = match named.kind {
            Kind::Missing => &mut self.missing,
            Kind::Stale => &mut self.stale,
            Kind::Altered => self.altered.get_or_insert_default(),
            Kind::Orphan => &mut self.orphan,
            Kind::Ahead => &mut self.ahead,
            Kind::CaptureMissed => &mut self.capture_missed,
        };
        *count += 1;
        self.parked += u64::from(named.parked);
        if self.named.len() < NAMED_MAX {
            self.named.push(named);
        }
    }
}

/// What a comparison needs beside the two sides.
#[derive(Debug, Clone, Copy)]
pub struct Means<'p> {
    /// Holds the feed against the table.
    pub capture: &'p dyn Capture,
    /// Room for a listing without an order.
    pub spill: &'p dyn Spill,
    /// Waits for a listing that lags.
    pub clock: &'p dyn Clock,
}

/// Compares, and audits the feed. `progress` hears how many keys were looked at, in all.
///
/// A sink whose listing lags is listed so much later than the cursor of the sides was read: what was
/// delivered before shows then, and what is delivered since is in flight.
///
/// # Errors
/// Those of the ports; class Terminal with `SINK_DISORDERED` or `UNEXPECTED` if the sink or the source
/// does not list in the byte order of keys, or stands still, and with `SINK_UNVERIFIABLE` if documents
/// are to be compared and the sink cannot.
pub async fn compare(
    sides: &Sides<'_>,
    means: Means<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Found, PortError> {
    let (mut found, mut seen) = (Found { altered: sides.deep.then_some(0), ..Found::default() }, 0);
    let able = sides.sink.capabilities();
    if !able.listing_lag.is_zero() {
        means.clock.sleep(able.listing_lag).await;
    }
    let mut sorted = if able.ordered_listing {
        None
    } else {
        Some(Sorted::of(sides.sink, means.spill, limits::SORT_BYTES, PAGE).await?)
    };
    let mut comparison = match &mut sorted {
        Some(sorted) => Comparison::over(sides.clone(), sorted, None, PAGE),
        None => Comparison::begin(sides.clone(), None, PAGE),
    };
    while let Some(stretch) = comparison.advance_by(RANGES).await? {
        found.equal += stretch.equal;
        found.unmarked += stretch.unmarked;
        found.in_flight += stretch.in_flight + stretch.undecided.len() as u64;
        for drift in stretch.drifts {
            found.add(Named::of(drift));
        }
        seen += stretch.live;
        progress(seen);
    }
    audit(means.capture, &mut found, |audited| progress(seen + audited)).await?;
    Ok(found)
}

impl Named {
    fn of(drift: Drift) -> Self {
        let Drift { difference, wanted, parked, foreign } = drift;
        let (kind, key, held) = match difference {
            Difference::Missing(key, _) => (Kind::Missing, key, None),
            Difference::Stale(key, _, held) => (Kind::Stale, key, Some(held)),
            Difference::Altered(key, held) => (Kind::Altered, key, Some(held)),
            Difference::Ahead(key, _, held) => (Kind::Ahead, key, Some(held)),
            Difference::Orphan(key, held) => (Kind::Orphan, key, Some(held)),
        };
        Self { kind, key, wanted, held, parked, foreign }
    }
}

/// Holds the feed against the table: a change that was not recorded is delivered by nobody.
async fn audit(
    capture: &dyn Capture,
    found: &mut Found,
    mut progress: impl FnMut(u64),
) -> Result<(), PortError> {
    let (mut after, mut seen) = (None, 0);
    loop {
        let page = capture.audit(after.clone(), limits::PAGE_ROWS_MAX).await?;
        seen += page.seen;
        progress(seen);
        for key in page.missed.into_iter().chain(page.ghosts) {
            let kind = Kind::CaptureMissed;
            found.add(Named { kind, key, wanted: None, held: None, parked: false, foreign: false });
        }
        match page.next {
            None => return Ok(()),
            Some(next) if after.as_ref() == Some(&next) => {
                let class = FailureClass::Terminal;
                return Err(PortError::new("audit the feed", class, Code::UNEXPECTED)
                    .detail(format!("it neither ended nor went on after {next}")));
            }
            next => after = next,
        }
    }
}

#[cfg(test)]
mod tests;
