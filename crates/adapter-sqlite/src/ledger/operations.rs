//! Operations in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, named_params};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Cancelled, Discarded, Event, ItemState, Operations, PipelineRecord, PipelineState,
    ProcedureKind, Removal, RunState, Steer, Steered, Steering,
};
use truekeep_core::{Incarnation, Key, PipelineName, RunId, ScopeId, Timestamp, Version, limits};
use truekeep_sqlite::Failure;

use super::commits::record;
use super::{SqliteLedger, items, ledger, rows, sql};

#[async_trait]
impl Operations for SqliteLedger {
    async fn steer(&self, steer: &Steer) -> Result<Steered, PortError> {
        let steer = steer.clone();
        self.write("pause or resume a pipeline", move |transaction, now| {
            steered(transaction, &steer, now)
        })
        .await
    }

    async fn cancel(&self, scope: &ScopeId, run: &RunId, by: &str) -> Result<Cancelled, PortError> {
        let (scope, run, by) = (scope.clone(), run.clone(), by.to_owned());
        self.write("cancel a run", move |transaction, now| {
            cancel(transaction, &scope, &run, &by, now)
        })
        .await
    }

    async fn discard(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
    ) -> Result<Discarded, PortError> {
        let (scope, key, by) = (scope.clone(), key.clone(), by.to_owned());
        self.write("discard an item", move |transaction, now| {
            discard(transaction, &scope, &key, version, &by, now)
        })
        .await
    }

    async fn remove(&self, removal: &Removal) -> Result<Option<PipelineRecord>, PortError> {
        let removal = removal.clone();
        self.write("remove a pipeline", move |transaction, now| remove(transaction, &removal, now))
            .await
    }

    async fn drop_part(
        &self,
        pipeline: &PipelineName,
        incarnation: &Incarnation,
        limit: u32,
    ) -> Result<bool, PortError> {
        let limit = limits::rows("drop a pipeline", limit)?;
        let (name, life) = (pipeline.clone(), incarnation.clone());
        self.write("drop a pipeline", move |transaction, now| {
            drop_part(transaction, &name, &life, limit, now)
        })
        .await
    }

    async fn floor(&self, pipeline: &PipelineName) -> Result<Version, PortError> {
        let name = pipeline.clone();
        self.read("read where feeds had come to", move |connection, _| {
            let params = named_params! { ":pipeline": name.as_str() };
            let newest = rows::first(connection, sql::PIPELINE_FLOOR, params, rows::newest)?;
            Ok(newest.unwrap_or_default())
        })
        .await
    }
}

/// Says in the history what was decided about a pipeline.
fn tell(
    transaction: &Connection,
    name: &PipelineName,
    code: Code,
    text: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let scope = ScopeId::whole(name.clone()).to_string();
    record(transaction, &scope, &Event { code, text: text.to_owned() }, now)
}

fn written(transaction: &Connection, name: &PipelineName) -> Result<PipelineRecord, Failure> {
    rows::expected(ledger::pipeline(transaction, name)?, "pipeline that was just written")
}

fn steered(transaction: &Connection, steer: &Steer, now: Timestamp) -> Result<Steered, Failure> {
    let name = &steer.pipeline;
    let record = ledger::demand(transaction, "pause or resume a pipeline", name)?;
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
    let params = named_params! { ":pipeline": name.as_str(), ":state": word };
    rows::execute(transaction, sql::PIPELINE_STEER, params)?;
    tell(transaction, name, code, &steer.by, now)?;
    Ok(Steered::Done(written(transaction, name)?))
}

fn cancel(
    transaction: &Connection,
    scope: &ScopeId,
    run: &RunId,
    by: &str,
    now: Timestamp,
) -> Result<Cancelled, Failure> {
    let decode = |row: &rusqlite::Row<'_>| rows::run(row, scope);
    let params = named_params! { ":run": run.as_str(), ":scope": scope.to_string() };
    let Some(found) = rows::first(transaction, sql::RUN_NAMED, params, decode)? else {
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
    let params = named_params! { ":run": run.as_str(), ":code": code.as_str() };
    let ended = rows::first(transaction, sql::RUN_STOP, params, decode)?;
    record(transaction, &scope.to_string(), &Event { code, text: by.to_owned() }, now)?;
    Ok(Cancelled::Ended(rows::expected(ended, "run that was just found")?))
}

fn discard(
    transaction: &Connection,
    scope: &ScopeId,
    key: &Key,
    version: Version,
    by: &str,
    now: Timestamp,
) -> Result<Discarded, Failure> {
    if !ledger::knows(transaction, "discard an item", scope.pipeline())? {
        return Ok(Discarded::Unknown);
    }
    let Some((item, lease)) = items::load(transaction, scope, key)? else {
        return Ok(Discarded::Unknown);
    };
    match item.state {
        ItemState::Pending | ItemState::Retry => return Ok(Discarded::Trying),
        ItemState::Leased => {
            let until = items::tried_until(transaction, &item, lease.as_ref(), now)?;
            return Ok(until.map_or(Discarded::Trying, Discarded::Leased));
        }
        ItemState::Parked if item.version != version => {
            return Ok(Discarded::Newer(item.version));
        }
        ItemState::Parked if item.is_discarded() => return Ok(Discarded::Unchanged),
        ItemState::Parked => {}
    }
    let (code, reason) = item.given_up(by);
    let name = scope.to_string();
    let params = named_params! {
        ":scope": name,
        ":key": key.as_str(),
        ":code": code.as_str(),
        ":reason": limits::bounded(&reason),
        ":now": now.ms(),
    };
    rows::execute(transaction, sql::ITEM_DISCARD, params)?;
    record(transaction, &name, &Event { code, text: format!("{key}: {reason}") }, now)?;
    Ok(Discarded::GivenUp)
}

/// A pipeline of this life.
fn life(
    transaction: &Connection,
    name: &PipelineName,
    incarnation: &Incarnation,
) -> Result<Option<PipelineRecord>, Failure> {
    let record = ledger::pipeline(transaction, name)?;
    Ok(record.filter(|record| record.incarnation == *incarnation))
}

fn remove(
    transaction: &Connection,
    removal: &Removal,
    now: Timestamp,
) -> Result<Option<PipelineRecord>, Failure> {
    let name = &removal.pipeline;
    let Some(found) = life(transaction, name, &removal.incarnation)? else { return Ok(None) };
    if !matches!(found.state, PipelineState::Removing(_)) {
        begin(transaction, removal, now)?;
    }
    let params = named_params! {
        ":pipeline": name.as_str(),
        ":purge": removal.purge,
        ":newest": rows::stored(removal.newest.get())?,
    };
    rows::execute(transaction, sql::PIPELINE_NOTE, params)?;
    written(transaction, name).map(Some)
}

/// Ends everything that goes on. A holder that gave its lease back may have a request under way
/// still, so the wait does not depend on whether there is a lease.
fn begin(transaction: &Connection, removal: &Removal, now: Timestamp) -> Result<(), Failure> {
    let name = removal.pipeline.as_str();
    let params = named_params! { ":pipeline": name, ":now": now.ms() };
    let last = rows::first(transaction, sql::LEASE_LAST, params, rows::last)?.flatten();
    let quiet_at = last.map_or(now, |last| last.max(now)).plus(removal.request_max);
    rows::execute(transaction, sql::LEASE_END, named_params! { ":pipeline": name })?;
    let params = named_params! { ":pipeline": name, ":quiet_at": quiet_at.ms(), ":now": now.ms() };
    rows::execute(transaction, sql::PIPELINE_CLOSE, params)?;
    let code = Code::PIPELINE_REMOVED;
    let params = named_params! { ":pipeline": name, ":code": code.as_str() };
    rows::execute(transaction, sql::RUN_END, params)?;
    ledger::outdate(transaction, &removal.pipeline, &code, now)?;
    tell(transaction, &removal.pipeline, code, &removal.by, now)
}

fn drop_part(
    transaction: &Connection,
    name: &PipelineName,
    incarnation: &Incarnation,
    limit: u32,
    now: Timestamp,
) -> Result<bool, Failure> {
    let Some(record) = life(transaction, name, incarnation)? else { return Ok(true) };
    if !matches!(record.state, PipelineState::Removing(_)) {
        let error = PortError::new("drop a pipeline", FailureClass::Terminal, Code::UNEXPECTED);
        return Err(error.detail(format!("nobody removes {name}")).into());
    }
    let of_pipeline = named_params! { ":pipeline": name.as_str() };
    let params = named_params! { ":pipeline": name.as_str(), ":limit": limit };
    let dropped = rows::execute(transaction, sql::ITEM_DROP, params)?;
    if dropped == limit as usize {
        return Ok(false);
    }
    for statement in [sql::RUN_DROP, sql::CERTIFICATE_DROP, sql::RULES_DROP, sql::PIPELINE_FREE] {
        rows::execute(transaction, statement, of_pipeline)?;
    }
    tell(transaction, name, Code::PIPELINE_REMOVED, "it is gone, the name is free", now)?;
    Ok(true)
}
