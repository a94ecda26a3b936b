//! Runs, rules and checkpoints in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, named_params};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Announced, Announcement, Commit, Committed, Ledger, NewRun, Opened, PipelineRecord,
    PipelineState, ProcedureKind, Pulse, RulesRecord, Run,
};
use truekeep_core::{LedgerId, PipelineName, Revision, ScopeId, Timestamp};
use truekeep_sqlite::Failure;

use super::{SqliteLedger, rows, sql};

#[async_trait]
impl Ledger for SqliteLedger {
    async fn identity(&self) -> Result<LedgerId, PortError> {
        self.read("read the ledger's identity", |connection, _| {
            let id = rows::first(connection, sql::LEDGER_IDENTITY, [], |row| {
                rows::word(row, "id", LedgerId::parse)
            })?;
            rows::expected(id, "identity")
        })
        .await
    }

    async fn now(&self) -> Result<Timestamp, PortError> {
        self.read("read the ledger's clock", |connection, clock| clock.now(connection)).await
    }

    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError> {
        let name = name.clone();
        self.read("read a pipeline", move |connection, _| pipeline(connection, &name)).await
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Announced, PortError> {
        let new = announcement.clone();
        self.write("announce rules", move |transaction, now| announce(transaction, new, now)).await
    }

    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError> {
        let new = new.clone();
        self.write("open a run", move |transaction, now| open_run(transaction, &new, now)).await
    }

    async fn load(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Run>, PortError> {
        let scope = scope.clone();
        self.read("load a run", move |connection, _| {
            let params = named_params! {
                ":scope": scope.to_string(),
                ":procedure": rows::procedure_text(procedure),
            };
            rows::first(connection, sql::RUN_LOAD, params, |row| rows::run(row, &scope))
        })
        .await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError> {
        self.write_checkpoint(commit.clone()).await
    }

    async fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Pulse>, PortError> {
        let scope = scope.to_string();
        self.read("read a run's pulse", move |connection, clock| {
            let now = clock.now(connection)?;
            let params = named_params! {
                ":scope": scope,
                ":procedure": rows::procedure_text(procedure),
                ":now": now.ms(),
            };
            rows::first(connection, sql::RUN_PULSE, params, |row| rows::pulse(row, now))
        })
        .await
    }
}

pub(super) fn pipeline(
    connection: &Connection,
    name: &PipelineName,
) -> Result<Option<PipelineRecord>, Failure> {
    let params = named_params! { ":pipeline": name.as_str() };
    rows::first(connection, sql::PIPELINE_LOAD, params, rows::pipeline)
}

/// Refuses a pipeline that is being removed.
pub(super) fn alive(operation: &'static str, record: &PipelineRecord) -> Result<(), Failure> {
    match record.state {
        PipelineState::Working | PipelineState::Paused => Ok(()),
        PipelineState::Removing(_) => Err(removed(operation, &record.name)),
    }
}

fn removed(operation: &'static str, pipeline: &PipelineName) -> Failure {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_REMOVED)
        .detail(format!("{pipeline} is being removed, or was removed"))
        .into()
}

/// Whether the ledger knows a pipeline; one that is being removed is refused.
pub(super) fn knows(
    transaction: &Connection,
    operation: &'static str,
    name: &PipelineName,
) -> Result<bool, Failure> {
    let record = pipeline(transaction, name)?;
    record.as_ref().map_or(Ok(()), |record| alive(operation, record))?;
    Ok(record.is_some())
}

/// A pipeline that the ledger knows and that is not being removed.
pub(super) fn demand(
    transaction: &Connection,
    operation: &'static str,
    name: &PipelineName,
) -> Result<PipelineRecord, Failure> {
    let record = pipeline(transaction, name)?.ok_or_else(|| unknown(operation, name))?;
    alive(operation, &record)?;
    Ok(record)
}

/// The ledger does not know the pipeline.
pub(super) fn unknown(operation: &'static str, pipeline: &PipelineName) -> Failure {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_UNKNOWN)
        .detail(format!("the ledger does not know {pipeline}"))
        .into()
}

fn announce(
    transaction: &Connection,
    new: Announcement,
    now: Timestamp,
) -> Result<Announced, Failure> {
    const OPERATION: &str = "announce rules";
    let found = pipeline(transaction, &new.pipeline)?;
    if found.as_ref().map(|record| record.rules.number) != new.replaces {
        return Ok(Announced::Outpaced(found));
    }
    let params = named_params! { ":pipeline": new.pipeline.as_str() };
    match &found {
        Some(record) => alive(OPERATION, record)?,
        None if new.anew => {}
        // A row without a life tells of one that was removed.
        None if rows::first(transaction, sql::PIPELINE_FLOOR, params, rows::newest)?.is_some() => {
            return Err(removed(OPERATION, &new.pipeline));
        }
        None => {}
    }
    let name = new.pipeline.as_str();
    let (incarnation, state, revision) = match found {
        Some(record) => (record.incarnation, record.state, record.revision),
        None => (new.incarnation, PipelineState::Working, Revision::default()),
    };
    let params = named_params! {
        ":pipeline": name,
        ":incarnation": incarnation.as_str(),
        ":above": rows::stored(new.above.get())?,
    };
    let number = rows::first(transaction, sql::PIPELINE_ANNOUNCE, params, rows::rules_number)?;
    let number = rows::expected(number, "pipeline that was just written")?;
    let params = named_params! {
        ":pipeline": name,
        ":number": rows::stored(number.get())?,
        ":fingerprint": new.fingerprint.as_str(),
        ":text": new.text,
        ":now": now.ms(),
    };
    rows::execute(transaction, sql::RULES_ADD, params)?;
    outdate(transaction, &new.pipeline, &Code::RULES_CHANGED, now)?;
    rows::execute(transaction, sql::RUN_RESTART, named_params! { ":pipeline": name })?;
    let Announcement { pipeline: name, fingerprint, text, .. } = new;
    let rules = RulesRecord { number, fingerprint, text, announced_at: now };
    Ok(Announced::InForce(PipelineRecord { name, incarnation, rules, state, revision }))
}

/// What was vouched for of a pipeline is so no longer.
pub(super) fn outdate(
    transaction: &Connection,
    name: &PipelineName,
    code: &Code,
    now: Timestamp,
) -> Result<(), Failure> {
    let params =
        named_params! { ":pipeline": name.as_str(), ":code": code.as_str(), ":now": now.ms() };
    rows::execute(transaction, sql::CERTIFICATE_OUTDATE, params)?;
    Ok(())
}

fn open_run(transaction: &Connection, new: &NewRun, now: Timestamp) -> Result<Opened, Failure> {
    let name = new.scope.pipeline();
    let record = demand(transaction, "open a run", name)?;
    let scope = new.scope.to_string();
    let params = named_params! {
        ":scope": scope,
        ":pipeline": name.as_str(),
        ":rules": rows::stored(record.rules.number.get())?,
        ":now": now.ms(),
    };
    rows::execute(transaction, sql::CERTIFICATE_ADD, params)?;
    let decode = |row: &rusqlite::Row<'_>| rows::run(row, &new.scope);
    let params = named_params! {
        ":scope": scope,
        ":procedure": rows::procedure_text(new.procedure),
        ":key": new.key,
    };
    if let Some(found) = rows::first(transaction, sql::RUN_FIND, params, decode)? {
        let same = found.key == new.key;
        return Ok(if same { Opened::Run(found) } else { Opened::Conflict(found) });
    }
    let params = named_params! {
        ":id": new.id.as_str(),
        ":scope": scope,
        ":pipeline": name.as_str(),
        ":procedure": rows::procedure_text(new.procedure),
        ":key": new.key,
        ":phase": new.phase,
    };
    let added = rows::first(transaction, sql::RUN_ADD, params, decode)?;
    Ok(Opened::Run(rows::expected(added, "run that was just added")?))
}
