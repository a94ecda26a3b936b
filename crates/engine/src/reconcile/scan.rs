//! The scan of a rebuild: pages of the feed from its beginning, beside the pages of follow, under the
//! same rules.
//!
//! Invariants: Q4, F3. What was read is sent only if nothing else was sent since: a sink that does not
//! remember deletes would take up again what follow has just removed.

use std::num::NonZeroU32;
use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_core::follow::{self, Delivered};
use truekeep_core::ports::{CaptureState, ChangePage};
use truekeep_core::reconcile::Observation;
use truekeep_core::{MarkNumber, Moment, Place, limits};

use super::look::Looked;
use crate::perform::{Performed, Shipment, killers, merge, tail_of};
use crate::read_ahead::{Part, ReadAhead};
use crate::scope::{Held, Runner};
use crate::turn::Turn;

/// What a holder knows of its scan.
#[derive(Debug)]
pub(crate) struct Scanner {
    reader: Option<ReadAhead>,
    /// The newest batch of the scope when it was last read.
    sent: MarkNumber,
    /// Rows of the next page: adapts, so that follow waits no longer than it has to.
    rows: u32,
    /// Nothing is sent before, by the holder's own clock: the rate is kept.
    rests_until: Duration,
}

impl Default for Scanner {
    fn default() -> Self {
        let (sent, rests_until) = (MarkNumber::new(0), Duration::ZERO);
        Self { reader: None, sent, rows: limits::PAGE_ROWS, rests_until }
    }
}

impl Scanner {
    /// The reader that goes on after a place, if nothing was sent since it read.
    fn take(&mut self, after: &Place, sent: MarkNumber) -> Option<ReadAhead> {
        self.reader.take().filter(|reader| reader.continues(after) && self.sent == sent)
    }

    fn adapt(&mut self, took: Duration) {
        if took > limits::SCAN_STEP {
            self.rows = (self.rows / 2).max(limits::SCAN_ROWS_MIN);
        } else if took < limits::SCAN_STEP / 2 {
            self.rows = self.rows.saturating_mul(2).min(limits::PAGE_ROWS_MAX);
        }
    }
}

impl Runner {
    /// Delivers the next page again, and tells follow what became of it.
    pub(super) async fn scan(
        &self,
        held: &mut Held,
        after: Place,
        until: Option<Moment>,
        rows_max: Option<u32>,
    ) -> Result<Looked, PortError> {
        let began = self.ports.clock.monotonic();
        if began < held.scanner.rests_until {
            return Ok(Looked::Waits(held.scanner.rests_until.saturating_sub(began)));
        }
        let tail = tail_of(held)?.clone();
        let until = until.unwrap_or_else(|| tail.cursor.passed.clone());
        let rate = self.pipeline.rate_max.map_or(u32::MAX, NonZeroU32::get);
        let rows = rows_max.unwrap_or(held.scanner.rows).min(rate);
        let mut reader = match held.scanner.take(&after, tail.sent) {
            Some(reader) if rows_max.is_none() => reader,
            Some(_) | None => {
                let mut reading = self.reading(held);
                reading.ahead &= rows_max.is_none();
                ReadAhead::begin(reading, after.clone(), rows)
            }
        };
        reader.resize(rows);
        let Some(Part::Head(head)) = reader.part().await? else {
            // It had come to its end; the next look reads anew.
            return Ok(Looked::Works);
        };
        if let Some(seen) = distrusted(&tail, &head) {
            return Ok(Looked::Seen(seen));
        }
        let (mut delivered, mut records) = (Delivered::default(), 0);
        while let Some(Part::Rows(rows)) = reader.part().await? {
            let mut shipment = Shipment::default();
            // What comes after the bound is follow's.
            for (change, loaded) in rows.into_iter().filter(|(row, _)| until.covers(row.stamp)) {
                shipment.add(change, loaded, held.terms.rules, 1);
            }
            let (part, sent) = self.ship(held, &tail, shipment, true).await?;
            merge(&mut delivered, part);
            records += sent;
        }
        // The run ends with it, and follow is told then.
        let ahead = u64::from(delivered.ahead.take().is_some());
        if let Some(turn) = self.tell(held, delivered, records).await? {
            return Ok(Looked::Turned(turn));
        }
        let sent = tail_of(held)?.sent;
        held.scanner.sent = sent;
        held.scanner.reader = (!head.end).then_some(reader);
        if let Some(rate) = self.pipeline.rate_max {
            let length =
                Duration::from_micros(records.saturating_mul(1_000_000) / u64::from(rate.get()));
            held.scanner.rests_until = began.saturating_add(length);
        }
        held.scanner.adapt(self.ports.clock.monotonic().saturating_sub(began));
        self.seen(held, *head, until, (records, ahead)).await
    }

    /// Parks the next record, which killed too many workers.
    pub(super) async fn pass_over(
        &self,
        held: &mut Held,
        after: Place,
        until: Option<Moment>,
    ) -> Result<Looked, PortError> {
        let tail = tail_of(held)?.clone();
        let until = until.unwrap_or_else(|| tail.cursor.passed.clone());
        let page = self.pipeline.feed.changes(&held.terms.consumer, &after, 1).await?;
        if let Some(seen) = distrusted(&tail, &page) {
            return Ok(Looked::Seen(seen));
        }
        let delivered = killers(&page.changes);
        if let Some(turn) = self.tell(held, delivered, 0).await? {
            return Ok(Looked::Turned(turn));
        }
        self.seen(held, page, until, (0, 0)).await
    }

    /// What a page means for the scan; follow is told of the last one first.
    async fn seen(
        &self,
        held: &mut Held,
        page: ChangePage,
        until: Moment,
        (delivered, ahead): (u64, u64),
    ) -> Result<Looked, PortError> {
        let end = page.end || page.next.passed.includes(&until);
        if end && ahead == 0 {
            let told = Performed::fact(follow::Observation::Renewed).ailing(held.health.clone());
            let turn = self.conclude(held, told).await?;
            if !matches!(turn, Turn::Advanced | Turn::NotDue) || tail_of(held)?.outdated {
                return Ok(Looked::Turned(turn));
            }
        }
        Ok(Looked::Seen(Observation::Scanned { next: page.next, until, end, delivered, ahead }))
    }

    /// Tells follow what became of a page: failures are items before the scan has passed them. A turn,
    /// if follow has something else to do now.
    async fn tell(
        &self,
        held: &mut Held,
        delivered: Delivered,
        records: u64,
    ) -> Result<Option<Turn>, PortError> {
        let failed = delivered.failed.len() as u64;
        let told = Performed::fact(follow::Observation::Redelivered(delivered));
        let told = Performed { records, failed, ..told.ailing(held.health.clone()) };
        let turn = self.conclude(held, told).await?;
        let tails = matches!(held.phase, follow::Phase::Tailing(_));
        let done = tails && matches!(turn, Turn::Advanced | Turn::NotDue);
        Ok((!done).then_some(turn))
    }
}

/// What a page says instead of what is in it, if it is not to be delivered.
fn distrusted(tail: &follow::Tail, page: &ChangePage) -> Option<Observation> {
    let capture = &page.view.capture;
    // Of a source that went back follow is told with its own next page.
    let trusted = matches!(capture, CaptureState::Trusted(_)) && tail.admit(&page.view).is_ok();
    (!trusted).then(|| Observation::Looked(capture.clone()))
}
