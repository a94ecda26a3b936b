//! A worker over a configuration: opens pipelines, announces first starts, and works on what could be opened.
//!
//! A pipeline that cannot be opened stops no other; it is tried again now and then.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use truekeep_core::failure::PortError;
use truekeep_core::ports::Clock;
use truekeep_core::{ScopeId, limits};
use truekeep_engine::{Happening, Observer, Pipeline, Ports, Report, Settings, Stop, Worker};

use crate::announce::{Remains, first_start};
use crate::clock::SystemClock;
use crate::config::{Config, PipelineConfig};
use crate::entropy::RandomEntropy;
use crate::spill::FolderSpill;
use crate::status::LedgerPorts;
use crate::wiring::{Wired, open_pipeline};

/// What workers are made of.
#[derive(Debug, Clone)]
pub struct Workshop<'c> {
    /// The configuration.
    pub config: &'c Config,
    /// The ledger, open for work.
    pub ledger: &'c LedgerPorts,
    /// Hears what happens.
    pub observer: Arc<dyn Observer>,
}

/// Workers, and the pipelines that could not be opened.
#[derive(Debug)]
pub struct Assembled<'c> {
    /// One for each size of page, as a worker has one; so almost always one.
    pub workers: Vec<Worker>,
    /// Each with why not.
    pub refused: Vec<(&'c PipelineConfig, PortError)>,
}

impl<'c> Workshop<'c> {
    /// Opens pipelines and makes workers for those that can be worked on.
    pub async fn assemble(&self, pipelines: &[&'c PipelineConfig]) -> Assembled<'c> {
        let mut opened: BTreeMap<u32, Vec<Pipeline>> = BTreeMap::new();
        let mut refused = Vec::new();
        for pipeline in pipelines {
            match self.open(pipeline).await {
                Ok(made) => opened.entry(pipeline.page_rows).or_default().push(made),
                Err(error) => refused.push((*pipeline, error)),
            }
        }
        let workers = opened.into_iter().map(|(rows, pipelines)| self.worker(rows, pipelines));
        Assembled { workers: workers.collect(), refused }
    }

    async fn open(&self, pipeline: &PipelineConfig) -> Result<Pipeline, PortError> {
        let Wired { source, sink } = open_pipeline(self.config, pipeline).await?;
        let ledger = self.ledger.ledger.as_ref();
        let remains = Remains::of(sink.as_ref(), false).await;
        first_start(ledger, &RandomEntropy, &pipeline.name, &source.rules, remains).await?;
        Ok(Pipeline {
            scope: ScopeId::whole(pipeline.name.clone()),
            fingerprint: source.rules.fingerprint,
            rules: source.rules.text,
            feed: source.feed,
            records: source.records,
            capture: source.capture,
            sink,
            reconcile_every: pipeline.reconcile_every,
            owns: pipeline.owns,
            rate_max: self.config.sink_of(pipeline).rate_max,
            source_went_back: pipeline.source_went_back,
        })
    }

    fn worker(&self, page_rows: u32, pipelines: Vec<Pipeline>) -> Worker {
        let ports = Ports {
            ledger: Arc::clone(&self.ledger.ledger),
            leases: Arc::clone(&self.ledger.leases),
            items: Arc::clone(&self.ledger.items),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(RandomEntropy),
            spill: Arc::new(FolderSpill::new(self.config.worker.spill.clone())),
        };
        let lease_ttl = self.config.worker.lease;
        let settings = Settings { lease_ttl, page_rows, ..Settings::default() };
        Worker::new(ports, pipelines, settings, Arc::clone(&self.observer))
    }

    /// Works until nothing is due; a pipeline that cannot be opened is left out and told.
    pub async fn run_once(
        &self,
        pipelines: &[&'c PipelineConfig],
        stop: &Stop,
    ) -> (Report, Vec<(&'c PipelineConfig, PortError)>) {
        let Assembled { workers, refused } = self.assemble(pipelines).await;
        let mut running = JoinSet::new();
        for worker in workers {
            let stop = stop.clone();
            running.spawn(async move { worker.run_once(stop).await });
        }
        (running.join_all().await.concat(), refused)
    }

    /// Works until somebody asks to stop.
    pub async fn run(&self, pipelines: &[&'c PipelineConfig], stop: &Stop) {
        let mut running = JoinSet::new();
        let mut waiting = pipelines.to_vec();
        while !waiting.is_empty() && !stop.asked() {
            let Assembled { workers, refused } = self.assemble(&waiting).await;
            for worker in workers {
                let stop = stop.clone();
                running.spawn(async move { worker.run(stop).await });
            }
            waiting = refused.iter().map(|(pipeline, _)| *pipeline).collect();
            for (pipeline, error) in &refused {
                let trouble = Happening::Trouble {
                    code: error.code.clone(),
                    text: error.chain(),
                    again_in: limits::HALTED_RECHECK,
                };
                self.observer.happened(&ScopeId::whole(pipeline.name.clone()), &trouble);
            }
            if !waiting.is_empty() {
                tokio::select! {
                    () = stop.wait() => {}
                    () = SystemClock.sleep(limits::HALTED_RECHECK) => {}
                }
            }
        }
        running.join_all().await;
    }
}
