//! The real reconcile machine, with its stored runs numbered as follow's phases are.

use std::collections::HashMap;
use std::rc::Rc;

use truekeep_core::code::Code;
use truekeep_core::ports::{CaptureState, ItemKind, LedgerWrite, NewItem, RunState};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::reconcile::{
    Audited, BlastGuard, Command, Found, Observation, Phase, Reconcile, Report, Stored, Terms,
};
use truekeep_core::{Key, Signature, Stamp, Timestamp, Version};

use super::source::{Keys, each};
use crate::follow::machine::{Doubt, key, key_number, small};
use crate::follow::source::KEYS;

const NOW: Timestamp = Timestamp::from_ms(0);

/// A stored run.
pub type StoredId = u16;

/// Counts of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    pub listed: u8,
    pub live: u8,
    pub missing: u8,
    pub stale: u8,
    pub orphans: u8,
    pub ahead: u8,
}

/// An observation of small numbers. `next` is the key after which the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    Looked,
    Audited { missed: u8, ghosts: u8, numbered: Option<u8> },
    Compared { next: Option<u8>, counts: Counts, park: Parked, numbered: Option<u8> },
    Purged { next: Option<u8>, buried: u8, exceeded: bool, numbered: Option<u8> },
    Reached,
}

/// What is parked, with the versions.
pub type Parked = [Option<u8>; KEYS as usize];

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Active,
    Done,
    Failed,
}

/// What a stored run says that others look at.
#[derive(Debug, Clone)]
pub struct Memory {
    pub standing: Standing,
    pub name: &'static str,
    pub after: Option<u8>,
    pub report: Report,
    pub confirmed: bool,
    pub judgement: Option<Option<Doubt>>,
}

/// What a commit stores.
#[derive(Debug, Clone)]
pub struct Plan {
    pub next: StoredId,
    pub writes: Rc<[LedgerWrite]>,
}

/// What is due, in small numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Look,
    Audit { ghosts_max: u64 },
    Compare { after: Option<u8>, park: bool },
    Purge { after: Option<u8>, orphans_max: u64 },
    Await { numbered: u8 },
}

/// Stored runs by number, and what was asked of the machine before.
#[derive(Debug, Default)]
pub struct Machine {
    numbers: HashMap<String, StoredId>,
    stored: Vec<(Stored, Memory)>,
    plans: HashMap<(StoredId, Seen), Plan>,
    /// How much may be deleted without asking.
    pub guard: BlastGuard,
    /// Whether it is never asked.
    pub no_guard: bool,
    /// Whether what was repaired is not looked at again.
    pub no_second_look: bool,
}

impl Machine {
    fn number(&mut self, stored: Stored) -> StoredId {
        let text = serde_json::to_string(&stored).expect("a run is JSON");
        let next = StoredId::try_from(self.stored.len()).expect("few runs");
        if let Some(known) = self.numbers.get(&text) {
            return *known;
        }
        let memory = Memory::of(&stored);
        self.numbers.insert(text, next);
        self.stored.push((stored, memory));
        next
    }

    /// A run that has not begun.
    pub fn first(&mut self, confirmed: bool) -> StoredId {
        let (guard, confirmed) = (self.guard, confirmed || self.no_guard);
        self.number(Stored::first(Terms { guard, confirmed, ..Terms::default() }))
    }

    /// What a stored run says.
    pub fn memory(&self, run: StoredId) -> &Memory {
        &self.stored[usize::from(run)].1
    }

    /// What is due.
    pub fn due(&self, run: StoredId) -> Task {
        let Stored { terms, phase } = &self.stored[usize::from(run)].0;
        let Due::Now(command) = Reconcile::due(terms, phase, NOW) else {
            unreachable!("a run never waits for a time");
        };
        let after = |key: Option<Key>| key.map(|key| small(key_number(&key) as u64));
        match command {
            Command::Look => Task::Look,
            Command::Arm | Command::Scan { .. } | Command::Isolate { .. } => {
                unreachable!("no rebuild is explored here")
            }
            Command::Audit { ghosts_max, .. } => Task::Audit { ghosts_max },
            Command::Compare { after: key, park, .. } => Task::Compare { after: after(key), park },
            Command::Purge { after: key, orphans_max, .. } => {
                Task::Purge { after: after(key), orphans_max }
            }
            Command::Await { numbered } => Task::Await { numbered: small(numbered.get()) },
        }
    }

    /// What follows from an observation.
    pub fn on(&mut self, run: StoredId, seen: Seen) -> Plan {
        if let Some(plan) = self.plans.get(&(run, seen)) {
            return plan.clone();
        }
        let Stored { terms, phase } = self.stored[usize::from(run)].0.clone();
        let mut step = Reconcile::on(&terms, phase, observation(seen), NOW).expect("asked for");
        if let (true, Seen::Reached, Phase::Comparing { report, .. }) =
            (self.no_second_look, seen, &step.next)
        {
            step.next = Phase::Done { report: report.clone() };
        }
        let next = self.number(Stored { terms, phase: step.next });
        let plan = Plan { next, writes: step.writes.into() };
        self.plans.insert((run, seen), plan.clone());
        plan
    }
}

impl Memory {
    fn of(stored: &Stored) -> Self {
        let after = match &stored.phase {
            Phase::Auditing { after, .. }
            | Phase::Comparing { after, .. }
            | Phase::Purging { after, .. } => after.as_ref(),
            Phase::Beginning
            | Phase::Scanning { .. }
            | Phase::Settling { .. }
            | Phase::Done { .. }
            | Phase::Failed { .. } => None,
        };
        let standing = match stored.phase.state() {
            RunState::Active => Standing::Active,
            RunState::Succeeded => Standing::Done,
            RunState::Stopped(_) | RunState::Failed(_) => Standing::Failed,
        };
        Self {
            standing,
            name: stored.phase.name(),
            after: after.map(|key| small(key_number(key) as u64)),
            report: stored.phase.report().cloned().unwrap_or_default(),
            confirmed: stored.terms.confirmed,
            judgement: stored.judgement().map(|code| code.as_ref().map(Doubt::of)),
        }
    }
}

fn observation(seen: Seen) -> Observation {
    let after = |next: Option<u8>| next.map(key);
    let stamp = |numbered: Option<u8>| numbered.map(|version| Stamp::new(version.into()));
    match seen {
        Seen::Looked => {
            Observation::Looked(CaptureState::Trusted(Signature::parse("capture").expect("valid")))
        }
        Seen::Audited { missed, ghosts, numbered } => Observation::Audited {
            next: None,
            found: Audited { missed: missed.into(), rewritten: 0, ghosts: ghosts.into() },
            numbered: stamp(numbered),
        },
        Seen::Compared { next, counts, park, numbered } => Observation::Compared {
            next: after(next),
            found: found(counts),
            park: parked(park),
            numbered: stamp(numbered),
        },
        Seen::Purged { next, buried, exceeded, numbered } => Observation::Purged {
            next: after(next),
            buried: buried.into(),
            mended: 0,
            foreign: 0,
            refused: 0,
            exceeded,
            numbered: stamp(numbered),
        },
        Seen::Reached => Observation::Awaited { reached: true },
    }
}

fn found(counts: Counts) -> Found {
    let Counts { listed, live, missing, stale, orphans, ahead } = counts;
    Found {
        listed: listed.into(),
        live: live.into(),
        missing: missing.into(),
        stale: stale.into(),
        orphans: orphans.into(),
        ahead: ahead.into(),
        ..Found::default()
    }
}

fn parked(versions: Parked) -> Vec<NewItem> {
    let item = |(number, version): (u8, Option<u8>)| {
        version.map(|version| NewItem {
            key: key(number),
            version: Version::new(version.into()),
            kind: ItemKind::Upsert,
            attempts: 0,
            retry_in: None,
            code: Code::NON_CONVERGENT,
            reason: String::new(),
        })
    };
    (0..).zip(versions).filter_map(item).collect()
}

/// How many keys are in a set.
pub fn count(keys: Keys) -> u8 {
    small(each(keys).count() as u64)
}
