//! A world in memory with virtual time: the real engine over the reference ledger, source and sink.

#![expect(clippy::disallowed_methods, reason = "the runtime's paused clock is the world's clock")]

mod ports;
pub mod tap;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use truekeep_adapter_memory::{MemoryLedger, MemorySource, MemorySpill};
use truekeep_core::certificate::Certificate;
use truekeep_core::compare::Owns;
use truekeep_core::follow::{Phase, SourceWentBack};
use truekeep_core::ports::{Archive, Clock, Entropy, Items, Ledger, ProcedureKind, Run};
use truekeep_core::{
    CommitToken, Fingerprint, HolderId, Incarnation, Key, LeaseToken, LedgerId, PipelineName,
    RunId, ScopeId, Timestamp,
};
use truekeep_engine::{
    Ending, Happening, Observer, Pipeline, Ports, Report, Settings, Stopper, Worker,
};
use truekeep_sink_memory::MemorySink;

use tap::{Tap, Tapped};

/// The runtime's clock, which the tests pause.
#[derive(Debug)]
pub struct Virtual(pub Instant);

#[async_trait]
impl Clock for Virtual {
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, length: Duration) {
        sleep_until(Instant::now() + length).await;
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

/// Remembers what happened.
#[derive(Debug, Default)]
pub struct Witness(Mutex<Vec<(ScopeId, Happening)>>);

impl Observer for Witness {
    fn happened(&self, scope: &ScopeId, what: &Happening) {
        self.0.lock().expect("sound").push((scope.clone(), what.clone()));
    }
}

/// A ledger, a source and a sink.
#[derive(Debug, Clone)]
pub struct World {
    pub ledger: Arc<MemoryLedger>,
    pub source: Arc<MemorySource>,
    pub sink: Arc<MemorySink>,
    pub spill: MemorySpill,
    pub settings: Settings,
    pub fingerprint: String,
    /// How far the ledger's clock is from everybody else's, in milliseconds.
    pub skew_ms: Arc<AtomicI64>,
    pub began: Instant,
    pub entropy: Arc<Counted>,
    pub source_went_back: SourceWentBack,
    pub owns: Owns,
    pub rate_max: Option<NonZeroU32>,
}

impl World {
    /// An empty world with capture installed.
    pub fn new() -> Self {
        let began = Instant::now();
        let skew_ms = Arc::new(AtomicI64::new(0));
        Self {
            ledger: Self::ledger("ledger", began, &skew_ms),
            source: Arc::new(MemorySource::captured()),
            sink: Arc::new(MemorySink::new()),
            spill: MemorySpill::new(usize::MAX),
            settings: Settings::default(),
            fingerprint: "rules-a".into(),
            skew_ms,
            began,
            entropy: Arc::default(),
            source_went_back: SourceWentBack::Halt,
            owns: Owns::All,
            rate_max: None,
        }
    }

    fn ledger(id: &str, began: Instant, skew_ms: &Arc<AtomicI64>) -> Arc<MemoryLedger> {
        let skew = Arc::clone(skew_ms);
        let now = move || {
            let ms = i64::try_from(began.elapsed().as_millis()).expect("a short test");
            Timestamp::from_ms(100_000_000 + ms + skew.load(Ordering::SeqCst))
        };
        Arc::new(MemoryLedger::new(LedgerId::parse(id).expect("valid"), Arc::new(now)))
    }

    /// The same source and sink, with another ledger.
    pub fn under_another_ledger(&self, id: &str) -> Self {
        Self { ledger: Self::ledger(id, self.began, &self.skew_ms), ..self.clone() }
    }

    pub fn scope() -> ScopeId {
        scope("cities")
    }

    /// A process of its own, with ports that nobody else's trouble touches.
    pub fn process(&self) -> Process {
        let tap = Arc::new(Tap::new(self.began));
        Process { world: self.clone(), tap, witness: Arc::default() }
    }

    /// Works until nothing is due.
    pub async fn drain(&self) -> Ending {
        self.process().drain().await
    }

    pub async fn certificate(&self) -> Certificate {
        self.ledger.certificate(&Self::scope()).await.expect("answered").expect("known")
    }

    /// The run as it is stored, with its phase.
    pub async fn run(&self) -> (Run, Phase) {
        let run = self.ledger.load(&Self::scope(), ProcedureKind::Follow).await;
        let run = run.expect("answered").expect("open");
        let phase = serde_json::from_str(&run.phase).expect("a phase");
        (run, phase)
    }

    pub async fn item(&self, key: &str) -> Option<truekeep_core::ports::Item> {
        self.ledger.item(&Self::scope(), &Key::new(key)).await.expect("answered")
    }

    /// Rows `from..to`, named so that their order is their number's.
    pub fn rows(&self, numbers: std::ops::Range<u32>, text: &str) {
        for n in numbers {
            self.source.put(&row(n), text);
        }
    }

    /// Keys whose row and mirror differ.
    pub fn differences(&self) -> Vec<Key> {
        let rows = self.source.rows();
        let held = self.sink.contents();
        let text = |key: &Key| {
            held.get(key).map(|held| match &held.document.values()[0] {
                truekeep_core::Value::Text(text) => text.to_string(),
                other => format!("{other:?}"),
            })
        };
        let keys: std::collections::BTreeSet<_> = rows.keys().chain(held.keys()).collect();
        keys.into_iter().filter(|key| rows.get(*key).cloned() != text(key)).cloned().collect()
    }

    /// Whether the sink holds exactly the source's rows.
    pub fn equal(&self) -> bool {
        self.differences().is_empty()
    }

    /// The ledger's clock jumps.
    pub fn jump(&self, seconds: i64) {
        self.skew_ms.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// One process of the world.
#[derive(Debug, Clone)]
pub struct Process {
    pub world: World,
    pub tap: Arc<Tap>,
    pub witness: Arc<Witness>,
}

impl Process {
    pub fn pipeline(&self) -> Pipeline {
        self.pipeline_of("cities", &self.world.source, &self.world.sink)
    }

    pub fn pipeline_of(
        &self,
        name: &str,
        source: &Arc<MemorySource>,
        sink: &Arc<MemorySink>,
    ) -> Pipeline {
        Pipeline {
            scope: scope(name),
            fingerprint: Fingerprint::parse(&self.world.fingerprint).expect("valid"),
            rules: "{}".into(),
            feed: self.tapped(source),
            records: self.tapped(source),
            capture: self.tapped(source),
            reconcile_every: None,
            owns: self.world.owns,
            rate_max: self.world.rate_max,
            source_went_back: self.world.source_went_back,
            sink: self.tapped(sink),
        }
    }

    pub fn tapped<P>(&self, port: &Arc<P>) -> Arc<Tapped<P>> {
        Arc::new(Tapped { port: Arc::clone(port), tap: Arc::clone(&self.tap) })
    }

    pub fn worker(&self, pipelines: Vec<Pipeline>) -> Worker {
        let ledger = self.tapped(&self.world.ledger);
        let ports = Ports {
            ledger: ledger.clone(),
            leases: ledger.clone(),
            items: ledger,
            clock: Arc::new(self.clock()),
            entropy: self.world.entropy.clone(),
            spill: Arc::new(self.world.spill.clone()),
        };
        Worker::new(ports, pipelines, self.world.settings.clone(), self.witness.clone())
    }

    pub fn clock(&self) -> Virtual {
        Virtual(self.world.began)
    }

    /// Works until nothing is due.
    pub async fn drain(&self) -> Ending {
        let (_stopper, stop) = Stopper::new();
        let report = self.worker(vec![self.pipeline()]).run_once(stop).await;
        report.into_iter().next().expect("one scope").1
    }

    /// Works until it is stopped.
    pub fn start(&self) -> Running {
        self.start_all(vec![self.pipeline()])
    }

    pub fn start_all(&self, pipelines: Vec<Pipeline>) -> Running {
        let (stopper, stop) = Stopper::new();
        Running { stopper, task: tokio::spawn(self.worker(pipelines).run(stop)) }
    }

    /// What happened so far.
    pub fn happened(&self) -> Vec<Happening> {
        self.witness.0.lock().expect("sound").iter().map(|(_, what)| what.clone()).collect()
    }
}

/// A process at work.
#[derive(Debug)]
pub struct Running {
    pub stopper: Stopper,
    task: JoinHandle<Report>,
}

impl Running {
    /// Asks it to stop and waits for that.
    pub async fn stop(self) -> Report {
        self.stopper.stop();
        self.task.await.expect("no panic")
    }

    /// Ends it as a kill does: nothing more is done.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("killed").is_cancelled());
    }
}

/// Lets so many milliseconds pass.
pub async fn pass_ms(ms: u64) {
    Virtual(Instant::now()).sleep(Duration::from_millis(ms)).await;
}

/// Lets so many seconds pass.
pub async fn pass(seconds: u64) {
    pass_ms(seconds * 1_000).await;
}

pub fn scope(name: &str) -> ScopeId {
    ScopeId::whole(PipelineName::parse(name).expect("valid"))
}

pub fn key(text: &str) -> Key {
    Key::new(text)
}

pub fn row(number: u32) -> Key {
    Key::new(format!("{number:05}"))
}
