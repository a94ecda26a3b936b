//! Checkpoints in SQLite: the guard, then everything that is written beside the phase.
//!
//! A checkpoint has 6 statements, begin and commit among them, and at most 3 for each thing that is
//! written beside it, however long. Invariants: G1, C2, C3, C4.

use rusqlite::{Connection, named_params};
use serde_json::json;
use truekeep_core::certificate::{Claim, Tally, judge};
use truekeep_core::failure::PortError;
use truekeep_core::guard::Held;
use truekeep_core::ports::{Commit, Committed, Event, LedgerWrite, NewItem, Settle};
use truekeep_core::{RulesNumber, RunId, RunVersion, ScopeId, Timestamp, limits};
use truekeep_sqlite::Failure;

use super::ledger::unknown;
use super::{SqliteLedger, rows, sql};

impl SqliteLedger {
    pub(super) async fn write_checkpoint(&self, commit: Commit) -> Result<Committed, PortError> {
        self.write("commit a checkpoint", move |transaction, now| {
            checkpoint(transaction, &commit, now)
        })
        .await
    }
}

/// What a guard is compared with; without a run it is the scope's open one.
pub(super) fn held(
    transaction: &Connection,
    operation: &'static str,
    scope: &ScopeId,
    run: Option<&RunId>,
) -> Result<rows::GuardRow, Failure> {
    let params = named_params! {
        ":scope": scope.to_string(),
        ":pipeline": scope.pipeline().as_str(),
        ":run": run.map(RunId::as_str),
    };
    let row = rows::first(transaction, sql::GUARD_READ, params, rows::guard)?;
    row.ok_or_else(|| unknown(operation, scope.pipeline()))
}

impl rows::GuardRow {
    pub(super) fn held(&self, now: Timestamp) -> Held<'_> {
        let lease = self.lease.as_ref().filter(|row| row.in_force(now));
        Held {
            lease: lease.map(|row| (&row.lease.token, row.lease.fence)),
            run_version: self.run_version,
            rules: self.rules,
        }
    }
}

fn checkpoint(
    transaction: &Connection,
    commit: &Commit,
    now: Timestamp,
) -> Result<Committed, Failure> {
    let row = held(transaction, "commit a checkpoint", &commit.scope, Some(&commit.run))?;
    let mut scope =
        Scope { transaction, name: commit.scope.to_string(), rules: row.rules, now, tally: None };
    // First of all: a commit that landed has landed, whatever was lost since.
    if let Some((token, version)) = &row.landed
        && *token == commit.token
    {
        return Ok(Committed::Landed(*version, scope.tally()?));
    }
    if let Err(lost) = commit.guard.check(&row.held(now)) {
        return Ok(Committed::Lost(lost));
    }
    let version = advance(transaction, commit)?;
    for write in &commit.writes {
        match write {
            LedgerWrite::Enqueue(items) => scope.enqueue(items)?,
            LedgerWrite::Settle(done) => scope.settle(done)?,
            LedgerWrite::Certify(claim) => scope.certify(claim)?,
            LedgerWrite::Record(event) => scope.record(event)?,
        }
    }
    Ok(Committed::Landed(version, scope.tally()?))
}

fn advance(transaction: &Connection, commit: &Commit) -> Result<RunVersion, Failure> {
    let (state, failure) = rows::run_state_text(&commit.state);
    let health = &commit.health;
    let params = named_params! {
        ":run": commit.run.as_str(),
        ":phase": commit.phase,
        ":state": state,
        ":failure": failure,
        ":attempts": health.attempts,
        ":code": health.code.as_ref().map(|code| code.as_str()),
        ":text": limits::bounded(&health.text),
        ":due_at": health.due_at.map(Timestamp::ms),
        ":token": commit.token.as_str(),
        ":delivered": rows::stored(commit.delivered)?,
    };
    let version = rows::first(transaction, sql::RUN_ADVANCE, params, rows::version)?;
    rows::expected(version, "run that was just compared")
}

/// A scope in the transaction of a checkpoint.
struct Scope<'t> {
    transaction: &'t Connection,
    name: String,
    rules: RulesNumber,
    now: Timestamp,
    /// The count of the items as they are, if it is known.
    tally: Option<Tally>,
}

impl Scope<'_> {
    fn tally(&mut self) -> Result<Tally, Failure> {
        if let Some(tally) = self.tally {
            return Ok(tally);
        }
        let params = named_params! { ":scope": self.name };
        let tally = rows::first(self.transaction, sql::ITEM_TALLY, params, rows::tally)?;
        let tally = rows::expected(tally, "count of items")?;
        self.tally = Some(tally);
        Ok(tally)
    }

    fn enqueue(&mut self, items: &[NewItem]) -> Result<(), Failure> {
        let mut batch = Vec::with_capacity(items.len());
        for item in items {
            let (state, due_at) = match item.retry_in {
                Some(delay) => ("retry", self.now.plus(delay)),
                None => ("parked", self.now),
            };
            batch.push(json!([
                item.key.as_str(),
                rows::stored(item.version.get())?,
                rows::kind_text(item.kind),
                state,
                item.attempts,
                due_at.ms(),
                item.code.as_str(),
                limits::bounded(&item.reason),
            ]));
        }
        let params = named_params! {
            ":scope": self.name,
            ":items": rows::batch(batch),
            ":now": self.now.ms(),
        };
        rows::execute(self.transaction, sql::ITEM_ENQUEUE, params)?;
        self.tally = None;
        Ok(())
    }

    fn settle(&mut self, done: &[Settle]) -> Result<(), Failure> {
        let mut batch = Vec::with_capacity(done.len());
        for done in done {
            batch.push(json!([done.key.as_str(), rows::stored(done.version.get())?]));
        }
        let params = named_params! { ":scope": self.name, ":done": rows::batch(batch) };
        rows::execute(self.transaction, sql::ITEM_SETTLE, params)?;
        self.tally = None;
        Ok(())
    }

    fn certify(&mut self, claim: &Claim) -> Result<(), Failure> {
        let tally = self.tally()?;
        let params = named_params! { ":scope": self.name };
        let before =
            rows::first(self.transaction, sql::CERTIFICATE_LOAD, params, rows::certificate)?;
        let before = rows::expected(before, "certificate")?;
        let judged = judge(&before, claim, tally, self.rules, self.now);
        if judged == before {
            return Ok(());
        }
        let moment = judged.moment.as_ref().map(ToString::to_string);
        let params = named_params! {
            ":scope": self.name,
            ":state": judged.state.as_str(),
            ":code": judged.code.as_ref().map(|code| code.as_str()),
            ":moment": moment,
            ":rules": rows::stored(judged.rules.get())?,
            ":parked": rows::stored(judged.parked)?,
            ":unsettled": rows::stored(judged.unsettled)?,
            ":changed_at": judged.changed_at.ms(),
        };
        rows::execute(self.transaction, sql::CERTIFICATE_STORE, params)?;
        Ok(())
    }

    fn record(&mut self, event: &Event) -> Result<(), Failure> {
        record(self.transaction, &self.name, event, self.now)
    }
}

/// Adds to the history of a scope, and removes some of what is too old.
pub(super) fn record(
    transaction: &Connection,
    scope: &str,
    event: &Event,
    now: Timestamp,
) -> Result<(), Failure> {
    let params = named_params! {
        ":scope": scope,
        ":now": now.ms(),
        ":code": event.code.as_str(),
        ":text": limits::bounded(&event.text),
    };
    rows::execute(transaction, sql::EVENT_ADD, params)?;
    let params = named_params! {
        ":scope": scope,
        ":before": now.ms().saturating_sub(rows::milliseconds(limits::HISTORY_KEPT)),
        ":limit": limits::HISTORY_PRUNED_MAX,
    };
    rows::execute(transaction, sql::EVENT_PRUNE, params)?;
    Ok(())
}
