//! Compares a sink with its source, and the source's feed with its table. Writes nothing anywhere.
//!
//! Invariants: M1, M2. Range by range the sink is listed first and the source is read second: what
//! a worker delivers meanwhile is then seen on both sides or has a version after the cursor.
//! A difference that the pipeline has not come to yet is `in flight`, not drift.

mod pending;
mod range;

use serde::Serialize;
use truekeep_core::compare::Difference;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Capture, Feed, ItemState, Items, Records, Sink};
use truekeep_core::{Key, Rank, RulesNumber, ScopeId, Version};

use pending::Pending;
use range::{Merge, Standstill};

/// Differences that are named; more are counted.
pub const NAMED_MAX: usize = 1_000;

/// Keys of one page of either side.
const PAGE: u32 = 1_000;

/// What is compared.
#[derive(Debug, Clone)]
pub struct Sides<'p> {
    /// The part of a pipeline.
    pub scope: ScopeId,
    /// The rules in force.
    pub rules: RulesNumber,
    /// Everything at or below it was delivered under these rules, or is an item.
    pub cursor: Version,
    /// The feed.
    pub feed: &'p dyn Feed,
    /// The records.
    pub records: &'p dyn Records,
    /// What records changes.
    pub capture: &'p dyn Capture,
    /// The derived store.
    pub sink: &'p dyn Sink,
    /// Deliveries that are not done.
    pub items: &'p dyn Items,
}

/// The kinds of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The source has it, the sink has not.
    Missing,
    /// The sink has an older one.
    Stale,
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
    /// The first differences, in the order they were found.
    pub named: Vec<Named>,
}

impl Found {
    /// How many differences are drift.
    pub fn drift(&self) -> u64 {
        self.missing + self.stale + self.orphan + self.ahead + self.capture_missed
    }

    fn add(&mut self, named: Named) {
        let count = match named.kind {
            Kind::Missing => &mut self.missing,
            Kind::Stale => &mut self.stale,
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

/// Compares. `progress` hears how many keys were looked at, in all.
///
/// # Errors
/// Those of the ports; class Terminal with `UNEXPECTED` if a side does not list in the byte order
/// of keys, or stands still.
pub async fn compare(sides: &Sides<'_>, mut progress: impl FnMut(u64)) -> Result<Found, PortError> {
    let mut found = Found::default();
    let mut merge = Merge::new(sides.sink, sides.records, sides.rules, PAGE);
    let mut pending = Pending::new(sides.items, &sides.scope, PAGE);
    while let Some(differences) = merge.advance().await? {
        judge(sides, differences, &mut pending, &mut found).await?;
        found.equal = merge.equal();
        progress(merge.seen());
    }
    let compared = merge.seen();
    audit(sides, &mut found, |audited| progress(compared + audited)).await?;
    Ok(found)
}

/// Judges the differences of a range: drift, or not come to yet.
async fn judge(
    sides: &Sides<'_>,
    differences: Vec<Difference>,
    pending: &mut Pending<'_>,
    found: &mut Found,
) -> Result<(), PortError> {
    let orphans: Vec<Key> = differences
        .iter()
        .filter(|difference| matches!(difference, Difference::Orphan(..)))
        .map(|difference| difference.key().clone())
        .collect();
    let rows = if orphans.is_empty() { Vec::new() } else { sides.feed.find(&orphans).await? };
    let mut rows = rows.into_iter();
    for difference in differences {
        let (kind, key, wanted, held) = match difference {
            Difference::Missing(key, wanted) => (Kind::Missing, key, Some(wanted), None),
            Difference::Stale(key, wanted, held) => (Kind::Stale, key, Some(wanted), Some(held)),
            Difference::Ahead(key, wanted, held) => (Kind::Ahead, key, Some(wanted), Some(held)),
            Difference::Orphan(key, held) => {
                let row = rows.next().flatten();
                let wanted = row.map(|row| Rank { rules: sides.rules, version: row.version });
                (Kind::Orphan, key, wanted, Some(held))
            }
        };
        let to_come = wanted.is_some_and(|wanted| wanted.version > sides.cursor);
        // A sink that is ahead is no question of patience.
        if to_come && kind != Kind::Ahead {
            found.in_flight += 1;
            continue;
        }
        match pending.state(&key).await? {
            Some(ItemState::Pending | ItemState::Leased | ItemState::Retry)
                if kind != Kind::Ahead =>
            {
                found.in_flight += 1;
            }
            state => {
                let parked = state == Some(ItemState::Parked);
                found.add(Named { kind, key, wanted, held, parked });
            }
        }
    }
    Ok(())
}

/// Holds the feed against the table: a change that was not recorded is delivered by nobody.
async fn audit(
    sides: &Sides<'_>,
    found: &mut Found,
    mut progress: impl FnMut(u64),
) -> Result<(), PortError> {
    let (mut after, mut seen) = (None, 0);
    loop {
        let page = sides.capture.audit(after.clone(), PAGE).await?;
        seen += page.seen;
        progress(seen);
        for key in page.missed.into_iter().chain(page.ghosts) {
            let kind = Kind::CaptureMissed;
            found.add(Named { kind, key, wanted: None, held: None, parked: false });
        }
        match page.next {
            None => return Ok(()),
            Some(next) if after.as_ref() == Some(&next) => {
                return Err(Standstill::audit(&next).into());
            }
            next => after = next,
        }
    }
}

#[cfg(test)]
mod tests;
