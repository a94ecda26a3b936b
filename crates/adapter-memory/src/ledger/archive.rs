//! Certificates and history in memory.

use async_trait::async_trait;
use truekeep_core::certificate::Certificate;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Archive, Event, PipelineRecord};
use truekeep_core::{ScopeId, Timestamp, limits};

use super::MemoryLedger;

#[async_trait]
impl Archive for MemoryLedger {
    async fn certificate(&self, scope: &ScopeId) -> Result<Option<Certificate>, PortError> {
        Ok(self.locked().scopes.get(scope).map(|scope| scope.certificate.clone()))
    }

    async fn pipelines(&self) -> Result<Vec<PipelineRecord>, PortError> {
        let state = self.locked();
        Ok(state.names.values().filter_map(|name| name.life.clone()).collect())
    }

    async fn history(
        &self,
        scope: &ScopeId,
        limit: u32,
    ) -> Result<Vec<(Timestamp, Event)>, PortError> {
        let limit = limits::rows("read the history", limit)?;
        let state = self.locked();
        Ok(state.history.of(scope).iter().rev().take(limit as usize).cloned().collect())
    }
}
