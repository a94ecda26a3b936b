//! What readers ask a ledger for.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::code::Code;
use crate::failure::PortError;
use crate::ports::PipelineRecord;
use crate::{ScopeId, Timestamp};

/// Something worth telling an operator later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// A code, or the name of what happened.
    pub code: Code,
    /// What happened, bounded.
    pub text: String,
}

/// What readers ask for.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Archive: Debug + Send + Sync {
    /// The certificate of a scope; `None` if the ledger does not know the scope.
    async fn certificate(&self, scope: &ScopeId) -> Result<Option<Certificate>, PortError>;

    /// The pipelines that the ledger knows, by name.
    async fn pipelines(&self) -> Result<Vec<PipelineRecord>, PortError>;

    /// The newest events of a scope, newest first, at most `limit`.
    async fn history(
        &self,
        scope: &ScopeId,
        limit: u32,
    ) -> Result<Vec<(Timestamp, Event)>, PortError>;
}
