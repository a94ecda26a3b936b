//! Decorators over every port of one process: they count, fail, hang, lose answers and kill.

#![expect(clippy::disallowed_methods, reason = "the runtime's paused clock is the world's clock")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Capabilities, Clock, Outcome};

use super::Virtual;

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// It does not happen.
    Fails(FailureClass),
    /// It happens, and the answer is lost.
    AnswerLost,
    /// It never answers.
    Hangs,
    /// It happens, and never answers.
    HangsAfter,
    /// It takes this long.
    Slow(Duration),
    /// It meets a bug.
    Panics,
}

/// What is wrong with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grudge {
    /// It refuses the record.
    Refuses,
    /// It refuses any batch with the record in it.
    RefusesBatch,
    /// It cannot take the record now.
    PutsOff,
    /// Whoever sends the record dies.
    Kills,
    /// Whoever loads the record dies.
    KillsReader,
    /// It takes the record and keeps another document.
    Alters,
}

type Limit = fn(Capabilities) -> Capabilities;

#[derive(Debug)]
struct Planned {
    calls: String,
    skip: u32,
    times: u32,
    fault: Fault,
}

/// What passes between one process and its ports. A call is named "ledger.commit", "sink.apply";
/// a fault is planned for all calls that begin with a text.
#[derive(Debug)]
pub struct Tap {
    began: tokio::time::Instant,
    log: Mutex<Vec<(Duration, &'static str)>>,
    plan: Mutex<Vec<Planned>>,
    grudges: Mutex<BTreeMap<Key, Grudge>>,
    sent: Mutex<Vec<Key>>,
    able: Mutex<Option<Limit>>,
    /// Told when a record killed its sender.
    pub killed: Notify,
    /// Told when the source is to tell of a change.
    pub stirs: Notify,
}

impl Tap {
    pub fn new(began: tokio::time::Instant) -> Self {
        Self {
            began,
            log: Mutex::default(),
            plan: Mutex::default(),
            grudges: Mutex::default(),
            sent: Mutex::default(),
            able: Mutex::default(),
            killed: Notify::new(),
            stirs: Notify::new(),
        }
    }

    /// The next so many calls have this fault.
    pub fn fault(&self, calls: &str, times: u32, fault: Fault) {
        self.fault_after(calls, 0, times, fault);
    }

    /// After so many calls that go well, so many have this fault.
    pub fn fault_after(&self, calls: &str, skip: u32, times: u32, fault: Fault) {
        locked(&self.plan).push(Planned { calls: calls.into(), skip, times, fault });
    }

    /// All such calls fail until it is healed.
    pub fn cut(&self, calls: &str) {
        self.fault(calls, u32::MAX, Fault::Fails(FailureClass::Unknown));
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        locked(&self.plan).clear();
        locked(&self.grudges).clear();
    }

    pub fn bear(&self, key: &str, grudge: Grudge) {
        locked(&self.grudges).insert(Key::new(key), grudge);
    }

    /// The sink claims to be able to do something else than it is.
    pub fn limit(&self, limit: Limit) {
        *locked(&self.able) = Some(limit);
    }

    pub(super) fn limited(&self, able: Capabilities) -> Capabilities {
        locked(&self.able).map_or(able, |limit| limit(able))
    }

    /// How often such calls were made.
    pub fn count(&self, calls: &str) -> usize {
        locked(&self.log).iter().filter(|(_, call)| call.starts_with(calls)).count()
    }

    /// All calls with the time since the world began.
    pub fn log(&self) -> Vec<(Duration, &'static str)> {
        locked(&self.log).clone()
    }

    pub fn forget_log(&self) {
        locked(&self.log).clear();
        locked(&self.sent).clear();
    }

    /// The keys that reached the sink, in order.
    pub fn sent(&self) -> Vec<Key> {
        locked(&self.sent).clone()
    }

    pub(super) fn reached(&self, keys: impl Iterator<Item = Key>) {
        locked(&self.sent).extend(keys);
    }

    pub(super) fn grudge(&self, key: &Key) -> Option<Grudge> {
        locked(&self.grudges).get(key).copied()
    }

    /// Makes a call, with what was planned for it.
    pub(super) async fn call<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, PortError>>,
    ) -> Result<T, PortError> {
        locked(&self.log).push((self.began.elapsed(), name));
        match self.planned(name) {
            None => call.await,
            Some(Fault::Fails(class)) => Err(failure(class)),
            Some(Fault::AnswerLost) => {
                call.await?;
                Err(failure(FailureClass::Unknown))
            }
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::HangsAfter) => {
                call.await?;
                std::future::pending().await
            }
            Some(Fault::Slow(by)) => {
                Virtual(self.began).sleep(by).await;
                call.await
            }
            Some(Fault::Panics) => panic!("{name} met a bug, as it was told to"),
        }
    }

    fn planned(&self, name: &str) -> Option<Fault> {
        let mut plan = locked(&self.plan);
        for planned in plan.iter_mut().filter(|planned| name.starts_with(&planned.calls)) {
            if planned.skip > 0 {
                planned.skip -= 1;
            } else if planned.times > 0 {
                planned.times -= 1;
                return Some(planned.fault);
            }
        }
        None
    }
}

impl Grudge {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Refuses => Outcome::Refused(Code::SINK_REFUSED, "a grudge".into()),
            Self::PutsOff => Outcome::Retry(Code::SINK_UNAVAILABLE, "not now".into()),
            Self::RefusesBatch | Self::Kills | Self::KillsReader | Self::Alters => {
                unreachable!("concerns the batch")
            }
        }
    }
}

/// A port behind a tap.
#[derive(Debug)]
pub struct Tapped<P> {
    pub port: Arc<P>,
    pub tap: Arc<Tap>,
}

pub(super) fn failure(class: FailureClass) -> PortError {
    PortError::new("do as planned", class, Code::SINK_UNAVAILABLE)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}
