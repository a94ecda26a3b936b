//! Runs, rules and checkpoints in Postgres.

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Announced, Announcement, Commit, Committed, Ledger, NewRun, Opened, PipelineRecord,
    PipelineState, ProcedureKind, Pulse, RulesRecord, Run,
};
use truekeep_core::{LedgerId, PipelineName, Revision, ScopeId, Timestamp};
use truekeep_postgres::sqlx::postgres::PgRow;
use truekeep_postgres::{Failure, Transaction};

use super::{Hold, PostgresLedger, commits, rows, sql};

#[async_trait]
impl Ledger for PostgresLedger {
    async fn identity(&self) -> Result<LedgerId, PortError> {
        let mut reading = self.reading("read the ledger's identity").await?;
        let query = Transaction::query(sql::LEDGER_IDENTITY);
        let found = rows::first(&mut reading, query, rows::identity).await;
        let found = found.and_then(|id| rows::expected(id, "identity"));
        reading.end(found).await
    }

    async fn now(&self) -> Result<Timestamp, PortError> {
        let mut reading = self.reading("read the ledger's clock").await?;
        let found = self.clock.now(&mut reading).await;
        reading.end(found).await
    }

    async fn pipeline(&self, name: &PipelineName) -> Result<Option<PipelineRecord>, PortError> {
        let mut reading = self.reading("read a pipeline").await?;
        let found = pipeline(&mut reading, name).await;
        reading.end(found).await
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Announced, PortError> {
        let hold = Hold::Pipeline(&announcement.pipeline);
        let (mut transaction, now) = self.writing("announce rules", hold).await?;
        let done = announce(&mut transaction, announcement, now).await;
        transaction.end(done).await
    }

    async fn open_run(&self, new: &NewRun) -> Result<Opened, PortError> {
        let (mut transaction, now) = self.writing("open a run", Hold::Scope(&new.scope)).await?;
        let done = open_run(&mut transaction, new, now).await;
        transaction.end(done).await
    }

    async fn load(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Run>, PortError> {
        let query = Transaction::query(sql::RUN_LOAD)
            .bind(scope.to_string())
            .bind(rows::procedure_text(procedure));
        let mut reading = self.reading("load a run").await?;
        let found = rows::first(&mut reading, query, |row| rows::run(row, scope)).await;
        reading.end(found).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Committed, PortError> {
        let hold = Hold::Scope(&commit.scope);
        let (mut transaction, now) = self.writing("commit a checkpoint", hold).await?;
        let done = commits::checkpoint(&mut transaction, commit, now).await;
        transaction.end(done).await
    }

    async fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
    ) -> Result<Option<Pulse>, PortError> {
        let mut reading = self.reading("read a run's pulse").await?;
        let found = async {
            let now = self.clock.now(&mut reading).await?;
            let query = Transaction::query(sql::RUN_PULSE)
                .bind(scope.to_string())
                .bind(rows::procedure_text(procedure))
                .bind(now.ms());
            rows::first(&mut reading, query, |row| rows::pulse(row, now)).await
        };
        let found = found.await;
        reading.end(found).await
    }
}

/// A statement about a pipeline, whose first parameter is its name.
pub(super) fn about(sql: &'static str, name: &PipelineName) -> rows::Statement {
    Transaction::query(sql).bind(name.as_str().to_owned())
}

pub(super) async fn pipeline(
    transaction: &mut Transaction,
    name: &PipelineName,
) -> Result<Option<PipelineRecord>, Failure> {
    rows::first(transaction, about(sql::PIPELINE_LOAD, name), rows::pipeline).await
}

/// Refuses a pipeline that is being removed.
fn alive(operation: &'static str, record: &PipelineRecord) -> Result<(), Failure> {
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
pub(super) async fn knows(
    transaction: &mut Transaction,
    operation: &'static str,
    name: &PipelineName,
) -> Result<bool, Failure> {
    let record = pipeline(transaction, name).await?;
    record.as_ref().map_or(Ok(()), |record| alive(operation, record))?;
    Ok(record.is_some())
}

/// A pipeline that the ledger knows and that is not being removed.
pub(super) async fn demand(
    transaction: &mut Transaction,
    operation: &'static str,
    name: &PipelineName,
) -> Result<PipelineRecord, Failure> {
    let record = pipeline(transaction, name).await?.ok_or_else(|| unknown(operation, name))?;
    alive(operation, &record)?;
    Ok(record)
}

/// The ledger does not know the pipeline.
pub(super) fn unknown(operation: &'static str, pipeline: &PipelineName) -> Failure {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_UNKNOWN)
        .detail(format!("the ledger does not know {pipeline}"))
        .into()
}

async fn announce(
    transaction: &mut Transaction,
    new: &Announcement,
    now: Timestamp,
) -> Result<Announced, Failure> {
    const OPERATION: &str = "announce rules";
    let found = pipeline(transaction, &new.pipeline).await?;
    if found.as_ref().map(|record| record.rules.number) != new.replaces {
        return Ok(Announced::Outpaced(found));
    }
    match &found {
        Some(record) => alive(OPERATION, record)?,
        None if new.anew => {}
        // A row without a life tells of one that was removed.
        None => {
            let query = about(sql::PIPELINE_FLOOR, &new.pipeline);
            if rows::first(transaction, query, rows::newest).await?.is_some() {
                return Err(removed(OPERATION, &new.pipeline));
            }
        }
    }
    let (incarnation, state, revision) = match found {
        Some(record) => (record.incarnation, record.state, record.revision),
        None => (new.incarnation.clone(), PipelineState::Working, Revision::default()),
    };
    let query = about(sql::PIPELINE_ANNOUNCE, &new.pipeline)
        .bind(incarnation.as_str().to_owned())
        .bind(rows::stored(new.above.get())?);
    let number = rows::first(transaction, query, rows::rules_number).await?;
    let number = rows::expected(number, "pipeline that was just written")?;
    let query = about(sql::RULES_ADD, &new.pipeline)
        .bind(rows::stored(number.get())?)
        .bind(new.fingerprint.as_str().to_owned())
        .bind(new.text.clone())
        .bind(now.ms());
    rows::execute(transaction, query).await?;
    outdate(transaction, &new.pipeline, &Code::RULES_CHANGED, now).await?;
    rows::execute(transaction, about(sql::RUN_RESTART, &new.pipeline)).await?;
    let Announcement { pipeline: name, fingerprint, text, .. } = new.clone();
    let rules = RulesRecord { number, fingerprint, text, announced_at: now };
    Ok(Announced::InForce(PipelineRecord { name, incarnation, rules, state, revision }))
}

/// What was vouched for of a pipeline is so no longer.
pub(super) async fn outdate(
    transaction: &mut Transaction,
    name: &PipelineName,
    code: &Code,
    now: Timestamp,
) -> Result<(), Failure> {
    let query = about(sql::CERTIFICATE_OUTDATE, name).bind(code.to_string()).bind(now.ms());
    rows::execute(transaction, query).await?;
    Ok(())
}

async fn open_run(
    transaction: &mut Transaction,
    new: &NewRun,
    now: Timestamp,
) -> Result<Opened, Failure> {
    let name = new.scope.pipeline();
    let record = demand(transaction, "open a run", name).await?;
    let (scope, procedure) = (new.scope.to_string(), rows::procedure_text(new.procedure));
    let query = Transaction::query(sql::CERTIFICATE_ADD)
        .bind(scope.clone())
        .bind(name.as_str().to_owned())
        .bind(rows::stored(record.rules.number.get())?)
        .bind(now.ms());
    rows::execute(transaction, query).await?;
    let decode = |row: &PgRow| rows::run(row, &new.scope);
    let query =
        Transaction::query(sql::RUN_FIND).bind(scope.clone()).bind(procedure).bind(new.key.clone());
    if let Some(found) = rows::first(transaction, query, decode).await? {
        let same = found.key == new.key;
        return Ok(if same { Opened::Run(found) } else { Opened::Conflict(found) });
    }
    let query = Transaction::query(sql::RUN_ADD)
        .bind(new.id.as_str().to_owned())
        .bind(scope)
        .bind(name.as_str().to_owned())
        .bind(procedure)
        .bind(new.key.clone())
        .bind(new.phase.clone());
    let added = rows::first(transaction, query, decode).await?;
    Ok(Opened::Run(rows::expected(added, "run that was just added")?))
}
