//! What was done to a sink past its port, and until when that excuses a certificate.

use std::time::Duration;

use truekeep_core::Rank;
use truekeep_core::follow::Phase;
use truekeep_core::ports::{Items, Ledger, ProcedureKind};

use super::Auditor;
use crate::sink::Contents;
use crate::world::{Stores, at_once};

/// One record that is not what was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Since when.
    pub at: Duration,
    /// Whether the sink as a whole went back, which its mark tells.
    pub by_restore: bool,
    /// Whether only documents tell: the rank is as it was.
    pub is_deep: bool,
    /// The greatest rank that was written before.
    pub owed: Option<Rank>,
}

impl Auditor {
    /// A sink holds something else than before, past its port. What differs is excused until a
    /// reconcile that begins from now on has ended well, or the key is written again.
    pub fn damaged(&mut self, stores: &Stores, index: usize, before: &Contents, by_restore: bool) {
        let after = stores.targets[index].sink.contents();
        let at = stores.time.now();
        let written = std::mem::take(&mut self.watches[index].ranks);
        self.ranked(stores, index);
        let watch = &mut self.watches[index];
        let keys = before.live.keys().chain(after.live.keys()).chain(written.keys());
        for key in keys {
            // A deletion that is forgotten is damage as well.
            let forgotten = watch.ranks.get(key) < written.get(key);
            if before.live.get(key) != after.live.get(key) || forgotten {
                let earlier = watch.damage.get(key);
                let owed = written.get(key).copied().max(earlier.and_then(|e| e.owed));
                let held = after.live.get(key).and_then(|record| record.rank);
                let is_deep = held.is_some() && held == owed;
                watch.damage.insert(key.clone(), Damage { at, by_restore, is_deep, owed });
            }
        }
        self.told_by_the_mark(stores, index);
    }

    /// A restore is told by a mark that is older than what the ledger knows of. If it is not, the
    /// sink differs only by what others wrote.
    pub(super) fn told_by_the_mark(&mut self, stores: &Stores, index: usize) {
        let scope = &self.scopes[index];
        let run = at_once(stores.ledger.load(scope, ProcedureKind::Follow)).ok().flatten();
        let phase = run.and_then(|run| serde_json::from_str::<Phase>(&run.phase).ok());
        let known = phase.as_ref().and_then(Phase::tail).map(|tail| tail.mark);
        let held = stores.targets[index].sink.contents().mark.map(|mark| mark.batch());
        if held.unwrap_or_default() >= known.unwrap_or_default() {
            let damage = self.watches[index].damage.values_mut();
            damage.for_each(|damage| damage.by_restore = false);
        }
    }

    /// A sink has lost what it had not confirmed: what was written over may be there again.
    pub fn crashed(&mut self, stores: &Stores, index: usize) {
        let unconfirmed = Duration::from_millis(stores.targets[index].sink.plan.confirms_ms_max);
        let since = stores.time.now().saturating_sub(unconfirmed);
        let watch = &mut self.watches[index];
        for (at, key, damage) in std::mem::take(&mut watch.mended) {
            if at >= since {
                watch.damage.entry(key).or_insert(damage);
            }
        }
        self.ranked(stores, index);
    }

    /// A reconcile that began then has ended well: it has seen everything that was damaged before,
    /// but for what follow has yet to deliver (Q3).
    pub(super) fn compared(&mut self, stores: &Stores, index: usize, began: Duration, deep: bool) {
        let scope = &self.scopes[index];
        let run = at_once(stores.ledger.load(scope, ProcedureKind::Follow)).ok().flatten();
        let phase = run.and_then(|run| serde_json::from_str::<Phase>(&run.phase).ok());
        let cursor = phase.as_ref().and_then(Phase::tail).map(|tail| tail.cursor.clone());
        let cursor = cursor.unwrap_or_default();
        let feed = stores.source.feed();
        // What was to come when it looked may be lost with the future that was lost.
        if self.watches[index].pasts.forked().is_some() {
            return;
        }
        self.watches[index].damage.retain(|key, damage| {
            let to_come =
                feed.get(key).is_some_and(|(version, _)| !cursor.covers((*version).into()));
            let item = || at_once(stores.ledger.item(scope, key)).ok().flatten();
            damage.at >= began || (damage.is_deep && !deep) || to_come || item().is_some()
        });
    }

    /// What a sink holds is what was written of each key.
    pub fn ranked(&mut self, stores: &Stores, index: usize) {
        let contents = stores.targets[index].sink.contents();
        let live = contents.live.into_iter().filter_map(|(key, record)| Some((key, record.rank?)));
        let dead = contents.tombstones.into_iter().map(|(key, (rank, _))| (key, rank));
        let mut ranks = std::collections::BTreeMap::new();
        for (key, rank) in live.chain(dead) {
            let held = ranks.entry(key).or_insert(rank);
            *held = rank.max(*held);
        }
        self.watches[index].ranks = ranks;
    }
}
