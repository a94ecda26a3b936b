//! A worker process: the real engine over the ways to the stores, with a clock and draws of its own.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use truekeep_adapter_memory::MemorySpill;
use truekeep_core::compare::Owns;
use truekeep_core::ports::{Clock, Entropy};
use truekeep_core::{CommitToken, Fingerprint, HolderId, Incarnation, LeaseToken, RunId, ScopeId};
use truekeep_engine::{Happening, Observer, Pipeline, Ports, Worker};

use crate::ports::{LedgerPort, SinkPort, SourcePort};
use crate::seed::Stream;
use crate::wire::Wire;
use crate::world::{Store, World};

/// One start of a worker.
#[derive(Debug)]
pub(crate) struct Process {
    pub world: Arc<World>,
    pub name: String,
    /// The configuration it was started with.
    pub fingerprint: String,
    stalled_until: Mutex<Duration>,
    /// Told when a record has killed it.
    pub killed: Notify,
}

impl Process {
    pub fn new(world: &Arc<World>, name: String) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            name,
            fingerprint: world.fingerprint(),
            stalled_until: Mutex::default(),
            killed: Notify::new(),
        })
    }

    /// The worker that this process runs.
    pub fn worker(self: &Arc<Self>) -> Worker {
        let ledger = Arc::new(LedgerPort { wire: Wire::new(self, Store::Ledger) });
        let draws = self.world.plan.seed.stream(&format!("{} draws", self.name));
        let ports = Ports {
            ledger: ledger.clone(),
            leases: ledger.clone(),
            items: ledger,
            clock: Arc::new(ProcessClock(Arc::clone(self))),
            entropy: Arc::new(Drawn(Mutex::new(draws))),
            spill: Arc::new(MemorySpill::new(1 << 20)),
        };
        let pipelines = (0..self.world.stores.targets.len()).map(|index| self.pipeline(index));
        let settings = self.world.plan.settings.clone();
        let witness = Arc::new(Witness(Arc::clone(self)));
        Worker::new(ports, pipelines.collect(), settings, witness)
    }

    fn pipeline(self: &Arc<Self>, index: usize) -> Pipeline {
        let source = Arc::new(SourcePort { wire: Wire::new(self, Store::Source), pipeline: index });
        Pipeline {
            scope: self.world.stores.targets[index].scope.clone(),
            fingerprint: Fingerprint::parse(&self.fingerprint).expect("visible ASCII"),
            rules: self.fingerprint.clone(),
            feed: source.clone(),
            records: source.clone(),
            capture: source,
            sink: Arc::new(SinkPort { wire: Wire::new(self, Store::Sink(index)), pipeline: index }),
            owns: Owns::All,
            rate_max: None,
            source_went_back: self.world.plan.source_went_back,
            // At rest nothing is compared but what somebody wishes for.
            reconcile_every: self.world.plan.reconcile_every.filter(|_| !self.world.is_calm()),
        }
    }

    fn stalled_until(&self) -> MutexGuard<'_, Duration> {
        self.stalled_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It does nothing for this long, whatever it was about to do.
    pub fn stall(&self, length: Duration) {
        *self.stalled_until() = self.world.stores.time.now() + length;
    }

    /// Returns once it is not stalled.
    pub async fn awake(&self) {
        loop {
            let left = self.stalled_until().saturating_sub(self.world.stores.time.now());
            if left.is_zero() {
                return;
            }
            self.world.stores.time.pass(left).await;
        }
    }

    /// A record has killed it: whoever waits for this waits for ever.
    pub async fn die<T>(&self, of: &str) -> T {
        self.world.tell("killed", format_args!("{} by {of}", self.name));
        self.killed.notify_one();
        std::future::pending().await
    }
}

/// The clock of a process: it goes on while the process is stalled.
#[derive(Debug)]
struct ProcessClock(Arc<Process>);

#[async_trait]
impl Clock for ProcessClock {
    fn monotonic(&self) -> Duration {
        self.0.world.stores.time.now()
    }

    async fn sleep(&self, length: Duration) {
        self.0.world.stores.time.pass(length).await;
        self.0.awake().await;
    }
}

/// The draws of a process.
struct Drawn(Mutex<Stream>);

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drawn")
    }
}

impl Drawn {
    fn next(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    fn name(&self, kind: &str) -> String {
        format!("{kind}-{:016x}", self.next())
    }
}

impl Entropy for Drawn {
    fn draw(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unit()
    }
    fn commit_token(&self) -> CommitToken {
        CommitToken::parse(&self.name("commit")).expect("visible ASCII")
    }
    fn lease_token(&self) -> LeaseToken {
        LeaseToken::parse(&self.name("lease")).expect("visible ASCII")
    }
    fn run_id(&self) -> RunId {
        RunId::parse(&self.name("run")).expect("visible ASCII")
    }
    fn holder_id(&self) -> HolderId {
        HolderId::parse(&self.name("holder")).expect("visible ASCII")
    }
    fn incarnation(&self) -> Incarnation {
        Incarnation::parse(&self.name("life")).expect("visible ASCII")
    }
}

/// Tells of the process what its own log would.
#[derive(Debug)]
struct Witness(Arc<Process>);

impl Observer for Witness {
    fn happened(&self, scope: &ScopeId, what: &Happening) {
        let Process { world, name, .. } = &*self.0;
        match what {
            Happening::Acquired(fence) => {
                world.tell("takes", format_args!("{name} takes {scope}, fence {fence}"));
            }
            Happening::Trouble { code, text, .. } => {
                world.tell("trouble", format_args!("{name} {scope} {code}: {text}"));
            }
            Happening::Halted { code, text } => {
                world.tell("halted", format_args!("{name} {scope} {code}: {text}"));
            }
            Happening::Lost => world.tell("loses", format_args!("{name} loses {scope}")),
            Happening::Released => world.tell("releases", format_args!("{name} releases {scope}")),
            Happening::Inactive(_)
            | Happening::HeldBy(..)
            | Happening::Delivered { .. }
            | Happening::Idle => {}
        }
    }
}
