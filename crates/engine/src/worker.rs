//! A worker: many scopes, one lease keeper, one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use truekeep_core::ScopeId;
use truekeep_core::code::Code;

use crate::keeper::Keeper;
use crate::observer::{Happening, Observer};
use crate::pipeline::{Pipeline, Ports, Settings};
use crate::scope::{Ending, Runner, Until};
use crate::stop::Stop;

/// Works on pipelines until it is stopped, or until nothing is due.
#[derive(Debug)]
pub struct Worker {
    ports: Ports,
    settings: Arc<Settings>,
    observer: Arc<dyn Observer>,
    keeper: Arc<Keeper>,
    pipelines: Vec<Pipeline>,
}

/// How each scope ended, by scope.
pub type Report = Vec<(ScopeId, Ending)>;

impl Worker {
    /// A worker for these pipelines. Its holder id is drawn here: unique per process start.
    pub fn new(
        ports: Ports,
        pipelines: Vec<Pipeline>,
        settings: Settings,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let keeper = Arc::new(Keeper::new(
            Arc::clone(&ports.leases),
            Arc::clone(&ports.clock),
            ports.entropy.holder_id(),
            settings.lease_ttl,
            settings.turn_max,
        ));
        Self { ports, settings: Arc::new(settings), observer, keeper, pipelines }
    }

    /// Works until somebody asks to stop; then the turns under way are finished and every lease is
    /// given back.
    pub async fn run(self, stop: Stop) -> Report {
        self.drive(Until::Stopped, stop).await
    }

    /// Works until nothing is due in any scope, or nothing can be done there.
    pub async fn run_once(self, stop: Stop) -> Report {
        self.drive(Until::Drained, stop).await
    }

    async fn drive(self, until: Until, stop: Stop) -> Report {
        // Scopes share the turns fairly: the semaphore serves those that wait in order.
        let turns = Arc::new(Semaphore::new(self.settings.turns_at_once.max(1)));
        let mut scopes = JoinSet::new();
        let mut tasks = BTreeMap::new();
        for pipeline in &self.pipelines {
            let scope = pipeline.scope.clone();
            let runner = Runner {
                ports: self.ports.clone(),
                pipeline: pipeline.clone(),
                settings: Arc::clone(&self.settings),
                keeper: Arc::clone(&self.keeper),
                observer: Arc::clone(&self.observer),
                turns: Arc::clone(&turns),
                held: None,
                opened: None,
                asked: None,
                failures: 0,
                pulsed: None,
                moved_at: Duration::ZERO,
            };
            let task = scopes.spawn(runner.run(until, stop.clone()));
            tasks.insert(task.id(), scope);
        }
        // A set ends its tasks when it is dropped: a worker that is dropped renews nothing.
        let mut renewals = JoinSet::new();
        let keeper = Arc::clone(&self.keeper);
        renewals.spawn(async move { keeper.run().await });
        let mut report = Vec::new();
        while let Some(ended) = scopes.join_next_with_id().await {
            let (id, ending) = match ended {
                Ok(ended) => ended,
                // A bug of ours ended that scope's task; the others go on.
                Err(error) => (error.id(), self.broke(tasks.get(&error.id()), &error)),
            };
            report.extend(tasks.remove(&id).map(|scope| (scope, ending)));
        }
        report.sort_by(|(a, _), (b, _)| a.cmp(b));
        report
    }

    fn broke(&self, scope: Option<&ScopeId>, error: &JoinError) -> Ending {
        let (code, text) = (Code::UNEXPECTED, error.to_string());
        tracing::error!(?scope, error = text, "a scope's task broke");
        if let Some(scope) = scope {
            let what = Happening::Halted { code: code.clone(), text: text.clone() };
            self.observer.happened(scope, &what);
        }
        Ending::Halted(code, text)
    }
}
