//! Items: what did not go straight through is tried again, between the pages of the feed.
//!
//! Invariants: F1, F3, S1.

use std::collections::BTreeMap;

use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::follow::{Delivered, Observation};
use truekeep_core::limits;
use truekeep_core::ports::{Change, Item, ItemKind};
use truekeep_core::{Key, Stamp, Version};

use crate::perform::{Performed, Setback, Shipment, merge, tail_of};
use crate::scope::{Held, Runner};

impl Runner {
    /// Claims items that are due; returns whether there are any. Every other turn is the feed's,
    /// so that neither starves, and while a record that kills workers is looked for all are: a
    /// death must be the page's own.
    pub(crate) async fn claim_items(&self, held: &mut Held) -> Result<bool, Setback> {
        let now = held.now(self.ports.clock.as_ref());
        let probing = tail_of(held)?.probe.is_some();
        if std::mem::take(&mut held.feeds_turn) || probing || !held.items_due(now) {
            return Ok(false);
        }
        let guard = held.guard();
        let claim = self.ports.items.claim(&held.scope, &guard, limits::ITEMS_PER_CLAIM);
        held.claimed = claim.await?.map_err(Setback::Lost)?;
        if held.claimed.is_empty() {
            self.look(held).await?;
            return Ok(false);
        }
        held.items_checked = None;
        held.feeds_turn = true;
        Ok(true)
    }

    /// Delivers what was claimed, as the feed and the source have it now.
    pub(crate) async fn redeliver(&self, held: &mut Held) -> Result<Performed, PortError> {
        let attempts_max = held.terms.delivery.attempts_max;
        let (killers, items): (Vec<Item>, Vec<Item>) =
            held.claimed.iter().cloned().partition(|item| item.attempts > attempts_max);
        let mut shipment = Shipment::default();
        for item in &killers {
            let reason = "workers died while they delivered it".to_owned();
            shipment.fail(&as_change(item), item.attempts, false, Code::KILLS_WORKER, reason);
        }
        let mut delivered = Delivered { failed: shipment.failed, ..Delivered::default() };
        let keys: Vec<_> = items.iter().map(|item| item.key.clone()).collect();
        // S1: versions before documents.
        let present = self.known(&keys).await?;
        let tail = tail_of(held)?.clone();
        let reading = self.reading(held);
        let (mut done, mut records) = (0, 0);
        while done < keys.len() {
            let mut shipment = Shipment::default();
            for loaded in reading.load(&keys[done..]).await? {
                let known = present.get(done).cloned().flatten();
                let change = known.unwrap_or_else(|| as_change(&items[done]));
                shipment.add(change, loaded, held.terms.rules, items[done].attempts);
                done += 1;
            }
            let (part, sent) = self.ship(held, &tail, shipment, true).await?;
            merge(&mut delivered, part);
            records += sent;
        }
        // An item may be of a future that the source has lost: what is delivered now is all there is.
        let known: BTreeMap<Key, Version> =
            items.iter().map(|item| (item.key.clone(), item.version)).collect();
        let at_least =
            |key: &Key, version: Version| known.get(key).map_or(version, |v| version.max(*v));
        for settled in &mut delivered.settled {
            settled.version = at_least(&settled.key, settled.version);
        }
        for failed in &mut delivered.failed {
            failed.version = at_least(&failed.key, failed.version);
        }
        let settled = delivered.settled.iter().map(|settled| settled.key.clone());
        if held.pass.as_mut().is_some_and(|pass| !pass.note(settled)) {
            held.pass = None;
        }
        let failed = delivered.failed.len() as u64;
        Ok(Performed { records, failed, ..Performed::fact(Observation::Redelivered(delivered)) })
    }
}

impl Runner {
    /// The feed's present row of each key. What it does not know, or not any more, is numbered
    /// first: the sink may remember a deletion that is newer than the item, of which the feed
    /// remembers nothing.
    async fn known(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        let present = self.pipeline.feed.find(keys).await?;
        let unknown = keys.iter().zip(&present).filter(|(_, change)| change.is_none());
        let unknown: Vec<Key> = unknown.map(|(key, _)| key.clone()).collect();
        if unknown.is_empty() {
            return Ok(present);
        }
        self.number(&unknown).await?;
        self.pipeline.feed.find(keys).await
    }
}

/// What an item wants, where the feed has no row for its key any more.
fn as_change(item: &Item) -> Change {
    Change {
        key: item.key.clone(),
        version: item.version,
        stamp: Stamp::default(),
        deleted: item.kind == ItemKind::Delete,
    }
}
