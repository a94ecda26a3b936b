//! Removing a pipeline: its holders are fenced out, the sink gets a headstone, the source forgets
//! who read it, and the ledger forgets the rest.
//!
//! Each step is harmless when repeated, and from the first on the ledger says what is under way; so
//! a removal that was cut short anywhere is begun again and does what is left.
//!
//! Order: the ledger is closed first, so that nobody begins anything. The sink's mark becomes a
//! headstone at once, which keeps out what a cut-off holder still sends wherever marks are checked.
//! Only when nothing of such a holder can be under way any more is the sink emptied, twice, and the
//! source told to forget. The name is free with the last row of the ledger.

use truekeep_core::code::Code;
use truekeep_core::compare::Owns;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::POLL_EVERY;
use truekeep_core::ports::{
    Batch, Body, Capture, Clock, Confirmation, Consumer, Delivery, Entry, Feed, Ledger, Mark,
    Operations, Outcome, PipelineRecord, PipelineState, Removal, Removing, Sink,
};
use truekeep_core::retry::RetryPolicy;
use truekeep_core::{Fence, MarkNumber, RulesNumber, Timestamp};

/// Entries of one page while the sink is emptied, and items of one part of the ledger.
const PAGE: u32 = 1_000;

/// How often the sink is looked through until nothing is found. Once more than twice is needed only
/// if something else writes it.
const PASSES_MAX: u32 = 5;

/// Removes a pipeline.
#[derive(Debug)]
pub struct Remover<'p> {
    /// Says who the ledger is, and what time it is.
    pub ledger: &'p dyn Ledger,
    /// Knows how far the removal is.
    pub operations: &'p dyn Operations,
    /// Waits.
    pub clock: &'p dyn Clock,
    /// The source's side; none if it is gone for good.
    pub source: Option<(&'p dyn Feed, &'p dyn Capture)>,
    /// The sink; none if it is gone for good.
    pub sink: Option<&'p dyn Sink>,
    /// What of the sink is the pipeline's, and goes when it is emptied.
    pub owns: Owns,
    /// Whether another pipeline of the configuration reads the same feed, registered or not.
    pub shared: bool,
}

/// What goes on, for whoever shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nobody works on it any more; what a former holder has under way may arrive until then.
    Waiting(Timestamp),
    /// So many entries of the sink were removed so far.
    Emptied(u64),
}

/// What became of a pipeline that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Of its sink.
    pub sink: SinkEnd,
    /// Of its source.
    pub source: SourceEnd,
}

/// What became of the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkEnd {
    /// It was left out.
    LeftOut,
    /// This pipeline never wrote it, or somebody has dropped or emptied it.
    Unwritten,
    /// It belongs to another pipeline or ledger, and was left alone.
    Foreign,
    /// It keeps its records, and says that their pipeline was removed.
    Kept,
    /// So many entries were removed, and there are none left.
    Emptied(u64),
}

/// What became of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceEnd {
    /// It was left out.
    LeftOut,
    /// It has forgotten the pipeline; others read the feed.
    Forgotten,
    /// Nobody reads the feed any more, so capture was taken out.
    Uncaptured,
}

/// Who is removed, as the source and the sink know it.
#[derive(Debug)]
struct Life {
    consumer: Consumer,
    /// The last rules that were announced.
    rules: RulesNumber,
}

impl Remover<'_> {
    /// Removes the pipeline, or goes on with its removal; `None` if this life of it is gone
    /// already. `told` hears how far it is.
    ///
    /// # Errors
    /// Those of the ports, after some tries where that may help. Run it again: it goes on.
    pub async fn run(
        &self,
        order: &Removal,
        mut told: impl FnMut(Progress),
    ) -> Result<Option<Gone>, PortError> {
        let closed = self.patiently(|| self.operations.remove(order)).await?;
        let Some(record) = closed else { return Ok(None) };
        let removing = under_way(&record)?;
        let ledger = self.patiently(|| self.ledger.identity()).await?;
        let consumer = Consumer { ledger, pipeline: record.incarnation.clone() };
        let life = Life { consumer, rules: record.rules.number };
        self.bury(&life).await?;
        self.wait_until(removing.quiet_at, &mut told).await?;
        // A first batch may have come meanwhile.
        let mut sink = self.bury(&life).await?;
        if sink == SinkEnd::Kept && removing.purge {
            sink = SinkEnd::Emptied(self.empty(&life, &mut told).await?);
        }
        let source = self.leave(order, &life).await?;
        let (name, incarnation) = (&order.pipeline, &order.incarnation);
        while !self.patiently(|| self.operations.drop_part(name, incarnation, PAGE)).await? {}
        Ok(Some(Gone { sink, source }))
    }

    /// Trouble that may pass is waited out for a while.
    async fn patiently<T, F>(&self, call: impl Fn() -> F) -> Result<T, PortError>
    where
        F: Future<Output = Result<T, PortError>>,
    {
        const POLICY: RetryPolicy = RetryPolicy::DELIVERY;
        let mut failures = 0;
        loop {
            match call().await {
                Err(error)
                    if matches!(error.class, FailureClass::Retry | FailureClass::Unknown)
                        && failures + 1 < POLICY.attempts_max =>
                {
                    tracing::warn!(code = %error.code, error = error.chain(), "removal");
                    self.clock.sleep(POLICY.delay(failures, 0.5)).await;
                    failures += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn wait_until(
        &self,
        quiet_at: Timestamp,
        told: &mut impl FnMut(Progress),
    ) -> Result<(), PortError> {
        let mut left = quiet_at.since(self.patiently(|| self.ledger.now()).await?);
        if !left.is_zero() {
            told(Progress::Waiting(quiet_at));
        }
        // The ledger's clock decides, and may not go as ours does.
        while !left.is_zero() {
            self.clock.sleep(left).await;
            left = quiet_at.since(self.patiently(|| self.ledger.now()).await?);
        }
        Ok(())
    }

    /// Makes the sink's mark a headstone, if this pipeline wrote the sink.
    async fn bury(&self, life: &Life) -> Result<SinkEnd, PortError> {
        let Some(sink) = self.sink else { return Ok(SinkEnd::LeftOut) };
        let Some(held) = self.mark(sink, life).await? else { return Ok(SinkEnd::Unwritten) };
        if !held.is_of(&life.consumer.ledger, &life.consumer.pipeline) {
            return Ok(SinkEnd::Foreign);
        }
        if !held.removed {
            self.send(sink, held, life, &[]).await?;
        }
        Ok(SinkEnd::Kept)
    }

    /// The sink's mark; of one that keeps none what it would be, had it been buried.
    async fn mark(&self, sink: &dyn Sink, life: &Life) -> Result<Option<Mark>, PortError> {
        if sink.capabilities().marked {
            return self.patiently(|| sink.mark()).await;
        }
        let Consumer { ledger, pipeline } = life.consumer.clone();
        let (fence, number) = (Fence::default(), MarkNumber::default());
        Ok(Some(Mark { ledger, pipeline, rules: life.rules, fence, number, removed: true }))
    }

    /// Removes what is ours of what the sink lists until it lists nothing of ours, and returns how
    /// much that was.
    async fn empty(&self, life: &Life, told: &mut impl FnMut(Progress)) -> Result<u64, PortError> {
        const OPERATION: &str = "empty the sink";
        let Some(sink) = self.sink else { return Ok(0) };
        let mut removed = 0;
        for pass in 0..PASSES_MAX {
            let mut after = None;
            let before = removed;
            loop {
                let page = self.patiently(|| sink.list(after.clone(), PAGE)).await?;
                if page.entries.is_empty() && !page.end {
                    let class = FailureClass::Terminal;
                    return Err(PortError::new(OPERATION, class, Code::UNEXPECTED)
                        .detail("its listing neither ended nor went on"));
                }
                let last = page.entries.last().map(|entry| entry.key.clone());
                let ours = |entry: &Entry| self.owns == Owns::All || entry.rank.is_some();
                let entries: Vec<_> = page.entries.into_iter().filter(ours).collect();
                if !entries.is_empty() {
                    // Whoever has emptied it past us left nothing to do.
                    let Some(held) = self.mark(sink, life).await? else { return Ok(removed) };
                    self.send(sink, held, life, &entries).await?;
                }
                removed += entries.len() as u64;
                told(Progress::Emptied(removed));
                after = last.or(after);
                if page.end {
                    break;
                }
            }
            if pass > 0 && removed == before {
                return Ok(removed);
            }
            self.clock.sleep(sink.capabilities().listing_lag).await;
        }
        let error = PortError::new(OPERATION, FailureClass::Halted, Code::NON_CONVERGENT);
        Err(error.detail("something else writes it"))
    }

    /// Removes entries under the headstone that follows this mark.
    async fn send(
        &self,
        sink: &dyn Sink,
        held: Mark,
        life: &Life,
        entries: &[Entry],
    ) -> Result<(), PortError> {
        let (follows, number) = (held.batch(), held.number.next());
        // What was announced and never delivered counts as well: whoever comes next is above it.
        let rules = held.rules.max(life.rules);
        let mark = Mark { rules, number, removed: true, ..held };
        let deliveries: Vec<_> = entries
            .iter()
            .map(|entry| Delivery {
                key: entry.key.clone(),
                // At the rank that was listed, so that a later write would stay and be listed next.
                rank: entry.rank.unwrap_or_default(),
                body: Body::Delete,
            })
            .collect();
        self.patiently(|| async {
            let batch = Batch { mark: mark.clone(), follows, deliveries: deliveries.clone() };
            let applied = sink.apply(batch).await?;
            while sink.confirm(&applied.receipt).await? == Confirmation::Pending {
                self.clock.sleep(POLL_EVERY).await;
            }
            match applied.outcomes.into_iter().zip(entries).find_map(refusal) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
        .await
    }

    /// Makes the source forget this pipeline, and takes capture out with the last one.
    async fn leave(&self, order: &Removal, life: &Life) -> Result<SourceEnd, PortError> {
        let Some((feed, capture)) = self.source else { return Ok(SourceEnd::LeftOut) };
        self.patiently(|| feed.forget(&life.consumer)).await?;
        let report = self.patiently(|| capture.verify()).await?;
        if self.shared || report.consumers > 0 {
            return Ok(SourceEnd::Forgotten);
        }
        // Kept before it is gone: a feed that is made later begins above it.
        let learned = Removal { newest: report.newest, ..order.clone() };
        let still = self.patiently(|| self.operations.remove(&learned)).await?;
        if still.is_none() {
            // Somebody else ended the removal; what is there now may be a new life's.
            return Ok(SourceEnd::Forgotten);
        }
        self.patiently(|| capture.remove()).await?;
        Ok(SourceEnd::Uncaptured)
    }
}

fn under_way(record: &PipelineRecord) -> Result<Removing, PortError> {
    match record.state {
        PipelineState::Removing(removing) => Ok(removing),
        PipelineState::Working | PipelineState::Paused => {
            let class = FailureClass::Terminal;
            Err(PortError::new("remove a pipeline", class, Code::UNEXPECTED)
                .detail("the ledger does not say that it is under way"))
        }
    }
}

/// What could not be removed.
fn refusal((outcome, entry): (Outcome, &Entry)) -> Option<PortError> {
    let (class, code, reason) = match outcome {
        Outcome::Applied | Outcome::Repeated | Outcome::Outdone(_) => return None,
        Outcome::Refused(code, reason) => (FailureClass::Halted, code, reason),
        Outcome::Retry(code, reason) => (FailureClass::Retry, code, reason),
    };
    let error = PortError::new("empty the sink", class, code);
    Some(error.detail(format!("{}: {reason}", entry.key)))
}
