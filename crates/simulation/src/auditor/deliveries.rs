//! What is written to the sinks, and numbered in the source.
//!
//! Invariants: P3, Q1, Q2.

use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_core::ports::{Applied, Batch, Body, Capture, FillProgress, Numbered, Outcome};
use truekeep_core::{Key, Rank};

use super::Auditor;
use crate::world::{Stores, at_once};

impl Auditor {
    pub fn apply(
        &mut self,
        stores: &Stores,
        index: usize,
        who: &str,
        batch: Batch,
    ) -> Result<Applied, PortError> {
        let mark = batch.mark.clone();
        let sent: Vec<(Key, Rank, bool)> = batch
            .deliveries
            .iter()
            .map(|one| (one.key.clone(), one.rank, matches!(one.body, Body::Delete)))
            .collect();
        let sink = &stores.targets[index].sink;
        let applied = match sink.apply(batch) {
            Ok(applied) => applied,
            Err(error) => {
                let (number, code) = (mark.number, &error.code);
                self.tell(stores, "denied", format_args!("{who} batch {number}: {code}"));
                return Err(error);
            }
        };
        let mut words = String::new();
        for ((key, rank, deleted), outcome) in sent.iter().zip(&applied.outcomes) {
            let word = match outcome {
                Outcome::Applied | Outcome::Repeated if *deleted => "deleted",
                Outcome::Applied | Outcome::Repeated => "written",
                Outcome::Outdone(_) => "outdone",
                Outcome::Refused(..) => "refused",
                Outcome::Retry(..) => "put off",
            };
            words.push_str(&format!(" {key} {rank} {word};"));
            if matches!(outcome, Outcome::Applied | Outcome::Repeated) {
                self.delivered(stores.time.now(), index, key, *rank, *deleted);
            }
        }
        if applied.outcomes.contains(&Outcome::Applied) {
            self.moved_at = stores.time.now();
        }
        let (fence, number) = (mark.fence, mark.number);
        self.tell(stores, "applied", format_args!("{who} p{index} f{fence} n{number}{words}"));
        self.certificates(stores);
        Ok(applied)
    }

    fn delivered(&mut self, now: Duration, index: usize, key: &Key, rank: Rank, deleted: bool) {
        let watch = &mut self.watches[index];
        let before = watch.ranks.insert(key.clone(), rank);
        if let Some(damage) = watch.damage.get(key).filter(|damage| damage.owed <= Some(rank)) {
            watch.mended.push((now, key.clone(), *damage));
            watch.damage.remove(key);
        }
        let forked = watch.pasts.forked().is_some();
        self.holds(before.is_none_or(|before| rank >= before), "P3", || {
            format!("{key} at {before:?} was replaced by {rank}")
        });
        let right = !deleted || forked || self.truth.was_absent_since(key, rank.version);
        self.holds(right, "Q2", || {
            format!("{key} was deleted at {rank}, and its row was there all the time")
        });
    }

    pub fn number(
        &mut self,
        stores: &Stores,
        index: usize,
        who: &str,
        keys: &[Key],
    ) -> Result<Numbered, PortError> {
        let numbered = at_once(stores.source.number(keys))?;
        self.observe(stores);
        let (rows, feed) = (stores.source.rows(), stores.source.feed());
        let contents = stores.targets[index].sink.contents();
        for key in keys {
            let dead = feed.get(key).is_some_and(|(_, deleted)| *deleted);
            self.holds(dead != rows.contains_key(key), "Q2", || {
                format!("{key} was numbered as {}", if dead { "deleted" } else { "live" })
            });
            let watch = &mut self.watches[index];
            if dead
                && contents.live.contains_key(key)
                && let Some(run) = watch.reconcile.clone()
            {
                *watch.buried.entry(run).or_default() += 1;
            }
        }
        let names: Vec<&str> = keys.iter().map(Key::as_str).collect();
        self.tell(stores, "numbered", format_args!("{who} {names:?}"));
        Ok(numbered)
    }

    pub fn fill(&mut self, stores: &Stores) -> Result<FillProgress, PortError> {
        let progress = at_once(stores.source.fill());
        self.observe(stores);
        progress
    }
}
