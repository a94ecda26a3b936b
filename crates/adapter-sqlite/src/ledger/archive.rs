//! Certificates and history in SQLite.

use async_trait::async_trait;
use rusqlite::named_params;
use truekeep_core::certificate::Certificate;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Archive, Event, PipelineRecord};
use truekeep_core::{ScopeId, Timestamp, limits};

use super::{SqliteLedger, rows, sql};

#[async_trait]
impl Archive for SqliteLedger {
    async fn certificate(&self, scope: &ScopeId) -> Result<Option<Certificate>, PortError> {
        let scope = scope.to_string();
        self.read("read a certificate", move |connection, _| {
            let params = named_params! { ":scope": scope };
            rows::first(connection, sql::CERTIFICATE_LOAD, params, rows::certificate)
        })
        .await
    }

    async fn pipelines(&self) -> Result<Vec<PipelineRecord>, PortError> {
        self.read("list pipelines", |connection, _| {
            rows::all(connection, sql::PIPELINE_LIST, [], rows::pipeline)
        })
        .await
    }

    async fn history(
        &self,
        scope: &ScopeId,
        limit: u32,
    ) -> Result<Vec<(Timestamp, Event)>, PortError> {
        let limit = limits::rows("read the history", limit)?;
        let scope = scope.to_string();
        self.read("read the history", move |connection, _| {
            let params = named_params! { ":scope": scope, ":limit": limit };
            rows::all(connection, sql::EVENT_LIST, params, rows::event)
        })
        .await
    }
}
