//! Checkpoints in memory: the guard, then everything that is written beside the phase.
//!
//! Invariants: G1, C2, C3, C4.

use truekeep_core::certificate::judge;
use truekeep_core::failure::PortError;
use truekeep_core::guard::Lost;
use truekeep_core::ports::{Commit, Committed, Item, ItemState, LedgerWrite, NewItem};
use truekeep_core::{RulesNumber, ScopeId, Timestamp, limits};

use super::state::{ItemRecord, LedgerState, Scope};

impl LedgerState {
    pub(super) fn commit(
        &mut self,
        commit: &Commit,
        now: Timestamp,
    ) -> Result<Committed, PortError> {
        let rules = self.rules("commit a checkpoint", commit.scope.pipeline())?;
        let found = self.scopes.get(&commit.scope).and_then(|scope| {
            let index = scope.runs.iter().position(|run| run.run.id == commit.run)?;
            Some((scope, index))
        });
        if let Some((scope, index)) = found
            && let Some((token, version)) = &scope.runs[index].landed
            && *token == commit.token
        {
            return Ok(Committed::Landed(*version, scope.tally()));
        }
        let open = found.map(|(scope, index)| &scope.runs[index]).filter(|run| run.is_open());
        let version = open.map(|run| run.run.version);
        if let Err(lost) = commit.guard.check(&self.held(&commit.scope, version, rules, now)) {
            return Ok(Committed::Lost(lost));
        }
        let index = found.map(|(_, index)| index);
        let Self { scopes, history, .. } = self;
        let (Some(scope), Some(index)) = (scopes.get_mut(&commit.scope), index) else {
            return Ok(Committed::Lost(Lost::Run));
        };
        let record = &mut scope.runs[index];
        record.run.version = record.run.version.next();
        record.run.phase.clone_from(&commit.phase);
        record.run.state.clone_from(&commit.state);
        record.run.health.clone_from(&commit.health);
        record.run.health.text = limits::bounded(&commit.health.text).to_owned();
        record.run.delivered = record.run.delivered.saturating_add(commit.delivered);
        let version = record.run.version;
        record.landed = Some((commit.token.clone(), version));
        for write in &commit.writes {
            scope.write(&commit.scope, write, rules, now);
            if let LedgerWrite::Record(event) = write {
                history.record(&commit.scope, event, now);
            }
        }
        Ok(Committed::Landed(version, scope.tally()))
    }
}

impl Scope {
    fn write(&mut self, id: &ScopeId, write: &LedgerWrite, rules: RulesNumber, now: Timestamp) {
        match write {
            LedgerWrite::Enqueue(items) => {
                for item in items {
                    self.enqueue(id, item, now);
                }
            }
            LedgerWrite::Settle(done) => {
                for done in done {
                    let item = self.items.get(&done.key);
                    if item.is_some_and(|item| item.item.version <= done.version) {
                        self.items.remove(&done.key);
                    }
                }
            }
            LedgerWrite::Certify(claim) => {
                self.certificate = judge(&self.certificate, claim, self.tally(), rules, now);
            }
            // The history is not the scope's.
            LedgerWrite::Record(_) => {}
        }
    }

    fn enqueue(&mut self, scope: &ScopeId, new: &NewItem, now: Timestamp) {
        let before = self.items.get(&new.key);
        if before.is_some_and(|item| item.item.version > new.version) {
            return;
        }
        let (state, due_at) = match new.retry_in {
            Some(delay) => (ItemState::Retry, now.plus(delay)),
            None => (ItemState::Parked, now),
        };
        let item = Item {
            scope: scope.clone(),
            key: new.key.clone(),
            version: new.version,
            kind: new.kind,
            state,
            attempts: new.attempts,
            due_at,
            code: new.code.clone(),
            reason: limits::bounded(&new.reason).to_owned(),
            changed_at: now,
        };
        self.items.insert(new.key.clone(), ItemRecord { item, lease: None });
    }
}
