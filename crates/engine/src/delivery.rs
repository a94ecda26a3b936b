//! Delivery: batches to the sink, split down to the culprit, one fate per record.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Batch, Body, Clock, Confirmation, Delivery, Feed, Mark, Outcome, Receipt, Sink,
};
use truekeep_core::{BatchName, Key, Rank, RulesNumber};

use crate::scope::Batches;

/// What became of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The sink holds it, or something at least as new that the feed knows.
    Done,
    /// The sink cannot take it.
    Refused(Code, String),
    /// The sink could not take it now.
    Retry(Code, String),
    /// The sink holds a newer version than the feed knows.
    Ahead,
    /// The sink was written under rules greater than ours.
    Outruled,
}

/// What became of the records that were sent, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub fates: Vec<Fate>,
    /// The newest batch that the sink took.
    pub mark: Option<BatchName>,
}

/// Sends batches, while the lease is ours.
pub(crate) struct Courier<'a> {
    pub sink: &'a dyn Sink,
    pub feed: &'a dyn Feed,
    pub clock: &'a dyn Clock,
    /// What the batches carry; its number is the newest that was ever known to be held.
    pub mark: Mark,
    pub batch_bytes: usize,
    /// Whether the lease is still ours: asked before each batch.
    pub ours: &'a (dyn Fn() -> bool + Sync),
    pub pending_poll: Duration,
}

impl Courier<'_> {
    /// Delivers records and returns what became of each, in order. Once it returns, what is
    /// `Done` is durable in the sink.
    ///
    /// # Errors
    /// What concerns the sink as a whole. What was sent before may have landed: a repeat is
    /// harmless.
    pub async fn deliver(
        &self,
        deliveries: Vec<Delivery>,
        batches: &mut Batches,
    ) -> Result<Sent, PortError> {
        let mut sent = Sent::default();
        // A stack of what is still to be sent, the front on top; a batch that is refused whole
        // comes back as its two halves.
        let mut waiting = cut(deliveries, self.batch_bytes);
        waiting.reverse();
        while let Some(batch) = waiting.pop() {
            match self.send(&batch, batches).await {
                Ok(fates) => {
                    sent.mark = Some(batches.taken);
                    sent.fates.extend(fates);
                }
                Err(error) if error.class == FailureClass::Terminal && batch.len() > 1 => {
                    let mut front = batch;
                    let back = front.split_off(front.len() / 2);
                    waiting.push(back);
                    waiting.push(front);
                }
                Err(error) if error.class == FailureClass::Terminal => {
                    sent.fates.push(Fate::Refused(error.code.clone(), error.chain()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    async fn send(
        &self,
        deliveries: &[Delivery],
        batches: &mut Batches,
    ) -> Result<Vec<Fate>, PortError> {
        const OPERATION: &str = "send a batch";
        if !(self.ours)() {
            return Err(PortError::new(OPERATION, FailureClass::Fenced, Code::LEASE_HELD)
                .detail("the lease ended before the batch was sent"));
        }
        let number = batches.number(self.mark.number);
        let mark = Mark { number, ..self.mark.clone() };
        let follows = batches.taken;
        let name = mark.batch();
        let batch = Batch { mark, follows, deliveries: deliveries.to_vec() };
        let applied = self.sink.apply(batch).await?;
        if applied.outcomes.len() != deliveries.len() {
            return Err(PortError::new(OPERATION, FailureClass::Unknown, Code::UNEXPECTED)
                .detail("the sink did not answer for each record"));
        }
        self.confirm(&applied.receipt).await?;
        // Not before: a sink that stops at once may lose what it has not confirmed.
        batches.taken = name;
        self.judge(deliveries, applied.outcomes).await
    }

    async fn confirm(&self, receipt: &Receipt) -> Result<(), PortError> {
        loop {
            match self.sink.confirm(receipt).await? {
                Confirmation::Confirmed => return Ok(()),
                Confirmation::Pending => self.clock.sleep(self.pending_poll).await,
            }
        }
    }

    /// "The sink holds something greater" is success only if the feed, read again, is at least as
    /// great under the rules in force.
    async fn judge(
        &self,
        deliveries: &[Delivery],
        outcomes: Vec<Outcome>,
    ) -> Result<Vec<Fate>, PortError> {
        let outdone: Vec<Key> = deliveries
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| matches!(outcome, Outcome::Outdone(_)))
            .map(|(delivery, _)| delivery.key.clone())
            .collect();
        let mut present =
            if outdone.is_empty() { Vec::new() } else { self.feed.find(&outdone).await? }
                .into_iter();
        let rules = self.mark.rules;
        let fates = outcomes.into_iter().map(|outcome| match outcome {
            Outcome::Applied | Outcome::Repeated => Fate::Done,
            Outcome::Refused(code, reason) => Fate::Refused(code, reason),
            Outcome::Retry(code, reason) => Fate::Retry(code, reason),
            Outcome::Outdone(found) => {
                let version = present.next().flatten().map(|change| change.version);
                outdone_fate(found, rules, version.is_some_and(|v| v >= found.version))
            }
        });
        Ok(fates.collect())
    }
}

fn outdone_fate(found: Rank, rules: RulesNumber, feed_knows: bool) -> Fate {
    if found.rules > rules {
        Fate::Outruled
    } else if feed_knows {
        Fate::Done
    } else {
        Fate::Ahead
    }
}

/// Cuts deliveries into batches of at most so many bytes of documents; one record is never cut.
fn cut(deliveries: Vec<Delivery>, bytes_max: usize) -> Vec<Vec<Delivery>> {
    let mut whole = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0usize);
    for delivery in deliveries {
        let size = match &delivery.body {
            Body::Upsert(document) => document.bytes(),
            Body::Delete => 0,
        };
        if !batch.is_empty() && bytes.saturating_add(size) > bytes_max {
            whole.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes = bytes.saturating_add(size);
        batch.push(delivery);
    }
    if !batch.is_empty() {
        whole.push(batch);
    }
    whole
}

#[cfg(test)]
mod tests;
