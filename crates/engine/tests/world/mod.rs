//! A world in memory with virtual time: the real engine over the reference ledger, source and sink.

#![expect(clippy::disallowed_methods, reason = "the runtime's paused clock is the world's clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use truekeep_adapter_memory::{MemoryLedger, MemorySource};
use truekeep_core::certificate::Certificate;
use truekeep_core::ports::{Archive, Clock, Entropy, Feed, Records, Sink};
use truekeep_core::{
    CommitToken, Fingerprint, HolderId, Incarnation, Key, LeaseToken, LedgerId, PipelineName,
    RunId, ScopeId, Timestamp,
};
use truekeep_engine::{Pipeline, Ports, Report, Settings, Silent, Stopper, Worker};
use truekeep_sink_memory::MemorySink;

/// The runtime's clock, which the tests pause.
#[derive(Debug)]
pub struct Virtual(tokio::time::Instant);

#[async_trait]
impl Clock for Virtual {
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }
}

/// Counted tokens and draws in the middle.
#[derive(Debug, Default)]
pub struct Counted(AtomicU64);

impl Counted {
    fn next(&self, kind: &str) -> String {
        format!("{kind}-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Entropy for Counted {
    fn draw(&self) -> f64 {
        0.5
    }
    fn commit_token(&self) -> CommitToken {
        CommitToken::parse(&self.next("commit")).expect("valid")
    }
    fn lease_token(&self) -> LeaseToken {
        LeaseToken::parse(&self.next("lease")).expect("valid")
    }
    fn run_id(&self) -> RunId {
        RunId::parse(&self.next("run")).expect("valid")
    }
    fn holder_id(&self) -> HolderId {
        HolderId::parse(&self.next("holder")).expect("valid")
    }
    fn incarnation(&self) -> Incarnation {
        Incarnation::parse(&self.next("life")).expect("valid")
    }
}

/// Everything a worker needs, and handles to look behind the ports.
#[derive(Debug, Clone)]
pub struct World {
    pub ledger: Arc<MemoryLedger>,
    pub source: Arc<MemorySource>,
    pub sink: Arc<MemorySink>,
    pub ports: Ports,
    pub settings: Settings,
    pub fingerprint: String,
}

impl World {
    /// An empty world with capture installed.
    pub fn new() -> Self {
        let began = tokio::time::Instant::now();
        let now = move || {
            let ms = i64::try_from(began.elapsed().as_millis()).expect("a short test");
            Timestamp::from_ms(1_000_000 + ms)
        };
        let id = LedgerId::parse("ledger").expect("valid");
        let ledger = Arc::new(MemoryLedger::new(id, Arc::new(now)));
        let ports = Ports {
            ledger: ledger.clone(),
            leases: ledger.clone(),
            items: ledger.clone(),
            clock: Arc::new(Virtual(began)),
            entropy: Arc::new(Counted::default()),
        };
        Self {
            ledger,
            source: Arc::new(MemorySource::captured()),
            sink: Arc::new(MemorySink::new()),
            ports,
            settings: Settings::default(),
            fingerprint: "rules-a".into(),
        }
    }

    pub fn scope() -> ScopeId {
        ScopeId::whole(PipelineName::parse("cities").expect("valid"))
    }

    pub fn pipeline(&self) -> Pipeline {
        self.pipeline_over(self.source.clone(), self.source.clone(), self.sink.clone())
    }

    pub fn pipeline_over(
        &self,
        feed: Arc<dyn Feed>,
        records: Arc<dyn Records>,
        sink: Arc<dyn Sink>,
    ) -> Pipeline {
        Pipeline {
            scope: Self::scope(),
            fingerprint: Fingerprint::parse(&self.fingerprint).expect("valid"),
            rules: "{}".into(),
            feed,
            records,
            sink,
        }
    }

    pub fn worker(&self, pipeline: Pipeline) -> Worker {
        Worker::new(self.ports.clone(), vec![pipeline], self.settings.clone(), Arc::new(Silent))
    }

    /// Works until nothing is due.
    pub async fn drain(&self) -> Report {
        let (_stopper, stop) = Stopper::new();
        self.worker(self.pipeline()).run_once(stop).await
    }

    pub async fn certificate(&self) -> Certificate {
        self.ledger.certificate(&Self::scope()).await.expect("answered").expect("known")
    }

    /// The sink's live documents as text.
    pub fn mirrored(&self) -> Vec<(Key, String)> {
        self.sink
            .contents()
            .into_iter()
            .map(|(key, held)| (key, format!("{:?}", held.document.values())))
            .collect()
    }

    /// Whether the sink holds exactly the source's rows.
    pub fn equal(&self) -> bool {
        let rows: Vec<_> = self
            .source
            .rows()
            .into_iter()
            .map(|(key, text)| (key, format!("{:?}", [truekeep_core::Value::Text(text.into())])))
            .collect();
        rows == self.mirrored()
    }
}

pub fn key(text: &str) -> Key {
    Key::new(text)
}
