//! What the engine is given: the ledger's ports, pipelines and settings.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use truekeep_core::compare::Owns;
use truekeep_core::follow::{SourceWentBack, Terms};
use truekeep_core::limits;
use truekeep_core::ports::{
    Capture, Clock, Consumer, Entropy, Feed, Items, Leases, Ledger, Records, Sink, Spill,
};
use truekeep_core::retry::RetryPolicy;
use truekeep_core::{Fingerprint, RulesNumber, ScopeId};

/// The ports that all pipelines of a worker share.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Runs, rules and checkpoints.
    pub ledger: Arc<dyn Ledger>,
    /// Who may try.
    pub leases: Arc<dyn Leases>,
    /// Deliveries that did not go straight through.
    pub items: Arc<dyn Items>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Room on disk for what does not fit in memory.
    pub spill: Arc<dyn Spill>,
}

/// A feed, its projection and its sink, under rules.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// The part of it that is worked on.
    pub scope: ScopeId,
    /// The hash of its rules; a worker whose hash is not the ledger's takes no lease.
    pub fingerprint: Fingerprint,
    /// The full text of its rules.
    pub rules: String,
    /// The changes.
    pub feed: Arc<dyn Feed>,
    /// The records.
    pub records: Arc<dyn Records>,
    /// What records changes.
    pub capture: Arc<dyn Capture>,
    /// The derived store.
    pub sink: Arc<dyn Sink>,
    /// How often both sides are held against each other by itself; `None`: only when there is a
    /// reason.
    pub reconcile_every: Option<Duration>,
    /// Which entries of the sink it answers for.
    pub owns: Owns,
    /// The most records that a rebuild sends in a second; none: as many as the sink takes.
    pub rate_max: Option<NonZeroU32>,
    /// What to do about a source that went back.
    pub source_went_back: SourceWentBack,
}

/// How a worker works.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The length of a lease.
    pub lease_ttl: Duration,
    /// The most rows of a page when nothing is known yet; it adapts from there.
    pub page_rows: u32,
    /// The most bytes of the documents of a batch.
    pub page_bytes: usize,
    /// The memory that a listing without an order is sorted in.
    pub sort_bytes: usize,
    /// When trouble of a whole turn is tried again.
    pub trouble: RetryPolicy,
    /// When a failed delivery of one record is tried again, and how often.
    pub delivery: RetryPolicy,
    /// How often a moving cursor is acknowledged in the source.
    pub register_every: Duration,
    /// How often a halted scope looks again.
    pub halted_recheck: Duration,
    /// How often an idle scope looks at the source's change counter.
    pub poll_every: Duration,
    /// How often an idle scope reads its ledger row and the feed whatever the counter says.
    pub idle_every: Duration,
    /// How long a turn may take before its scope is left out of the renewal.
    pub turn_max: Duration,
    /// How many turns run at once.
    pub turns_at_once: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ttl: limits::LEASE_TTL,
            page_rows: limits::PAGE_ROWS,
            page_bytes: limits::PAGE_BYTES,
            sort_bytes: limits::SORT_BYTES,
            trouble: RetryPolicy::DELIVERY,
            delivery: RetryPolicy::DELIVERY,
            register_every: limits::REGISTER_EVERY,
            halted_recheck: limits::HALTED_RECHECK,
            poll_every: limits::POLL_EVERY,
            idle_every: limits::IDLE_EVERY,
            turn_max: limits::TURN_MAX,
            turns_at_once: limits::SCOPES_PER_WORKER,
        }
    }
}

impl Settings {
    /// How long until the next look at the change counter of a source that has been still for so
    /// long.
    pub(crate) fn look_again_in(&self, still: Duration) -> Duration {
        still.max(limits::POLL_SOONEST).min(self.poll_every)
    }

    /// The terms of a run of follow under these settings.
    pub fn terms(
        &self,
        rules: RulesNumber,
        consumer: Consumer,
        source_went_back: SourceWentBack,
    ) -> Terms {
        Terms {
            rules,
            consumer,
            page_rows: self.page_rows,
            delivery: self.delivery,
            register_every: self.register_every,
            halted_recheck: self.halted_recheck,
            source_went_back,
        }
    }
}
