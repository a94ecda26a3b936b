//! A world: its stores, who watches them, and its weather.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use truekeep_adapter_memory::{MemoryLedger, MemorySource};
use truekeep_core::ports::{Consumer, Ledger};
use truekeep_core::{LedgerId, PipelineName, ScopeId};

use crate::auditor::Auditor;
use crate::plan::{Plan, Sky};
use crate::sink::ModelSink;
use crate::time::Time;

/// The real stores of a world.
#[derive(Debug)]
pub(crate) struct Stores {
    pub time: Time,
    pub ledger: MemoryLedger,
    pub source: MemorySource,
    pub targets: Vec<Target>,
}

/// A pipeline and what it fills.
#[derive(Debug)]
pub(crate) struct Target {
    pub scope: ScopeId,
    pub sink: ModelSink,
}

/// One of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Ledger,
    Source,
    Sink(usize),
}

impl Store {
    fn index(self) -> usize {
        match self {
            Self::Ledger => 0,
            Self::Source => 1,
            Self::Sink(index) => 2 + index,
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger => f.write_str("ledger"),
            Self::Source => f.write_str("source"),
            Self::Sink(index) => write!(f, "sink {index}"),
        }
    }
}

impl Stores {
    fn new(plan: &Plan) -> Self {
        let time = Time::begin();
        let clock = time.clone();
        let id = LedgerId::parse("ledger").expect("visible ASCII");
        let targets = plan.sinks.iter().enumerate().map(|(index, sink)| Target {
            scope: ScopeId::whole(PipelineName::parse(&format!("p{index}")).expect("a name")),
            sink: ModelSink::new(*sink, time.clone(), plan.seed.stream(&format!("sink {index}"))),
        });
        Self {
            targets: targets.collect(),
            ledger: MemoryLedger::new(id, Arc::new(move || clock.ledger())),
            source: MemorySource::captured(),
            time,
        }
    }

    /// Who a pipeline is in the source and in the sink, once the ledger knows it.
    pub fn consumer(&self, index: usize) -> Option<Consumer> {
        let known = at_once(self.ledger.pipeline(self.targets[index].scope.pipeline()));
        let pipeline = known.ok().flatten()?.incarnation;
        Some(Consumer { ledger: at_once(self.ledger.identity()).ok()?, pipeline })
    }
}

/// A world.
#[derive(Debug)]
pub(crate) struct World {
    pub plan: Plan,
    pub stores: Stores,
    auditor: Mutex<Auditor>,
    /// Told when a promise is broken.
    pub alarm: Notify,
    calm: AtomicBool,
    /// Grows when a store is restored: no call that was on its way to it arrives.
    lives: Vec<AtomicU64>,
    /// The fingerprint of the configuration that workers are started with.
    config: Mutex<String>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(plan: Plan, told: usize) -> Self {
        let stores = Stores::new(&plan);
        Self {
            auditor: Mutex::new(Auditor::new(&stores, plan.settings.lease_ttl, told)),
            lives: (0..2 + stores.targets.len()).map(|_| AtomicU64::new(0)).collect(),
            plan,
            stores,
            alarm: Notify::new(),
            calm: AtomicBool::new(false),
            config: Mutex::new("rules-0".into()),
        }
    }

    /// Does something with the auditor watching, as one step: nothing else happens meanwhile.
    pub fn watched<T>(&self, deed: impl FnOnce(&mut Auditor, &Stores) -> T) -> T {
        let mut auditor = self.auditor.lock().unwrap_or_else(PoisonError::into_inner);
        let done = deed(&mut auditor, &self.stores);
        if auditor.broken.is_some() {
            self.alarm.notify_one();
        }
        done
    }

    /// Adds to the story.
    pub fn tell(&self, kind: &'static str, what: fmt::Arguments<'_>) {
        let now = self.stores.time.now();
        self.watched(|auditor, _| auditor.story.tell(now, kind, what));
    }

    /// Whether nothing goes wrong any more.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// From now on nothing goes wrong any more.
    pub fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.stores.targets.iter().for_each(|target| target.sink.heal());
    }

    /// How calls of a store go wrong.
    pub fn sky(&self, store: Store) -> Sky {
        match store {
            Store::Ledger => self.plan.ledger_sky,
            Store::Source => self.plan.source_sky,
            Store::Sink(_) => self.plan.sink_sky,
        }
    }

    /// Which life of a store it is.
    pub fn life(&self, store: Store) -> u64 {
        self.lives[store.index()].load(Ordering::Relaxed)
    }

    /// A store begins another life.
    pub fn revive(&self, store: Store) {
        self.lives[store.index()].fetch_add(1, Ordering::Relaxed);
    }

    fn config(&self) -> MutexGuard<'_, String> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configuration that workers are started with.
    pub fn fingerprint(&self) -> String {
        self.config().clone()
    }

    /// Changes the configuration that workers are started with.
    pub fn configure(&self, fingerprint: String) {
        *self.config() = fingerprint;
    }
}

/// The answer of a store in memory, which answers at once.
pub(crate) fn at_once<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("memory answers at once"),
    }
}
