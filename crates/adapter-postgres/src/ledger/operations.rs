//! Operations in Postgres.

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Cancelled, Discarded, Event, ItemState, Operations, PipelineRecord, PipelineState,
    ProcedureKind, Removal, RunState, Steer, Steered, Steering,
};
use truekeep_core::{Incarnation, Key, PipelineName, RunId, ScopeId, Timestamp, Version, limits};
use truekeep_postgres::sqlx::postgres::PgRow;
use truekeep_postgres::{Failure, Transaction};

use super::commits::record;
use super::ledger::about;
use super::{Hold, PostgresLedger, items, ledger, rows, sql};

#[async_trait]
impl Operations for PostgresLedger {
    async fn steer(&self, steer: &Steer) -> Result<Steered, PortError> {
        let hold = Hold::Pipeline(&steer.pipeline);
        let (mut transaction, now) = self.writing("pause or resume a pipeline", hold).await?;
        let done = steered(&mut transaction, steer, now).await;
        transaction.end(done).await
    }

    async fn cancel(&self, scope: &ScopeId, run: &RunId, by: &str) -> Result<Cancelled, PortError> {
        let (mut transaction, now) = self.writing("cancel a run", Hold::Scope(scope)).await?;
        let done = cancel(&mut transaction, scope, run, by, now).await;
        transaction.end(done).await
    }

    async fn discard(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
    ) -> Result<Discarded, PortError> {
        let (mut transaction, now) = self.writing("discard an item", Hold::Scope(scope)).await?;
        let done = discard(&mut transaction, scope, key, version, by, now).await;
        transaction.end(done).await
    }

    async fn remove(&self, removal: &Removal) -> Result<Option<PipelineRecord>, PortError> {
        let hold = Hold::Pipeline(&removal.pipeline);
        let (mut transaction, now) = self.writing("remove a pipeline", hold).await?;
        let done = remove(&mut transaction, removal, now).await;
        transaction.end(done).await
    }

    async fn drop_part(
        &self,
        pipeline: &PipelineName,
        incarnation: &Incarnation,
        limit: u32,
    ) -> Result<bool, PortError> {
        let limit = limits::rows("drop a pipeline", limit)?;
        let (mut transaction, now) =
            self.writing("drop a pipeline", Hold::Pipeline(pipeline)).await?;
        let done = drop_part(&mut transaction, pipeline, incarnation, limit, now).await;
        transaction.end(done).await
    }

    async fn floor(&self, pipeline: &PipelineName) -> Result<Version, PortError> {
        let query = about(sql::PIPELINE_FLOOR, pipeline);
        let mut reading = self.reading("read where feeds had come to").await?;
        let found = rows::first(&mut reading, query, rows::newest).await;
        Ok(reading.end(found).await?.unwrap_or_default())
    }
}

/// Says in the history what was decided about a pipeline.
async fn tell(
    transaction: &mut Transaction,
    name: &PipelineName,
    code: Code,
    text: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let scope = ScopeId::whole(name.clone()).to_string();
    record(transaction, &scope, &Event { code, text: text.to_owned() }, now).await
}

async fn written(
    transaction: &mut Transaction,
    name: &PipelineName,
) -> Result<PipelineRecord, Failure> {
    rows::expected(ledger::pipeline(transaction, name).await?, "pipeline that was just written")
}

async fn steered(
    transaction: &mut Transaction,
    steer: &Steer,
    now: Timestamp,
) -> Result<Steered, Failure> {
    let name = &steer.pipeline;
    let record = ledger::demand(transaction, "pause or resume a pipeline", name).await?;
    let (to, word, code) = match steer.to {
        Steering::Pause => (PipelineState::Paused, "paused", Code::PIPELINE_PAUSED),
        Steering::Resume => (PipelineState::Working, "working", Code::PIPELINE_RESUMED),
    };
    if record.state == to {
        return Ok(Steered::Unchanged(record));
    }
    if record.revision != steer.seen {
        return Ok(Steered::Outpaced(record));
    }
    rows::execute(transaction, about(sql::PIPELINE_STEER, name).bind(word)).await?;
    tell(transaction, name, code, &steer.by, now).await?;
    Ok(Steered::Done(written(transaction, name).await?))
}

async fn cancel(
    transaction: &mut Transaction,
    scope: &ScopeId,
    run: &RunId,
    by: &str,
    now: Timestamp,
) -> Result<Cancelled, Failure> {
    let decode = |row: &PgRow| rows::run(row, scope);
    let of_run = |sql: &'static str| Transaction::query(sql).bind(run.as_str().to_owned());
    let query = of_run(sql::RUN_NAMED).bind(scope.to_string());
    let Some(found) = rows::first(transaction, query, decode).await? else {
        return Ok(Cancelled::Unknown);
    };
    if found.procedure == ProcedureKind::Follow {
        return Ok(Cancelled::Perpetual);
    }
    match found.state {
        RunState::Succeeded | RunState::Stopped(_) => return Ok(Cancelled::Over(found)),
        RunState::Active | RunState::Failed(_) => {}
    }
    let code = Code::CANCELLED;
    let query = of_run(sql::RUN_STOP).bind(code.to_string());
    let ended = rows::first(transaction, query, decode).await?;
    record(transaction, &scope.to_string(), &Event { code, text: by.to_owned() }, now).await?;
    Ok(Cancelled::Ended(rows::expected(ended, "run that was just found")?))
}

async fn discard(
    transaction: &mut Transaction,
    scope: &ScopeId,
    key: &Key,
    version: Version,
    by: &str,
    now: Timestamp,
) -> Result<Discarded, Failure> {
    if !ledger::knows(transaction, "discard an item", scope.pipeline()).await? {
        return Ok(Discarded::Unknown);
    }
    let Some((item, lease)) = items::load(transaction, scope, key).await? else {
        return Ok(Discarded::Unknown);
    };
    match item.state {
        ItemState::Pending | ItemState::Retry => return Ok(Discarded::Trying),
        ItemState::Leased => {
            let until = items::tried_until(transaction, &item, lease.as_ref(), now).await?;
            return Ok(until.map_or(Discarded::Trying, Discarded::Leased));
        }
        ItemState::Parked if item.version != version => {
            return Ok(Discarded::Newer(item.version));
        }
        ItemState::Parked if item.is_discarded() => return Ok(Discarded::Unchanged),
        ItemState::Parked => {}
    }
    let (code, reason) = item.given_up(by);
    let query = items::about(sql::ITEM_DISCARD, scope, key)
        .bind(code.to_string())
        .bind(rows::told(&reason))
        .bind(now.ms());
    rows::execute(transaction, query).await?;
    let event = Event { code, text: format!("{key}: {reason}") };
    record(transaction, &scope.to_string(), &event, now).await?;
    Ok(Discarded::GivenUp)
}

/// A pipeline of this life.
async fn life(
    transaction: &mut Transaction,
    name: &PipelineName,
    incarnation: &Incarnation,
) -> Result<Option<PipelineRecord>, Failure> {
    let record = ledger::pipeline(transaction, name).await?;
    Ok(record.filter(|record| record.incarnation == *incarnation))
}

async fn remove(
    transaction: &mut Transaction,
    removal: &Removal,
    now: Timestamp,
) -> Result<Option<PipelineRecord>, Failure> {
    let name = &removal.pipeline;
    let Some(found) = life(transaction, name, &removal.incarnation).await? else {
        return Ok(None);
    };
    if !matches!(found.state, PipelineState::Removing(_)) {
        begin(transaction, removal, now).await?;
    }
    let query = about(sql::PIPELINE_NOTE, name)
        .bind(removal.purge)
        .bind(rows::stored(removal.newest.get())?);
    rows::execute(transaction, query).await?;
    written(transaction, name).await.map(Some)
}

/// Ends everything that goes on. A holder that gave its lease back may have a request under way
/// still, so the wait does not depend on whether there is a lease.
async fn begin(
    transaction: &mut Transaction,
    removal: &Removal,
    now: Timestamp,
) -> Result<(), Failure> {
    let name = &removal.pipeline;
    let query = about(sql::LEASE_LAST, name).bind(now.ms());
    let last = rows::first(transaction, query, rows::last).await?.flatten();
    let quiet_at = last.map_or(now, |last| last.max(now)).plus(removal.request_max);
    rows::execute(transaction, about(sql::LEASE_END, name)).await?;
    let query = about(sql::PIPELINE_CLOSE, name).bind(quiet_at.ms()).bind(now.ms());
    rows::execute(transaction, query).await?;
    let code = Code::PIPELINE_REMOVED;
    rows::execute(transaction, about(sql::RUN_END, name).bind(code.to_string())).await?;
    ledger::outdate(transaction, name, &code, now).await?;
    tell(transaction, name, code, &removal.by, now).await
}

async fn drop_part(
    transaction: &mut Transaction,
    name: &PipelineName,
    incarnation: &Incarnation,
    limit: u32,
    now: Timestamp,
) -> Result<bool, Failure> {
    let Some(record) = life(transaction, name, incarnation).await? else { return Ok(true) };
    if !matches!(record.state, PipelineState::Removing(_)) {
        let error = PortError::new("drop a pipeline", FailureClass::Terminal, Code::UNEXPECTED);
        return Err(error.detail(format!("nobody removes {name}")).into());
    }
    let query = about(sql::ITEM_DROP, name).bind(i64::from(limit));
    if rows::execute(transaction, query).await? == u64::from(limit) {
        return Ok(false);
    }
    for statement in [sql::RUN_DROP, sql::CERTIFICATE_DROP, sql::RULES_DROP, sql::PIPELINE_FREE] {
        rows::execute(transaction, about(statement, name)).await?;
    }
    tell(transaction, name, Code::PIPELINE_REMOVED, "it is gone, the name is free", now).await?;
    Ok(true)
}
