//! Checkpoints in Postgres: the guard, then everything that is written beside the phase.
//!
//! A checkpoint has 8 statements, begin and commit among them, and at most 3 for each thing that is
//! written beside it, however long. Invariants: G1, C2, C3, C4.

use truekeep_core::certificate::{Claim, Tally, judge};
use truekeep_core::guard::Held;
use truekeep_core::ports::{Commit, Committed, Event, LedgerWrite, NewItem, Settle};
use truekeep_core::{RulesNumber, RunId, RunVersion, ScopeId, Timestamp, limits};
use truekeep_postgres::{Failure, Transaction};

use super::ledger::{about, unknown};
use super::{rows, sql};

/// What a guard is compared with; without a run it is the scope's open one.
pub(super) async fn held(
    transaction: &mut Transaction,
    operation: &'static str,
    scope: &ScopeId,
    run: Option<&RunId>,
) -> Result<rows::GuardRow, Failure> {
    let query = about(sql::GUARD_READ, scope.pipeline())
        .bind(scope.to_string())
        .bind(run.map(|run| run.as_str().to_owned()));
    let row = rows::first(transaction, query, rows::guard).await?;
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

pub(super) async fn checkpoint(
    transaction: &mut Transaction,
    commit: &Commit,
    now: Timestamp,
) -> Result<Committed, Failure> {
    let row = held(transaction, "commit a checkpoint", &commit.scope, Some(&commit.run)).await?;
    let mut scope =
        Scope { transaction, name: commit.scope.to_string(), rules: row.rules, now, tally: None };
    // First of all: a commit that landed has landed, whatever was lost since.
    if let Some((token, version)) = &row.landed
        && *token == commit.token
    {
        return Ok(Committed::Landed(*version, scope.tally().await?));
    }
    if let Err(lost) = commit.guard.check(&row.held(now)) {
        return Ok(Committed::Lost(lost));
    }
    let version = advance(scope.transaction, commit).await?;
    for write in &commit.writes {
        match write {
            LedgerWrite::Enqueue(items) => scope.enqueue(items).await?,
            LedgerWrite::Settle(done) => scope.settle(done).await?,
            LedgerWrite::Certify(claim) => scope.certify(claim).await?,
            LedgerWrite::Record(event) => {
                record(scope.transaction, &scope.name, event, now).await?;
            }
        }
    }
    Ok(Committed::Landed(version, scope.tally().await?))
}

async fn advance(transaction: &mut Transaction, commit: &Commit) -> Result<RunVersion, Failure> {
    let (state, failure) = rows::run_state_text(&commit.state);
    let health = &commit.health;
    let query = Transaction::query(sql::RUN_ADVANCE)
        .bind(commit.run.as_str().to_owned())
        .bind(commit.phase.clone())
        .bind(state)
        .bind(failure.map(str::to_owned))
        .bind(i64::from(health.attempts))
        .bind(health.code.as_ref().map(ToString::to_string))
        .bind(rows::told(&health.text))
        .bind(health.due_at.map(Timestamp::ms))
        .bind(commit.token.as_str().to_owned())
        .bind(rows::stored(commit.delivered)?);
    let version = rows::first(transaction, query, rows::version).await?;
    rows::expected(version, "run that was just compared")
}

/// A scope in the transaction of a checkpoint.
struct Scope<'t> {
    transaction: &'t mut Transaction,
    name: String,
    rules: RulesNumber,
    now: Timestamp,
    /// The count of the items as they are, if it is known.
    tally: Option<Tally>,
}

/// Columns of items that are stored in one statement.
#[derive(Default)]
struct Batch {
    keys: Vec<Vec<u8>>,
    versions: Vec<i64>,
    kinds: Vec<String>,
    states: Vec<String>,
    attempts: Vec<i64>,
    due_at: Vec<i64>,
    codes: Vec<String>,
    reasons: Vec<String>,
}

impl Scope<'_> {
    async fn tally(&mut self) -> Result<Tally, Failure> {
        if let Some(tally) = self.tally {
            return Ok(tally);
        }
        let query = Transaction::query(sql::ITEM_TALLY).bind(self.name.clone());
        let tally = rows::first(self.transaction, query, rows::tally).await?;
        let tally = rows::expected(tally, "count of items")?;
        self.tally = Some(tally);
        Ok(tally)
    }

    async fn enqueue(&mut self, items: &[NewItem]) -> Result<(), Failure> {
        let mut batch = Batch::default();
        for item in items {
            let (state, due_at) = match item.retry_in {
                Some(delay) => ("retry", self.now.plus(delay)),
                None => ("parked", self.now),
            };
            batch.keys.push(rows::bytes(&item.key));
            batch.versions.push(rows::stored(item.version.get())?);
            batch.kinds.push(rows::kind_text(item.kind).to_owned());
            batch.states.push(state.to_owned());
            batch.attempts.push(item.attempts.into());
            batch.due_at.push(due_at.ms());
            batch.codes.push(item.code.to_string());
            batch.reasons.push(rows::told(&item.reason));
        }
        let query = Transaction::query(sql::ITEM_ENQUEUE)
            .bind(self.name.clone())
            .bind(self.now.ms())
            .bind(batch.keys)
            .bind(batch.versions)
            .bind(batch.kinds)
            .bind(batch.states)
            .bind(batch.attempts)
            .bind(batch.due_at)
            .bind(batch.codes)
            .bind(batch.reasons);
        rows::execute(self.transaction, query).await?;
        self.tally = None;
        Ok(())
    }

    async fn settle(&mut self, done: &[Settle]) -> Result<(), Failure> {
        let (mut keys, mut versions) = (Vec::new(), Vec::new());
        for done in done {
            keys.push(rows::bytes(&done.key));
            versions.push(rows::stored(done.version.get())?);
        }
        let query =
            Transaction::query(sql::ITEM_SETTLE).bind(self.name.clone()).bind(keys).bind(versions);
        rows::execute(self.transaction, query).await?;
        self.tally = None;
        Ok(())
    }

    async fn certify(&mut self, claim: &Claim) -> Result<(), Failure> {
        let tally = self.tally().await?;
        let query = Transaction::query(sql::CERTIFICATE_LOAD).bind(self.name.clone());
        let before = rows::first(self.transaction, query, rows::certificate).await?;
        let before = rows::expected(before, "certificate")?;
        let judged = judge(&before, claim, tally, self.rules, self.now);
        if judged == before {
            return Ok(());
        }
        let query = Transaction::query(sql::CERTIFICATE_STORE)
            .bind(self.name.clone())
            .bind(judged.state.as_str())
            .bind(judged.code.as_ref().map(ToString::to_string))
            .bind(judged.moment.as_ref().map(ToString::to_string))
            .bind(rows::stored(judged.rules.get())?)
            .bind(rows::stored(judged.parked)?)
            .bind(rows::stored(judged.unsettled)?)
            .bind(judged.changed_at.ms());
        rows::execute(self.transaction, query).await?;
        Ok(())
    }
}

/// Adds to the history of a scope, and removes some of what is too old.
pub(super) async fn record(
    transaction: &mut Transaction,
    scope: &str,
    event: &Event,
    now: Timestamp,
) -> Result<(), Failure> {
    let query = Transaction::query(sql::EVENT_ADD)
        .bind(scope.to_owned())
        .bind(now.ms())
        .bind(event.code.to_string())
        .bind(rows::told(&event.text));
    rows::execute(transaction, query).await?;
    let query = Transaction::query(sql::EVENT_PRUNE)
        .bind(scope.to_owned())
        .bind(now.ms().saturating_sub(rows::milliseconds(limits::HISTORY_KEPT)))
        .bind(i64::from(limits::HISTORY_PRUNED_MAX));
    rows::execute(transaction, query).await?;
    Ok(())
}
