//! What a run of reconcile looks at and numbers: each command as calls of ports.
//!
//! Invariants: Q1, Q2, Q3.

use std::collections::BTreeSet;
use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::compare::{Difference, Owns};
use truekeep_core::failure::PortError;
use truekeep_core::follow::{self, Delivered};
use truekeep_core::limits;
use truekeep_core::ports::{
    CaptureState, Change, Clock, ItemCursor, ItemFilter, ItemKind, NewItem, Settle,
};
use truekeep_core::reconcile::{Audited, Command, Found, Observation};
use truekeep_core::{Key, Rank, Stamp};

use super::Beside;
use super::differing::Differing;
use super::pass::Stage;
use crate::comparison::{Comparison, Drift, Sides, Stretch};
use crate::perform::{Performed, Shipment, tail_of};
use crate::scope::{Held, Runner};
use crate::turn::Turn;

/// Keys of one page of either side.
pub(super) const PAGE: u32 = 1_000;

/// Parts that one step compares at most, and ranges of a part: its differences are judged at once.
const PARTS_PER_STEP: u32 = 8;
const RANGES_PER_PART: u32 = 8;

/// Differences after which a step goes on with no further part: they are few enough to be held beside a
/// page, and many enough for one write.
pub(super) const DIFFERENCES_PER_STEP: usize = 200;

/// Rows that capture missed of a page without anybody speaking of a rewritten table.
const REWRITTEN_MIN: u64 = 20;

/// Records that are kept in mind because their repair is being tried, and a page more.
const AWAITED_MAX: usize = 10_000;

/// What came of a look.
pub(super) enum Looked {
    Seen(Observation),
    /// Nothing is to be seen for so long.
    Waits(Duration),
    /// Nothing is to be seen yet, and the next look goes on with it.
    Works,
    /// Follow was told something first, and it has other things to do.
    Turned(Turn),
}

impl Runner {
    /// What was seen; or why nothing was, without trouble.
    pub(super) async fn look_beside(
        &self,
        held: &mut Held,
        beside: &Beside,
        command: Command,
    ) -> Result<Looked, PortError> {
        if let Command::Compare { after, .. } | Command::Purge { after, .. } = &command {
            match self.stage(held, &beside.run, after.as_ref()).await? {
                Stage::Ready => {}
                Stage::Begun => return Ok(Looked::Seen(Observation::Listing)),
                Stage::Waits(length) => return Ok(Looked::Waits(length)),
                Stage::Lists => return Ok(Looked::Works),
            }
        }
        if let Command::Await { numbered } = command
            && self.is_still_tried(held, numbered).await?
        {
            return Ok(Looked::Waits(self.settings.poll_every));
        }
        if let Command::Compare { after: None, park: false } = &command {
            held.differing = Some(Differing::begin(beside.run.clone()));
        }
        self.see(held, beside, command).await
    }

    /// Whether the delivery of a change up to this write is an item that is neither done nor parked.
    /// Later changes hold nothing up; what was awaited once is awaited to its end, since a delete
    /// that the feed has forgotten meanwhile is tried under a later number.
    async fn is_still_tried(&self, held: &mut Held, numbered: Stamp) -> Result<bool, PortError> {
        let mut awaited = BTreeSet::new();
        let (mut after, mut more) = (None, held.tally.unsettled > 0);
        // More are found again by their writes, once these are done with.
        while more && awaited.len() < AWAITED_MAX {
            let (scope, filter) = (&held.scope, ItemFilter::Unsettled);
            let items = self.ports.items.list(scope, filter, after, PAGE).await?;
            after = items.last().map(|last| ItemCursor(last.key.clone()));
            more = after.is_some();
            let keys: Vec<Key> = items.into_iter().map(|item| item.key).collect();
            let rows = self.pipeline.feed.find(&keys).await?;
            let is_ours = |(key, row): &(Key, Option<Change>)| {
                held.awaited.contains(key) || row.as_ref().is_some_and(|row| row.stamp <= numbered)
            };
            awaited.extend(keys.into_iter().zip(rows).filter(is_ours).map(|(key, _)| key));
        }
        held.awaited = awaited;
        Ok(!held.awaited.is_empty())
    }

    async fn see(
        &self,
        held: &mut Held,
        beside: &Beside,
        command: Command,
    ) -> Result<Looked, PortError> {
        let terms = &beside.stored.terms;
        // What capture did not see is no ground to repair or to delete on.
        let at = held.cursor().cloned().unwrap_or_default();
        let view = self.pipeline.feed.view(&held.terms.consumer, &at).await?;
        if !matches!(view.capture, CaptureState::Trusted(_)) {
            return Ok(Looked::Seen(Observation::Looked(view.capture)));
        }
        Ok(Looked::Seen(match command {
            Command::Look => {
                if terms.deep {
                    self.pipeline.sink.capabilities().verifying()?;
                }
                Observation::Looked(view.capture)
            }
            Command::Audit { after, ghosts_max } => self.audit(after, ghosts_max).await?,
            Command::Arm => Observation::Armed,
            Command::Scan { after, until, rows_max } => {
                return self.scan(held, after, until, rows_max).await;
            }
            Command::Isolate { after, until } => return self.pass_over(held, after, until).await,
            Command::Compare { after, park } => self.compare(held, beside, after, park).await?,
            Command::Purge { after, orphans_max, altered_max } => {
                let deep = altered_max.is_some();
                let (stretch, next) = self.part(held, beside, after, deep).await?;
                self.purge(held, stretch, next, (orphans_max, altered_max.unwrap_or(0))).await?
            }
            Command::Await { numbered } => {
                // Nothing was numbered if it is zero.
                let reached = numbered == Stamp::new(0) || at.covers(numbered);
                Observation::Awaited { reached }
            }
        }))
    }

    /// Pages of the audit, as many as one step may take; one that found something is the last.
    async fn audit(&self, after: Option<Key>, ghosts_max: u64) -> Result<Observation, PortError> {
        let began = self.ports.clock.monotonic();
        let mut page = self.pipeline.capture.audit(after, limits::PAGE_ROWS_MAX).await?;
        while page.missed.is_empty()
            && page.ghosts.is_empty()
            && page.next.is_some()
            && self.ports.clock.monotonic().saturating_sub(began) < limits::BESIDE_STEP
        {
            page = self.pipeline.capture.audit(page.next, limits::PAGE_ROWS_MAX).await?;
        }
        let (missed, ghosts) = (page.missed.len() as u64, page.ghosts.len() as u64);
        let rewritten = if missed > REWRITTEN_MIN && missed > page.seen / 2 { missed } else { 0 };
        let mut keys = page.missed;
        if ghosts <= ghosts_max {
            keys.extend(page.ghosts);
        }
        let (numbered, _) = self.number(&keys).await?;
        let found = Audited { missed, rewritten, ghosts };
        Ok(Observation::Audited { next: page.next, found, numbered })
    }

    fn sides<'p>(&'p self, held: &Held, owns: Owns, deep: bool) -> Sides<'p> {
        Sides {
            scope: held.scope.clone(),
            rules: held.terms.rules,
            cursor: held.cursor().cloned().unwrap_or_default(),
            since: None,
            deep,
            owns,
            feed: self.pipeline.feed.as_ref(),
            records: self.pipeline.records.as_ref(),
            sink: self.pipeline.sink.as_ref(),
            items: self.ports.items.as_ref(),
        }
    }

    /// What one step compares, and where the next one begins.
    async fn part(
        &self,
        held: &mut Held,
        beside: &Beside,
        after: Option<Key>,
        deep: bool,
    ) -> Result<(Stretch, Option<Key>), PortError> {
        let mut sides = self.sides(held, beside.stored.terms.owns, deep);
        let clock = self.ports.clock.as_ref();
        let Some(pass) = &mut held.pass else {
            return match held.differing.as_ref().filter(|known| known.is_of(&beside.run)) {
                Some(known) => known.compare(sides, after, clock).await,
                None => next_parts(Comparison::begin(sides, after, PAGE), clock).await,
            };
        };
        let (sorted, cursor, since) = pass.parts(sides.cursor);
        (sides.cursor, sides.since) = (cursor, Some(since));
        let (stretch, next) = match sorted {
            // What is sorted is held until the checkpoint, since a step may come again.
            Some(sorted) => {
                let mut comparison = Comparison::over(sides, sorted, after, PAGE);
                let mut seen = comparison.advance().await?.unwrap_or_default();
                seen.gone.extend(comparison.gone().await?);
                let next = comparison.place().cloned();
                (seen, next)
            }
            None => next_parts(Comparison::begin(sides, after, PAGE), clock).await?,
        };
        pass.moves_to(next.clone());
        held.pass.take_if(|_| next.is_none());
        Ok((stretch, next))
    }

    async fn compare(
        &self,
        held: &mut Held,
        beside: &Beside,
        after: Option<Key>,
        park: bool,
    ) -> Result<Observation, PortError> {
        let deep = beside.stored.terms.deep;
        let (mut stretch, next) = self.part(held, beside, after, deep).await?;
        let differing = std::mem::take(&mut stretch.differing);
        held.differing.take_if(|known| !known.note(differing, next.is_none()));
        let unparked = self.unpark(held, stretch.gone).await;
        let Stretch { listed, live, unmarked, waiting, .. } = stretch;
        // Keys younger than the listing's lag are judged again.
        let lags = !self.pipeline.sink.capabilities().listing_lag.is_zero();
        let late = if lags { stretch.late } else { 0 };
        let mut found =
            Found { listed, live, unmarked, late, waiting, unparked, ..Found::default() };
        // A document that may only be newer than its version is delivered once more: that is no
        // repair, and does no harm.
        let (mut repairs, mut parked) = (stretch.undecided, Vec::new());
        // What is parked is known already, and waits for an operator.
        for drift in stretch.drifts.into_iter().filter(|drift| !drift.parked) {
            // The others wait until all of them are counted (Q1).
            let repairable = match &drift.difference {
                Difference::Missing(..) => count(&mut found.missing),
                Difference::Stale(..) => count(&mut found.stale),
                Difference::Altered(..) => !count(&mut found.altered),
                Difference::Orphan(..) => !count(&mut found.orphans),
                Difference::Ahead(..) => !count(&mut found.ahead),
            };
            match (park, repairable) {
                (true, _) => parked.push(non_convergent(&drift)),
                (false, true) => repairs.push(drift.difference.key().clone()),
                (false, false) => {}
            }
        }
        let (numbered, _) = self.number(&repairs).await?;
        Ok(Observation::Compared { next, found, park: parked, numbered })
    }

    async fn purge(
        &self,
        held: &mut Held,
        stretch: Stretch,
        next: Option<Key>,
        (orphans_max, altered_max): (u64, u64),
    ) -> Result<Observation, PortError> {
        let (mut orphans, mut altered) = (Vec::new(), Vec::new());
        for drift in stretch.drifts.into_iter().filter(|drift| !drift.parked) {
            match drift.difference {
                Difference::Orphan(key, rank) => orphans.push((key, rank)),
                Difference::Altered(key, _) => altered.push(key),
                Difference::Missing(..) | Difference::Stale(..) | Difference::Ahead(..) => {}
            }
        }
        let mended = altered.len() as u64;
        let purged = |buried, mended, foreign, refused, exceeded, numbered| Observation::Purged {
            next,
            buried,
            mended,
            foreign,
            refused,
            exceeded,
            numbered,
        };
        if orphans.len() as u64 > orphans_max || mended > altered_max {
            return Ok(purged(0, 0, 0, 0, true, None));
        }
        let mut keys: Vec<Key> = orphans.iter().map(|(key, _)| key.clone()).collect();
        keys.extend(altered);
        let (numbered, foreign) = self.number(&keys).await?;
        let buried = (orphans.len() - foreign.len()) as u64;
        if foreign.is_empty() {
            return Ok(purged(buried, mended, 0, 0, false, numbered));
        }
        let mut shipment = Shipment::default();
        for (key, rank) in orphans.into_iter().filter(|(key, _)| foreign.contains(key)) {
            shipment.remove(key, rank);
        }
        let tail = tail_of(held)?.clone();
        let (delivered, sent) = self.ship(held, &tail, shipment, false).await?;
        let refused = delivered.failed.len() as u64 + u64::from(delivered.ahead.is_some());
        Ok(purged(buried, mended, sent.saturating_sub(refused), refused, false, numbered))
    }

    /// Tells follow that parked items are done with, and counts them. If that fails, the next run
    /// does it.
    async fn unpark(&self, held: &mut Held, gone: Vec<Settle>) -> u64 {
        if gone.is_empty() {
            return 0;
        }
        let count = gone.len() as u64;
        let delivered = Delivered { settled: gone, ..Delivered::default() };
        let told = Performed::fact(follow::Observation::Redelivered(delivered));
        match self.conclude(held, told.ailing(held.health.clone())).await {
            Ok(Turn::Advanced) => count,
            Ok(_) => 0,
            Err(error) => {
                tracing::warn!(code = %error.code, error = error.chain(), "unpark");
                0
            }
        }
    }

    /// Numbers keys, in transactions of the size that the source is promised.
    pub(crate) async fn number(
        &self,
        keys: &[Key],
    ) -> Result<(Option<Stamp>, Vec<Key>), PortError> {
        let (mut newest, mut foreign) = (None, Vec::new());
        for keys in keys.chunks(limits::SOURCE_WRITE_ROWS_MAX as usize) {
            let numbered = self.pipeline.capture.number(keys).await?;
            newest = numbered.newest.or(newest);
            foreign.extend(numbered.foreign);
        }
        Ok((newest, foreign))
    }
}

/// Parts of a comparison, as many as one step may take: each step is a checkpoint, and what it repairs
/// is one write in the source.
async fn next_parts(
    mut comparison: Comparison<'_>,
    clock: &dyn Clock,
) -> Result<(Stretch, Option<Key>), PortError> {
    let (began, mut seen) = (clock.monotonic(), Stretch::default());
    for _ in 0..PARTS_PER_STEP {
        let Some(part) = comparison.advance_by(RANGES_PER_PART).await? else { break };
        seen.extend(part);
        seen.gone.extend(comparison.gone().await?);
        let over = clock.monotonic().saturating_sub(began) >= limits::BESIDE_STEP;
        if over || seen.is_full(DIFFERENCES_PER_STEP) || comparison.place().is_none() {
            break;
        }
    }
    Ok((seen, comparison.place().cloned()))
}

/// Counts one, and says yes.
fn count(number: &mut u64) -> bool {
    *number += 1;
    true
}

fn non_convergent(drift: &Drift) -> NewItem {
    let (kind, held) = match &drift.difference {
        Difference::Missing(..) => (ItemKind::Upsert, None),
        Difference::Stale(_, _, held)
        | Difference::Altered(_, held)
        | Difference::Ahead(_, _, held) => (ItemKind::Upsert, Some(*held)),
        Difference::Orphan(_, held) => (ItemKind::Delete, Some(*held)),
    };
    let say = |rank: Option<Rank>| rank.map_or_else(|| "nothing".to_owned(), |r| r.to_string());
    let other = matches!(drift.difference, Difference::Altered(..));
    let other = if other { " with another document" } else { "" };
    NewItem {
        key: drift.difference.key().clone(),
        version: drift.wanted.or(held).unwrap_or_default().version,
        kind,
        attempts: 0,
        retry_in: None,
        code: Code::NON_CONVERGENT,
        reason: format!(
            "the source wants {}, the sink holds {}{other}",
            say(drift.wanted),
            say(held)
        ),
    }
}
