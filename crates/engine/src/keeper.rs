//! The lease keeper: renews all leases of a worker in the background and tells whose lease is lost.
//!
//! Who may take a lease is judged by the ledger's clock alone. Who must stop is also judged here,
//! by our own clock, counted from when we *asked* for the last renewal: a holder that is cut off
//! from the ledger stops before its lease can end there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use truekeep_core::ports::{Clock, Leases};
use truekeep_core::{HolderId, LeaseToken};

/// Renews leases and knows which are still ours.
#[derive(Debug)]
pub struct Keeper {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    holder: HolderId,
    ttl: Duration,
    turn_max: Duration,
    held: Mutex<BTreeMap<LeaseToken, Kept>>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    /// When we must have stopped, by our own clock.
    deadline: Duration,
    /// When the turn under way began.
    turn_since: Option<Duration>,
}

/// A lease that is renewed for as long as this lives: none is kept that nobody works under.
#[derive(Debug)]
pub(crate) struct Grip {
    keeper: Arc<Keeper>,
    token: LeaseToken,
}

impl Grip {
    /// Whether the lease is still ours as far as we can know.
    pub fn holds(&self) -> bool {
        self.keeper.holds(&self.token)
    }
}

impl Drop for Grip {
    fn drop(&mut self) {
        self.keeper.held().remove(&self.token);
        self.keeper.changed.notify_waiters();
    }
}

impl Keeper {
    /// A keeper for the leases of one holder.
    pub fn new(
        leases: Arc<dyn Leases>,
        clock: Arc<dyn Clock>,
        holder: HolderId,
        ttl: Duration,
        turn_max: Duration,
    ) -> Self {
        let held = Mutex::new(BTreeMap::new());
        Self { leases, clock, holder, ttl, turn_max, held, changed: Notify::new() }
    }

    /// The process the leases belong to.
    pub fn holder(&self) -> &HolderId {
        &self.holder
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<LeaseToken, Kept>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a lease that was asked for at `asked_at` (our own clock), until the grip is dropped.
    pub(crate) fn keep(self: &Arc<Self>, token: LeaseToken, asked_at: Duration) -> Grip {
        let kept = Kept { deadline: asked_at + self.ttl, turn_since: None };
        self.held().insert(token.clone(), kept);
        Grip { keeper: Arc::clone(self), token }
    }

    /// Whether the lease is still ours as far as we can know.
    pub fn holds(&self, token: &LeaseToken) -> bool {
        let now = self.clock.monotonic();
        self.held().get(token).is_some_and(|kept| now < kept.deadline)
    }

    /// Works while the lease is ours; `None` if it was lost first, with the work dropped where it
    /// was. Work that takes too long is left out of the renewal, so that another worker can take
    /// over from a hung port.
    pub(crate) async fn while_ours<T>(
        &self,
        token: &LeaseToken,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let working = |since| {
            if let Some(kept) = self.held().get_mut(token) {
                kept.turn_since = since;
            }
        };
        working(Some(self.clock.monotonic()));
        let done = tokio::select! {
            biased;
            () = self.lost(token) => None,
            done = work => Some(done),
        };
        working(None);
        done
    }

    /// Returns once the lease is no longer ours.
    pub async fn lost(&self, token: &LeaseToken) {
        loop {
            let changed = self.changed.notified();
            let now = self.clock.monotonic();
            let left = match self.held().get(token) {
                Some(kept) if now < kept.deadline => kept.deadline - now,
                Some(_) | None => return,
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = self.clock.sleep(left) => {}
            }
        }
    }

    /// Renews for ever: once each third of the ttl, all leases in one call. Drop it to stop.
    pub async fn run(&self) {
        loop {
            self.clock.sleep(self.ttl / 3).await;
            tokio::select! {
                biased;
                () = self.renew() => {}
                // Every lease it asks for has ended by now: a ledger that hangs is asked anew.
                () = self.clock.sleep(self.ttl) => {}
            }
        }
    }

    /// Renews once.
    pub async fn renew(&self) {
        let asked_at = self.clock.monotonic();
        let tokens: Vec<LeaseToken> = {
            let held = self.held();
            let hung = |kept: &Kept| {
                kept.turn_since.is_some_and(|since| asked_at.saturating_sub(since) > self.turn_max)
            };
            held.iter().filter(|(_, kept)| !hung(kept)).map(|(token, _)| token.clone()).collect()
        };
        if tokens.is_empty() {
            return;
        }
        match self.leases.renew(&self.holder, &tokens, self.ttl).await {
            Ok(lost) => {
                let mut held = self.held();
                for token in &tokens {
                    if lost.contains(token) {
                        held.remove(token);
                    } else if let Some(kept) = held.get_mut(token) {
                        kept.deadline = asked_at + self.ttl;
                    }
                }
            }
            // The deadlines stay: if the ledger stays away, they pass.
            Err(error) => tracing::warn!(code = %error.code, error = error.chain(), "renewal"),
        }
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
