//! Performing a command: the one place where decisions of follow become calls of ports.

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::{Command, Delivered, Failed, Observation, Opened, PageSeen, Tail};
use truekeep_core::guard::Lost;
use truekeep_core::limits;
use truekeep_core::ports::{
    Body, Change, ChangePage, Consumer, Delivery, Denied, ItemKind, Loaded, Mark, RunHealth, Settle,
};
use truekeep_core::{Attempt, Moment, Place, Rank};

use crate::delivery::{Courier, Fate, Sent};
use crate::read_ahead::{Part, ReadAhead, Reading};
use crate::scope::{Held, Runner};

/// A fact, and how many records were sent for it.
#[derive(Debug)]
pub(crate) struct Performed {
    pub seen: Observation,
    pub records: u64,
    pub failed: u64,
    /// The newest version of the feed, when the feed was read.
    pub newest: Option<Moment>,
    /// What the run says of its health with it.
    pub health: RunHealth,
    /// Whether the feed has more to come that this read could not reach.
    pub more: bool,
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
        let health = RunHealth::default();
        Self { seen, records: 0, failed: 0, newest: None, health, more: false }
    }

    /// The same, with this health.
    pub fn ailing(self, health: RunHealth) -> Self {
        Self { health, ..self }
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
                let registration = match &held.pass {
                    Some(pass) => pass.keep_back(registration),
                    None => registration,
                };
                // F2: what was read ahead speaks of the acknowledgement before.
                held.reader = None;
                self.pipeline.feed.register(&held.terms.consumer, &registration).await?;
                self.prune(held).await;
                Performed::fact(Observation::Registered(registration))
            }
            Command::BeginAgain { above } => {
                held.reader = None;
                self.pipeline.capture.begin_again(above).await?;
                Performed::fact(Observation::BegunAgain)
            }
            Command::Fill => {
                let done = self.pipeline.capture.fill().await?.done;
                Performed::fact(Observation::Filled { done })
            }
            Command::Arm => Performed::fact(Observation::Armed),
            Command::Deliver { after, rows_max } => {
                if self.claim_items(held).await? {
                    self.redeliver(held).await?
                } else {
                    self.page(held, after, rows_max).await?
                }
            }
            Command::Isolate { after } => self.isolate(held, after).await?,
        })
    }

    /// Removes what nobody needs from the feed, in short transactions, the more the more was
    /// delivered. Trouble is left for the next time.
    async fn prune(&self, held: &mut Held) {
        let calls = 1 + std::mem::take(&mut held.unpruned) / limits::PRUNED_PER_CALL;
        held.littered = true;
        for _ in 0..calls.min(limits::PRUNE_CALLS_MAX) {
            match self.prune_once().await {
                Some(true) => {}
                Some(false) => {
                    held.littered = false;
                    break;
                }
                None => break,
            }
        }
    }

    /// Whether something may be left; none if there was trouble.
    pub(crate) async fn prune_once(&self) -> Option<bool> {
        let pruned = self.pipeline.feed.prune().await;
        pruned
            .inspect_err(|error| {
                let (code, text) = (&error.code, error.chain());
                // Such as a source that has better things to do.
                if error.class == FailureClass::Retry {
                    tracing::debug!(%code, error = text, "prune");
                } else {
                    tracing::warn!(%code, error = text, "prune");
                }
            })
            .ok()
            .map(|pruned| pruned > 0)
    }

    async fn open(&self, held: &mut Held) -> Result<Performed, PortError> {
        held.reader = None;
        self.pipeline.sink.prepare().await?;
        let mark = self.pipeline.sink.mark().await?;
        let Consumer { ledger, pipeline } = &held.terms.consumer;
        let known = mark.as_ref().map(|mark| mark.batch_before(ledger, pipeline));
        held.batches.taken = known.unwrap_or_default();
        let at = held.cursor().cloned().unwrap_or_default();
        let view = self.pipeline.feed.view(&held.terms.consumer, &at).await?;
        let newest = Some(view.newest.clone());
        let seen = Observation::Opened(Opened { view, mark });
        Ok(Performed { newest, ..Performed::fact(seen) })
    }

    async fn page(
        &self,
        held: &mut Held,
        after: Place,
        rows_max: u32,
    ) -> Result<Performed, PortError> {
        // The search for a killer sets a bound; else the page adapts.
        let probing = tail_of(held)?.probe.is_some();
        let rows = if probing { rows_max } else { held.rows };
        let mut reader = match held.reader.take() {
            Some(reader) if reader.continues(&after) => {
                reader.resize(rows);
                reader
            }
            Some(_) | None => ReadAhead::begin(self.reading(held), after.clone(), rows),
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
        let mut greatest = None;
        // F2: nothing is sent from a source that went back; the machine halts on the same view.
        if tail.admit(&head.view).is_ok() {
            loop {
                match reader.part().await? {
                    Some(Part::Rows(rows)) => {
                        let mut shipment = Shipment::default();
                        for (change, loaded) in rows {
                            greatest = greatest.max(Some(change.version));
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
            if !head.end && !probing {
                held.reader = Some(reader);
            }
            if records == 0 {
                self.witness(held, &tail).await?;
            }
        }
        let failed = delivered.failed.len() as u64;
        let ChangePage { next, end, moment, view, .. } = *head;
        // What is still to come into the feed is asked for at once.
        let more = !end || moment.as_ref() != Some(&view.newest);
        let newest = Some(view.newest.clone());
        let seen = Observation::Page(PageSeen { next, newest: greatest, moment, view, delivered });
        Ok(Performed { records, failed, newest, more, ..Performed::fact(seen) })
    }

    /// F2: what sends nothing asks the sink nothing, so a sink that was restored or taken over is
    /// looked for. The answer is the one that a batch would get.
    async fn witness(&self, held: &Held, tail: &Tail) -> Result<(), PortError> {
        if !self.pipeline.sink.capabilities().marked {
            return Ok(());
        }
        let (found, ours) = (self.pipeline.sink.mark().await?, mark(held, tail));
        let taken = held.batches.taken;
        Mark::after(found.as_ref(), &ours, taken)?;
        let known = |found: &Mark| found.batch_before(&ours.ledger, &ours.pipeline);
        let last = found.as_ref().map(known).unwrap_or_default();
        // One that was lost is of another backup than the one that was gone on with.
        if last.number > taken.number && last.number <= tail.sent {
            return Err(Denied::WentBack(last).into());
        }
        Ok(())
    }

    async fn isolate(&self, held: &mut Held, after: Place) -> Result<Performed, PortError> {
        held.reader = None;
        let page = self.pipeline.feed.changes(&held.terms.consumer, &after, 1).await?;
        let delivered = killers(&page.changes);
        let failed = delivered.failed.len() as u64;
        let ChangePage { next, view, .. } = page;
        let seen = PageSeen { next, newest: None, moment: None, view, delivered };
        Ok(Performed { failed, ..Performed::fact(Observation::Isolated(seen)) })
    }

    pub(crate) fn reading(&self, held: &Held) -> Reading {
        Reading {
            feed: Arc::clone(&self.pipeline.feed),
            records: Arc::clone(&self.pipeline.records),
            consumer: held.terms.consumer.clone(),
            bytes_max: self.settings.page_bytes,
            // F3: a death is the fault of the page that was announced, not of one read ahead.
            ahead: held.phase.tail().is_none_or(|tail| tail.probe.is_none()),
        }
    }

    /// Sends a shipment and sorts what became of it.
    pub(crate) async fn ship(
        &self,
        held: &mut Held,
        tail: &Tail,
        shipment: Shipment,
        with_items: bool,
    ) -> Result<(Delivered, u64), PortError> {
        let Shipment { deliveries, attempts, mut failed } = shipment;
        let names: Vec<_> =
            deliveries.iter().map(|d| (d.key.clone(), d.rank.version, kind_of(&d.body))).collect();
        let records = deliveries.len() as u64;
        let mark = mark(held, tail);
        let (grip, batches) = (&held.grip, &mut held.batches);
        let ours = || grip.holds();
        let courier = Courier {
            sink: self.pipeline.sink.as_ref(),
            feed: self.pipeline.feed.as_ref(),
            clock: self.ports.clock.as_ref(),
            mark,
            batch_bytes: self.settings.page_bytes,
            ours: &ours,
            pending_poll: self.settings.poll_every,
        };
        let Sent { fates, mark } = courier.deliver(deliveries, batches).await?;
        let mut delivered = Delivered { mark, ..Delivered::default() };
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
pub(crate) struct Shipment {
    deliveries: Vec<Delivery>,
    attempts: Vec<Attempt>,
    pub failed: Vec<Failed>,
}

impl Shipment {
    pub fn add(
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

    /// The removal of an entry that no record can be, at the rank it was listed with.
    pub fn remove(&mut self, key: truekeep_core::Key, rank: Rank) {
        self.deliveries.push(Delivery { key, rank, body: Body::Delete });
        self.attempts.push(1);
    }

    pub fn fail(
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

/// Records that are not sent any more.
pub(crate) fn killers(changes: &[Change]) -> Delivered {
    let mut shipment = Shipment::default();
    for change in changes {
        let reason = "workers died each time while they delivered it".to_owned();
        shipment.fail(change, 1, false, Code::KILLS_WORKER, reason);
    }
    Delivered { failed: shipment.failed, ..Delivered::default() }
}

pub(crate) fn merge(into: &mut Delivered, part: Delivered) {
    into.settled.extend(part.settled);
    into.failed.extend(part.failed);
    into.mark = into.mark.max(part.mark);
    into.ahead = part.ahead.or(into.ahead.take());
}

fn kind_of(body: &Body) -> ItemKind {
    match body {
        Body::Upsert(_) => ItemKind::Upsert,
        Body::Delete => ItemKind::Delete,
    }
}

pub(crate) fn tail_of(held: &Held) -> Result<&Tail, PortError> {
    held.phase.tail().ok_or_else(out_of_step)
}

/// The mark of this holder after the last batch that is known to be confirmed.
fn mark(held: &Held, tail: &Tail) -> Mark {
    Mark {
        ledger: held.terms.consumer.ledger.clone(),
        pipeline: held.terms.consumer.pipeline.clone(),
        rules: held.terms.rules,
        fence: held.lease.fence,
        number: tail.sent,
        removed: false,
    }
}

fn out_of_step() -> PortError {
    PortError::new("read the feed", FailureClass::Retry, Code::UNEXPECTED)
        .detail("the reader and the run are out of step")
}
