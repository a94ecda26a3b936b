//! Performing a command: the one place where decisions of follow become calls of ports.

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::{Command, Delivered, Failed, Observation, Opened, PageSeen, Tail};
use truekeep_core::guard::Lost;
use truekeep_core::limits;
use truekeep_core::ports::{
    Body, Change, ChangePage, Delivery, Item, ItemKind, Loaded, Mark, Settle,
};
use truekeep_core::{Attempt, Rank, Version};

use crate::delivery::{Courier, Fate};
use crate::read_ahead::{Part, ReadAhead, Reading};
use crate::scope::{Held, Runner};

/// A fact, and how many records were sent for it.
#[derive(Debug)]
pub(crate) struct Performed {
    pub seen: Observation,
    pub records: u64,
    pub failed: u64,
    /// The newest version of the feed, when the feed was read.
    pub newest: Option<Version>,
}

/// Why a command could not be performed.
#[derive(Debug)]
pub(crate) enum Setback {
    /// A port is in trouble.
    Trouble(PortError),
    /// A race was lost.
    Lost(Lost),
}

impl From<PortError> for Setback {
    fn from(error: PortError) -> Self {
        Self::Trouble(error)
    }
}

impl Performed {
    pub fn fact(seen: Observation) -> Self {
        Self { seen, records: 0, failed: 0, newest: None }
    }
}

impl Runner {
    /// Performs a command.
    ///
    /// # Errors
    /// Trouble of a port; the same command may be performed again.
    pub(crate) async fn perform(
        &self,
        held: &mut Held,
        command: Command,
    ) -> Result<Performed, Setback> {
        Ok(match command {
            Command::Open => self.open(held).await?,
            Command::Register(registration) => {
                self.pipeline.feed.register(&held.terms.consumer, registration).await?;
                self.prune().await?;
                Performed::fact(Observation::Registered(registration))
            }
            Command::Arm => Performed::fact(Observation::Armed),
            Command::Deliver { after, rows_max } => match self.due_items(held).await? {
                Some(items) => self.redeliver(held, items).await?,
                None => self.page(held, after, rows_max).await?,
            },
            Command::Isolate { after } => self.isolate(held, after).await?,
        })
    }

    /// Removes tombstones that everybody has passed, in a bounded number of short transactions.
    async fn prune(&self) -> Result<(), PortError> {
        const ROUNDS: u32 = 20;
        for _ in 0..ROUNDS {
            if self.pipeline.feed.prune().await? == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn open(&self, held: &mut Held) -> Result<Performed, PortError> {
        held.reader = None;
        self.pipeline.sink.prepare().await?;
        let mark = self.pipeline.sink.mark().await?;
        let none = Version::new(u64::MAX);
        let page = self.pipeline.feed.changes(&held.terms.consumer, none, 1).await?;
        let newest = Some(page.view.newest);
        let seen = Observation::Opened(Opened { view: page.view, mark });
        Ok(Performed { newest, ..Performed::fact(seen) })
    }

    /// Items that are due, claimed; every other turn is the feed's, so that neither starves.
    async fn due_items(&self, held: &mut Held) -> Result<Option<Vec<Item>>, Setback> {
        let now = held.now(self.ports.clock.as_ref());
        let early = held.items_checked.is_some_and(|next| next.is_none_or(|due| due > now));
        if held.tally.unsettled == 0 || early || held.feeds_turn {
            held.feeds_turn = false;
            return Ok(None);
        }
        let claimed = self
            .ports
            .items
            .claim(&held.scope, &held.guard(), limits::ITEMS_PER_CLAIM)
            .await?
            .map_err(Setback::Lost)?;
        if claimed.is_empty() {
            let pulse = self.ports.ledger.pulse(&held.scope, held.procedure).await?;
            held.items_checked = Some(pulse.and_then(|pulse| pulse.next_due));
            return Ok(None);
        }
        held.items_checked = None;
        held.feeds_turn = true;
        Ok(Some(claimed))
    }

    async fn redeliver(&self, held: &mut Held, items: Vec<Item>) -> Result<Performed, PortError> {
        let keys: Vec<_> = items.iter().map(|item| item.key.clone()).collect();
        // S1: versions before documents.
        let present = self.pipeline.feed.find(&keys).await?;
        let mut loaded = Vec::with_capacity(keys.len());
        while loaded.len() < keys.len() {
            let more =
                self.pipeline.records.load(&keys[loaded.len()..], self.settings.page_bytes).await?;
            if more.is_empty() {
                break;
            }
            loaded.extend(more);
        }
        let mut shipment = Shipment::default();
        for ((item, change), loaded) in items.into_iter().zip(present).zip(loaded) {
            if item.attempts > held.terms.delivery.attempts_max {
                let reason = "workers died while they delivered it".to_owned();
                shipment.fail(
                    &item_change(&item),
                    item.attempts,
                    false,
                    Code::KILLS_WORKER,
                    reason,
                );
                continue;
            }
            let known = change.unwrap_or_else(|| item_change(&item));
            shipment.add(known, loaded, held.terms.rules, item.attempts);
        }
        let tail = tail_of(held)?.clone();
        let (delivered, records) = self.ship(held, &tail, shipment, true).await?;
        let failed = delivered.failed.len() as u64;
        Ok(Performed { records, failed, ..Performed::fact(Observation::Redelivered(delivered)) })
    }

    async fn page(
        &self,
        held: &mut Held,
        after: Version,
        rows_max: u32,
    ) -> Result<Performed, PortError> {
        // A bound below the terms' comes from the search for a killer; else the page adapts.
        let rows = if rows_max < held.terms.page_rows { rows_max } else { held.rows };
        let mut reader = match held.reader.take() {
            Some(reader) if reader.continues(after) => {
                reader.resize(rows);
                reader
            }
            Some(_) | None => ReadAhead::begin(self.reading(held), after, rows),
        };
        let tail = tail_of(held)?.clone();
        let head = match reader.part().await? {
            Some(Part::Head(head)) => head,
            Some(Part::Rows(_) | Part::Whole) | None => {
                // The reader had come to its end: read anew.
                reader = ReadAhead::begin(self.reading(held), after, rows);
                match reader.part().await? {
                    Some(Part::Head(head)) => head,
                    Some(Part::Rows(_) | Part::Whole) | None => return Err(out_of_step()),
                }
            }
        };
        let (mut delivered, mut records) = (Delivered::default(), 0);
        // F2: nothing is sent from a source that went back; the machine halts on the same view.
        if tail.admit(&head.view).is_ok() {
            loop {
                match reader.part().await? {
                    Some(Part::Rows(rows)) => {
                        let mut shipment = Shipment::default();
                        for (change, loaded) in rows {
                            shipment.add(change, loaded, held.terms.rules, 1);
                        }
                        let tally = held.tally;
                        let with_items = tally.parked + tally.unsettled > 0;
                        let (part, sent) = self.ship(held, &tail, shipment, with_items).await?;
                        merge(&mut delivered, part);
                        records += sent;
                    }
                    Some(Part::Whole) => break,
                    Some(Part::Head(_)) | None => return Err(out_of_step()),
                }
            }
            if !head.end {
                held.reader = Some(reader);
            }
        }
        let failed = delivered.failed.len() as u64;
        let ChangePage { next, moment, view, .. } = head;
        let newest = Some(view.newest);
        let seen = Observation::Page(PageSeen { next, moment, view, delivered });
        Ok(Performed { seen, records, failed, newest })
    }

    async fn isolate(&self, held: &mut Held, after: Version) -> Result<Performed, PortError> {
        held.reader = None;
        let page = self.pipeline.feed.changes(&held.terms.consumer, after, 1).await?;
        let row = page.changes.into_iter().next().map(|change| {
            let mut shipment = Shipment::default();
            let reason = "workers died each time while they delivered it".to_owned();
            shipment.fail(&change, 1, false, Code::KILLS_WORKER, reason);
            (shipment.failed, page.next)
        });
        let row = row.and_then(|(failed, next)| failed.into_iter().next().map(|f| (f, next)));
        let failed = u64::from(row.is_some());
        Ok(Performed { failed, ..Performed::fact(Observation::Isolated(row)) })
    }

    fn reading(&self, held: &Held) -> Reading {
        Reading {
            feed: Arc::clone(&self.pipeline.feed),
            records: Arc::clone(&self.pipeline.records),
            consumer: held.terms.consumer.clone(),
            bytes_max: self.settings.page_bytes,
        }
    }

    /// Sends a shipment and sorts what became of it.
    async fn ship(
        &self,
        held: &Held,
        tail: &Tail,
        shipment: Shipment,
        with_items: bool,
    ) -> Result<(Delivered, u64), PortError> {
        let Shipment { deliveries, attempts, mut failed } = shipment;
        let names: Vec<_> =
            deliveries.iter().map(|d| (d.key.clone(), d.rank.version, kind_of(&d.body))).collect();
        let records = deliveries.len() as u64;
        let mark = Mark {
            ledger: held.terms.consumer.ledger.clone(),
            pipeline: held.terms.consumer.pipeline.clone(),
            rules: held.terms.rules,
            fence: held.lease.fence,
            number: tail.mark.next(),
        };
        let ours = || self.keeper.holds(&held.lease.token);
        let courier = Courier {
            sink: self.pipeline.sink.as_ref(),
            feed: self.pipeline.feed.as_ref(),
            clock: self.ports.clock.as_ref(),
            mark,
            batch_bytes: self.settings.page_bytes,
            ours: &ours,
            pending_poll: self.settings.poll_every,
        };
        let fates = courier.deliver(deliveries).await?;
        let mut delivered = Delivered { sent: records > 0, ..Delivered::default() };
        for (((key, version, kind), attempts), fate) in names.into_iter().zip(attempts).zip(fates) {
            let mut fail = |retryable, code, reason, key| {
                let draw = self.ports.entropy.draw();
                failed.push(Failed { key, version, kind, attempts, retryable, code, reason, draw });
            };
            match fate {
                Fate::Done if with_items => delivered.settled.push(Settle { key, version }),
                Fate::Done => {}
                Fate::Refused(code, reason) => fail(false, code, reason, key),
                Fate::Retry(code, reason) => fail(true, code, reason, key),
                Fate::Ahead => delivered.ahead = Some(key),
                Fate::Outruled => {
                    return Err(PortError::new(
                        "send a batch",
                        FailureClass::Fenced,
                        Code::SINK_FENCED,
                    )
                    .detail("the sink was written under newer rules"));
                }
            }
        }
        delivered.failed = failed;
        Ok((delivered, records))
    }
}

/// Records on their way to the sink.
#[derive(Debug, Default)]
struct Shipment {
    deliveries: Vec<Delivery>,
    attempts: Vec<Attempt>,
    failed: Vec<Failed>,
}

impl Shipment {
    fn add(
        &mut self,
        change: Change,
        loaded: Loaded,
        rules: truekeep_core::RulesNumber,
        attempts: Attempt,
    ) {
        let body = match loaded {
            Loaded::Live(document) => Body::Upsert(Arc::new(document)),
            Loaded::Absent => Body::Delete,
            Loaded::Unloadable(code, reason) => {
                return self.fail(&change, attempts, false, code, reason);
            }
        };
        let rank = Rank { rules, version: change.version };
        self.deliveries.push(Delivery { key: change.key, rank, body });
        self.attempts.push(attempts);
    }

    fn fail(
        &mut self,
        change: &Change,
        attempts: Attempt,
        retryable: bool,
        code: Code,
        reason: String,
    ) {
        let kind = if change.deleted { ItemKind::Delete } else { ItemKind::Upsert };
        self.failed.push(Failed {
            key: change.key.clone(),
            version: change.version,
            kind,
            attempts,
            retryable,
            code,
            reason: limits::bounded(&reason).to_owned(),
            draw: 0.0,
        });
    }
}

fn merge(into: &mut Delivered, part: Delivered) {
    into.settled.extend(part.settled);
    into.failed.extend(part.failed);
    into.sent |= part.sent;
    into.ahead = part.ahead.or(into.ahead.take());
}

/// What an item wants, where the feed has no row for its key any more.
fn item_change(item: &Item) -> Change {
    Change { key: item.key.clone(), version: item.version, deleted: item.kind == ItemKind::Delete }
}

fn kind_of(body: &Body) -> ItemKind {
    match body {
        Body::Upsert(_) => ItemKind::Upsert,
        Body::Delete => ItemKind::Delete,
    }
}

fn tail_of(held: &Held) -> Result<&Tail, PortError> {
    held.phase.tail().ok_or_else(out_of_step)
}

fn out_of_step() -> PortError {
    PortError::new("read the feed", FailureClass::Retry, Code::UNEXPECTED)
        .detail("the reader and the run are out of step")
}
