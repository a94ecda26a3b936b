//! Certificates and history in Postgres.

use async_trait::async_trait;
use truekeep_core::certificate::Certificate;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Archive, Event, PipelineRecord};
use truekeep_core::{ScopeId, Timestamp, limits};
use truekeep_postgres::Transaction;

use super::{PostgresLedger, rows, sql};

#[async_trait]
impl Archive for PostgresLedger {
    async fn certificate(&self, scope: &ScopeId) -> Result<Option<Certificate>, PortError> {
        let query = Transaction::query(sql::CERTIFICATE_LOAD).bind(scope.to_string());
        let mut reading = self.reading("read a certificate").await?;
        let found = rows::first(&mut reading, query, rows::certificate).await;
        reading.end(found).await
    }

    async fn pipelines(&self) -> Result<Vec<PipelineRecord>, PortError> {
        let query = Transaction::query(sql::PIPELINE_LIST);
        let mut reading = self.reading("list pipelines").await?;
        let found = rows::all(&mut reading, query, rows::pipeline).await;
        reading.end(found).await
    }

    async fn history(
        &self,
        scope: &ScopeId,
        limit: u32,
    ) -> Result<Vec<(Timestamp, Event)>, PortError> {
        let limit = limits::rows("read the history", limit)?;
        let query = Transaction::query(sql::EVENT_LIST);
        let query = query.bind(scope.to_string()).bind(i64::from(limit));
        let mut reading = self.reading("read the history").await?;
        let found = rows::all(&mut reading, query, rows::event).await;
        reading.end(found).await
    }
}
