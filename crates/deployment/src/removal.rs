//! Removing a pipeline of a configuration: what it would take, and doing it.

use std::sync::Arc;

use serde::Serialize;
use truekeep_core::code::Code;
use truekeep_core::compare::Owns;
use truekeep_core::failure::PortError;
use truekeep_core::limits::REQUEST_MAX;
use truekeep_core::ports::{PipelineRecord, PipelineState, Removal};
use truekeep_core::{PipelineName, ScopeId, Timestamp, Version};
use truekeep_engine::{Gone, Progress, Remover};

use crate::clock::SystemClock;
use crate::config::{Config, PipelineConfig};
use crate::status::LedgerPorts;
use crate::wiring::{open_source, sink_if_there};

/// What a removal concerns.
#[derive(Debug, Clone)]
pub struct Doomed<'c> {
    /// The pipeline as the ledger knows it.
    pub record: PipelineRecord,
    /// Where its source and its sink are; none if both are left alone.
    pub sides: Option<&'c PipelineConfig>,
    /// Whether the sink is left alone all the same.
    pub spares_sink: bool,
    /// Whether the sink is emptied.
    pub purge: bool,
}

/// What would be removed, as it is shown before anything is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The pipeline.
    pub pipeline: String,
    /// Where the source is; none if it is left alone.
    pub source: Option<String>,
    /// The table that it follows.
    pub table: Option<String>,
    /// Pipelines of the configuration that follow the same table, so that capture stays.
    pub shared_with: Vec<String>,
    /// Where the sink is; none if it is left alone.
    pub sink: Option<String>,
    /// Whether the sink is emptied.
    pub purge: bool,
    /// Whether the removal is under way, and nobody has to say yes again.
    pub under_way: bool,
}

/// When a pipeline of this name was removed, if that is the last that happened to the name.
///
/// # Errors
/// The ledger's.
pub async fn removed_at(
    ledger: &LedgerPorts,
    name: &PipelineName,
) -> Result<Option<Timestamp>, PortError> {
    let last = ledger.archive.history(&ScopeId::whole(name.clone()), 1).await?;
    let last = last.into_iter().next();
    Ok(last.filter(|(_, event)| event.code == Code::PIPELINE_REMOVED).map(|(at, _)| at))
}

impl Doomed<'_> {
    /// The configuration of its sink, if that is to be reached.
    fn sink(&self) -> Option<&PipelineConfig> {
        self.sides.filter(|_| !self.spares_sink)
    }

    /// What would be removed.
    pub fn plan(&self, config: &Config) -> Plan {
        let under_way = match self.record.state {
            PipelineState::Removing(removing) => removing.purge || !self.purge,
            PipelineState::Working | PipelineState::Paused => false,
        };
        let source = self.sides.map(|sides| config.source_of(sides).to_string());
        let shares = |sides| shared_with(config, sides).map(|name| name.to_string()).collect();
        Plan {
            pipeline: self.record.name.to_string(),
            source,
            table: self.sides.map(|sides| sides.table.clone()),
            shared_with: self.sides.map(shares).unwrap_or_default(),
            sink: self.sink().map(|sides| config.sink_of(sides).target.to_string()),
            purge: self.purge,
            under_way,
        }
    }

    /// Removes it, or goes on with its removal; `None` if it is gone already.
    ///
    /// # Errors
    /// Those of the adapters and ports. Run it again: it goes on.
    pub async fn remove(
        &self,
        config: &Config,
        ledger: &LedgerPorts,
        by: String,
        told: impl FnMut(Progress),
    ) -> Result<Option<Gone>, PortError> {
        let order = Removal {
            pipeline: self.record.name.clone(),
            incarnation: self.record.incarnation.clone(),
            purge: self.purge,
            newest: Version::default(),
            request_max: REQUEST_MAX,
            by,
        };
        let source = match self.sides {
            Some(sides) => Some(open_source(config, sides).await?),
            None => None,
        };
        let sink = match (self.sink(), &source) {
            (Some(sides), Some(source)) => Some(sink_if_there(config, sides, source).await?),
            _ => None,
        };
        let remover = Remover {
            ledger: ledger.ledger.as_ref(),
            operations: ledger.operations.as_ref(),
            clock: &SystemClock,
            source: source.as_ref().map(|source| (source.feed.as_ref(), source.capture.as_ref())),
            sink: sink.as_ref().map(Arc::as_ref),
            owns: self.sides.map_or(Owns::default(), |sides| sides.owns),
            shared: self.sides.is_some_and(|one| shared_with(config, one).next().is_some()),
        };
        remover.run(&order, told).await
    }
}

/// Pipelines of the configuration that read the same feed.
fn shared_with<'c>(
    config: &'c Config,
    one: &'c PipelineConfig,
) -> impl Iterator<Item = &'c PipelineName> {
    let others = config.pipelines.iter().filter(move |other| other.name != one.name);
    others.filter(move |other| config.share_feed(one, other)).map(|other| &other.name)
}
