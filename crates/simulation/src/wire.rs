//! The way between a process and a store: calls are refused, lost, late, slow, or hang.
//!
//! Whether a call happened and whether it was answered are drawn apart. What is on its way arrives
//! even if whoever sent it has given up or died, unless the store has begun another life.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::process::Process;
use crate::seed::Stream;
use crate::world::{Store, World};

/// How long a gust lasts.
const GUST_MS: u64 = 4_000;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    Refused(FailureClass),
    Lost,
    Late(Duration),
    Hangs(Option<Duration>),
    Slow { there: Duration, back: Duration },
}

/// A process's way to a store.
#[derive(Debug)]
pub(crate) struct Wire {
    pub process: Arc<Process>,
    store: Store,
    draws: Mutex<Stream>,
}

impl Wire {
    pub fn new(process: &Arc<Process>, store: Store) -> Self {
        let name = format!("{} to {store}", process.name);
        let draws = Mutex::new(process.world.plan.seed.stream(&name));
        Self { process: Arc::clone(process), store, draws }
    }

    pub fn world(&self) -> &Arc<World> {
        &self.process.world
    }

    fn draws<T>(&self, draw: impl FnOnce(&mut Stream) -> T) -> T {
        draw(&mut self.draws.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a call: `deed` is what happens in the store, at once and whole.
    pub async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        deed: impl FnOnce(&World) -> Result<T, PortError> + Send + 'static,
    ) -> Result<T, PortError> {
        let world = self.world();
        self.process.awake().await;
        let fate = self.fate();
        if fate != Fate::Fine {
            world.tell("weather", format_args!("{} {name}: {fate:?}", self.process.name));
        }
        let answer = match fate {
            Fate::Fine => deed(world),
            Fate::Refused(class) => Err(self.failure(name, class)),
            Fate::Lost => {
                // It is done, and nobody hears of it.
                let _ = deed(world);
                Err(self.failure(name, FailureClass::Unknown))
            }
            Fate::Late(by) => {
                self.send(name, by, deed);
                Err(self.failure(name, FailureClass::Unknown))
            }
            Fate::Hangs(happens) => {
                if let Some(by) = happens {
                    self.send(name, by, deed);
                }
                std::future::pending().await
            }
            Fate::Slow { there, back } => {
                let answer = self.send(name, there, deed).await;
                world.stores.time.pass(back).await;
                answer.unwrap_or_else(|_| Err(self.failure(name, FailureClass::Unknown)))
            }
        };
        self.process.awake().await;
        answer
    }

    /// Sends a call on its way.
    fn send<T: Send + 'static>(
        &self,
        name: &'static str,
        arrives_in: Duration,
        deed: impl FnOnce(&World) -> Result<T, PortError> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, PortError>> {
        let (sender, receiver) = oneshot::channel();
        let (world, store, life) =
            (Arc::clone(self.world()), self.store, self.world().life(self.store));
        let from = self.process.name.clone();
        tokio::spawn(async move {
            world.stores.time.pass(arrives_in).await;
            if world.life(store) == life {
                world.tell("arrives", format_args!("{name} of {from}"));
                // Nobody may be waiting for it any more.
                let _ = sender.send(deed(&world));
            }
        });
        receiver
    }

    fn failure(&self, operation: &'static str, class: FailureClass) -> PortError {
        let code = match self.store {
            Store::Ledger => Code::LEDGER_UNAVAILABLE,
            Store::Source => Code::SOURCE_UNAVAILABLE,
            Store::Sink(_) => Code::SINK_UNAVAILABLE,
        };
        PortError::new(operation, class, code)
    }

    fn fate(&self) -> Fate {
        let world = self.world();
        if world.is_calm() {
            return Fate::Fine;
        }
        let sky = world.sky(self.store);
        // Weather is the store's: all processes meet the same gusts.
        let ms = u64::try_from(world.stores.time.now().as_millis()).unwrap_or(u64::MAX);
        let name = format!("gust {} of {}", ms / GUST_MS, self.store);
        let strength = *world.plan.seed.stream(&name).pick(&[0, 0, 0, 1, 1, 3]);
        self.draws(|draws| {
            let mut falls = |rate: u64| draws.chance(rate * strength);
            if falls(sky.refused) {
                return Fate::Refused(*draws.pick(&[FailureClass::Retry, FailureClass::Unknown]));
            }
            if falls(sky.lost) {
                return Fate::Lost;
            }
            if falls(sky.late) {
                return Fate::Late(draws.ms(0, sky.late_ms_max));
            }
            if falls(sky.hangs) {
                return Fate::Hangs(draws.chance(500).then(|| draws.ms(0, sky.late_ms_max)));
            }
            if falls(sky.slow) {
                let there = draws.ms(0, sky.slow_ms_max);
                return Fate::Slow { there, back: draws.ms(0, sky.slow_ms_max) };
            }
            Fate::Fine
        })
    }

    /// How much of a page is given.
    pub fn clamp(&self, limit: u32) -> u32 {
        let rate = self.world().sky(self.store).clamped;
        if self.world().is_calm() {
            return limit;
        }
        self.draws(|draws| {
            let most = u64::from(limit.clamp(1, 16));
            if draws.chance(rate) {
                u32::try_from(draws.between(1, most)).unwrap_or(limit).min(limit)
            } else {
                limit
            }
        })
    }
}
