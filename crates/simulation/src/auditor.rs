//! The auditor: watches every write of every store and holds it against the invariants.
//!
//! Invariants: L1, L2, L3, G1, S3, C1 to C4, Q1, Q2, F1, P3. It decides each by a formula of its own,
//! so that a guard that is taken out of the engine is not taken out here.

mod commits;
mod damage;
mod deliveries;
mod law;
mod leases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use truekeep_core::certificate::Certificate;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Announced, Announcement, Archive, Capabilities, ChangePage, Consumer, Feed, Ledger,
};
use truekeep_core::reconcile::Scan;
use truekeep_core::{CommitToken, Fence, Key, Place, Rank, RulesNumber, RunId, ScopeId, limits};

use crate::story::Story;
use crate::truth::{Pasts, Truth};
use crate::world::{Stores, Target, at_once};

pub(crate) use damage::Damage;
pub(crate) use law::Excused;

/// A broken promise: the invariant's id, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The id of `core/src/invariant.rs`, or what else was promised.
    pub promise: &'static str,
    /// How it was broken.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.how)
    }
}

/// What is known of one pipeline.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The greatest rank that was written of each key, whatever the sink remembers.
    ranks: BTreeMap<Key, Rank>,
    /// Keys whose record was changed past the port.
    damage: BTreeMap<Key, Damage>,
    /// Damage that was written over, and when: a sink that crashes may have it again.
    mended: Vec<(Duration, Key, Damage)>,
    /// Why the run is halted, until it goes on.
    halted: Option<Code>,
    /// Why the last reconcile ended badly.
    failed: Option<Code>,
    /// Rules by number.
    rules: BTreeMap<RulesNumber, String>,
    /// When each reconcile began to look.
    began: BTreeMap<RunId, Duration>,
    /// Live records of the sink that each reconcile gave a tombstone.
    buried: BTreeMap<RunId, u64>,
    /// What halts, or makes stale, with good reason.
    justified: BTreeSet<Code>,
    /// What it was told of the source, and what went back since.
    pasts: Pasts,
    /// The cursor of the run of follow.
    cursor: u64,
    fence: Fence,
    /// What reconciles have numbered last.
    numbered: u64,
    /// How far a rebuild has delivered again.
    scan: Option<Scan>,
    /// The reconcile that is under way.
    reconcile: Option<RunId>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Auditor {
    pub story: Story,
    pub truth: Truth,
    pub broken: Option<Broken>,
    watches: Vec<Watch>,
    scopes: Vec<ScopeId>,
    landed: BTreeSet<CommitToken>,
    ttl: Duration,
    /// When something last changed that matters.
    pub moved_at: Duration,
}

impl Auditor {
    /// An auditor of stores in which nothing has happened yet.
    pub fn new(stores: &Stores, ttl: Duration, told: usize) -> Self {
        // A listing in no order, or late, goes to its end under one worker: workers may end too
        // often for it.
        let one_pass = |able: &Capabilities| !able.ordered_listing || !able.listing_lag.is_zero();
        let watch = |target: &Target| Watch {
            justified: one_pass(&target.sink.plan.able)
                .then_some(Code::LISTING_UNFINISHED)
                .into_iter()
                .collect(),
            ..Watch::default()
        };
        Self {
            story: Story::of(told),
            truth: Truth::default(),
            broken: None,
            watches: stores.targets.iter().map(watch).collect(),
            scopes: stores.targets.iter().map(|target| target.scope.clone()).collect(),
            landed: BTreeSet::new(),
            ttl,
            moved_at: Duration::ZERO,
        }
    }

    /// A promise is broken; the first is kept.
    pub fn broke(&mut self, promise: &'static str, how: impl Into<String>) {
        if self.broken.is_none() {
            let how = how.into();
            self.story.tell(Duration::ZERO, "BROKEN", format_args!("{promise}: {how}"));
            self.broken = Some(Broken { promise, how });
        }
    }

    fn holds(&mut self, holds: bool, promise: &'static str, how: impl FnOnce() -> String) {
        if !holds {
            self.broke(promise, how());
        }
    }

    fn tell(&mut self, stores: &Stores, kind: &'static str, what: fmt::Arguments<'_>) {
        self.story.tell(stores.time.now(), kind, what);
    }

    fn index(&self, scope: &ScopeId) -> Option<usize> {
        self.scopes.iter().position(|own| own == scope)
    }

    /// From now on these codes are no false alarm.
    pub fn justify(&mut self, index: usize, codes: &[Code]) {
        self.watches[index].justified.extend(codes.iter().cloned());
    }

    /// Whether a code is no false alarm.
    pub fn is_justified(&self, index: usize, code: &Code) -> bool {
        self.watches[index].justified.contains(code)
    }

    /// Something of a pipeline went back: what its cursor and its numbers say is of another past.
    pub fn fork(&mut self, index: usize) {
        let now = self.truth.pass();
        self.watches[index].pasts.fork(now);
    }

    /// What the ledger knows of each pipeline's pasts, for a backup of it.
    pub fn pasts(&mut self) -> Vec<Pasts> {
        let now = self.truth.pass();
        self.watches.iter().map(|watch| watch.pasts.backup(now)).collect()
    }

    /// The ledger went back to what it knew then: what it gave and took since is given and taken
    /// anew.
    pub fn ledger_restored(&mut self, stores: &Stores, pasts: &[Pasts]) {
        for ((watch, scope), past) in self.watches.iter_mut().zip(&self.scopes).zip(pasts) {
            watch.pasts.restore(past);
            watch.fence = Fence::default();
            watch.began.clear();
            if let Ok(Some(record)) = at_once(stores.ledger.pipeline(scope.pipeline())) {
                let text = record.rules.fingerprint.as_str().to_owned();
                watch.rules.insert(record.rules.number, text);
            }
        }
        (0..self.watches.len()).for_each(|index| self.told_by_the_mark(stores, index));
    }

    /// Puts rules in force.
    pub fn announce(
        &mut self,
        stores: &Stores,
        new: &Announcement,
    ) -> Result<Announced, PortError> {
        let answer = at_once(stores.ledger.announce(new));
        if let Ok(Announced::InForce(record)) = &answer {
            let (number, text) = (record.rules.number, new.fingerprint.as_str());
            self.tell(stores, "announced", format_args!("{} {number} {text}", new.pipeline));
            for (watch, scope) in self.watches.iter_mut().zip(&self.scopes) {
                if *scope.pipeline() == new.pipeline {
                    watch.rules.insert(number, text.to_owned());
                    watch.pasts.begin_anew();
                    if watch.rules.len() > limits::RESTARTS_MAX as usize {
                        watch.justified.insert(Code::RULES_UNSETTLED);
                    }
                }
            }
            self.certificates(stores);
        }
        answer
    }

    /// Takes note of what the source holds after a change of it.
    pub fn observe(&mut self, stores: &Stores) {
        self.truth.observe(&stores.source.rows(), &stores.source.feed(), false);
    }

    /// Takes note of what the source holds after it was restored.
    pub fn observe_restored(&mut self, stores: &Stores) {
        self.truth.observe(&stores.source.rows(), &stores.source.feed(), true);
    }

    /// Reads a page of the feed.
    pub fn changes(
        &mut self,
        stores: &Stores,
        index: usize,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        let page = at_once(stores.source.changes(consumer, after, limit))?;
        if let Some(moment) = &page.moment {
            self.holds(page.end, "S3", || format!("{moment} before the end of the feed"));
            let now = self.truth.now();
            self.watches[index].pasts.name(moment.clone(), now);
        }
        Ok(page)
    }

    /// Removes tombstones.
    pub fn prune(&mut self, stores: &Stores) -> Result<u64, PortError> {
        let pruned = at_once(stores.source.prune())?;
        if pruned > 0 {
            self.tell(stores, "pruned", format_args!("{pruned} tombstones"));
            self.observe(stores);
        }
        Ok(pruned)
    }

    /// The certificates have not gone wrong since.
    pub fn certificates(&mut self, stores: &Stores) {
        for index in 0..self.watches.len() {
            if let Err(broken) = self.law(stores, index, Excused::Unnoticed) {
                self.broke(broken.promise, broken.how);
            }
        }
    }

    /// The certificate of a pipeline.
    pub fn certificate(&self, stores: &Stores, index: usize) -> Option<Certificate> {
        at_once(stores.ledger.certificate(&self.scopes[index])).ok().flatten()
    }
}
