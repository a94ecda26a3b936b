//! The real follow machine, with its phases numbered: a world holds a number where a ledger holds JSON.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::follow::{
    Command, Delivered, Failed, Follow, Observation, Opened, PageSeen, Phase, SourceWentBack, Terms,
};
use truekeep_core::guard::{Guard, Held, Lost};
use truekeep_core::lease::{self, Lease};
use truekeep_core::ports::{
    CaptureState, Consumer, ItemKind, LedgerWrite, Mark, Registration, Settle, SourceView,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::retry::{Jitter, RetryPolicy};
use truekeep_core::{
    BatchName, Fence, HolderId, Incarnation, Key, LeaseToken, LedgerId, MarkNumber, Moment, Place,
    RegistrationCounter, RulesNumber, RunVersion, Signature, Timestamp, Version,
};

use super::sink::{self, Name, SinkMark};
use super::source::{Acknowledged, View};
use super::worker::{Belief, Done, Fate, Seen};

/// How often a delivery is tried.
pub const ATTEMPTS_MAX: u32 = 2;
const NOW: Timestamp = Timestamp::from_ms(0);
const TTL: Duration = Duration::from_millis(1);
const FENCES: u8 = 16;

/// A stored phase.
pub type PhaseId = u16;

/// What a stored phase says that the invariants look at.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub halted: bool,
    pub tailing: bool,
    /// Whether it waits for an operator, since the sink is ahead.
    pub ahead: bool,
    /// Why the sink is not trusted.
    pub doubt: Option<Doubt>,
    pub tail: Option<Remembered>,
}

/// Why a sink is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubt {
    Drift,
    GuardRefused,
    SinkAhead,
    SinkWentBack,
    Other,
}

impl Doubt {
    const CODES: [(Self, Code); 4] = [
        (Self::Drift, Code::DRIFT_FOUND),
        (Self::GuardRefused, Code::GUARD_REFUSED),
        (Self::SinkAhead, Code::SINK_AHEAD),
        (Self::SinkWentBack, Code::SINK_WENT_BACK),
    ];

    pub fn of(code: &Code) -> Self {
        let known = Self::CODES.iter().find(|(_, known)| known == code);
        known.map_or(Self::Other, |(doubt, _)| *doubt)
    }

    fn code(self) -> Code {
        let known = Self::CODES.into_iter().find(|(doubt, _)| *doubt == self);
        known.expect("a reconcile says no other").1
    }
}

/// The numbers of a tail.
#[derive(Debug, Clone, Copy)]
pub struct Remembered {
    pub rules: u8,
    pub cursor: u8,
    pub mark: Name,
    pub sent: u8,
    pub registered: u8,
    /// A rebuild has yet to deliver again what was passed under earlier rules: it is not explored here.
    pub outdated: bool,
}

/// What a commit stores.
#[derive(Debug, Clone)]
pub struct Plan {
    pub next: PhaseId,
    pub writes: Rc<[LedgerWrite]>,
}

/// Phases by number, and what was asked of the machine before.
#[derive(Debug)]
pub struct Machine {
    numbers: HashMap<String, PhaseId>,
    texts: Vec<(String, Memory)>,
    plans: HashMap<(u8, PhaseId, Seen), Plan>,
    commands: HashMap<(u8, PhaseId), Command>,
    leases: Vec<Lease>,
    register_every: Duration,
}

impl Machine {
    /// A run that acknowledges whenever its cursor has moved.
    pub fn new() -> Self {
        Self::acknowledging_every(Duration::ZERO)
    }

    /// A run that acknowledges once.
    pub fn acknowledging_once() -> Self {
        Self::acknowledging_every(Duration::from_secs(1))
    }

    fn acknowledging_every(register_every: Duration) -> Self {
        let leases = (0..FENCES).map(|fence| Lease {
            holder: HolderId::parse("worker").expect("valid"),
            token: LeaseToken::parse(&format!("lease-{fence}")).expect("valid"),
            fence: Fence::new(fence.into()),
            expires_at: NOW.plus(TTL),
        });
        let mut machine = Self {
            numbers: HashMap::new(),
            texts: Vec::new(),
            plans: HashMap::new(),
            commands: HashMap::new(),
            leases: leases.collect(),
            register_every,
        };
        machine.number(&Phase::START);
        machine
    }

    /// The number of a new run's phase.
    pub const START: PhaseId = 0;

    fn number(&mut self, phase: &Phase) -> PhaseId {
        let text = serde_json::to_string(phase).expect("a phase is JSON");
        let (next, memory) = (self.texts.len(), Memory::of(phase));
        let texts = &mut self.texts;
        *self.numbers.entry(text).or_insert_with_key(|text| {
            texts.push((text.clone(), memory));
            PhaseId::try_from(next).expect("few phases")
        })
    }

    fn stored(&self, phase: PhaseId) -> Phase {
        serde_json::from_str(&self.texts[usize::from(phase)].0).expect("it was a phase")
    }

    /// What a stored phase says.
    pub fn memory(&self, phase: PhaseId) -> Memory {
        self.texts[usize::from(phase)].1
    }

    /// What is due; the run never waits here, so that every order of turns is seen.
    pub fn due(&mut self, rules: u8, phase: PhaseId) -> Command {
        if let Some(command) = self.commands.get(&(rules, phase)) {
            return command.clone();
        }
        let command = match Follow::due(&self.terms(rules), &self.stored(phase), NOW) {
            Due::Now(command) => command,
            Due::At(_) => Command::Open,
        };
        self.commands.insert((rules, phase), command.clone());
        command
    }

    /// What follows from an observation.
    pub fn on(&mut self, rules: u8, phase: PhaseId, seen: Seen) -> Plan {
        if let Some(plan) = self.plans.get(&(rules, phase, seen)) {
            return plan.clone();
        }
        let step = Follow::on(&self.terms(rules), self.stored(phase), observation(seen), NOW)
            .expect("the phase asked for it");
        let plan = Plan { next: self.number(&step.next), writes: step.writes.into() };
        self.plans.insert((rules, phase, seen), plan.clone());
        plan
    }

    fn terms(&self, rules: u8) -> Terms {
        Terms {
            rules: RulesNumber::new(rules.into()),
            consumer: consumer(),
            page_rows: 1,
            delivery: RetryPolicy {
                attempts_max: ATTEMPTS_MAX,
                jitter: Jitter::None,
                ..RetryPolicy::DELIVERY
            },
            register_every: self.register_every,
            halted_recheck: Duration::ZERO,
            source_went_back: SourceWentBack::Halt,
        }
    }

    /// Whether a lease is in force.
    pub fn in_force(&self, fence: u8, expired: bool) -> bool {
        let now = if expired { NOW.plus(TTL) } else { NOW };
        lease::in_force(&self.leases[usize::from(fence)], now, TTL)
    }

    /// Whether a write may land.
    pub fn guard(&self, writer: Belief, held: HeldNow) -> Result<(), Lost> {
        let token = |fence: u8| &self.leases[usize::from(fence)].token;
        let version = |current: bool| RunVersion::new(if current { 1 } else { 0 });
        let guard = Guard {
            token: token(writer.lease.fence).clone(),
            fence: Fence::new(writer.lease.fence.into()),
            run_version: version(writer.current),
            rules: RulesNumber::new(writer.lease.rules.into()),
        };
        let held_fence = Fence::new(held.fence.into());
        guard.check(&Held {
            lease: held.token.map(|of| (token(of), held_fence)),
            run_version: Some(version(held.current)),
            rules: RulesNumber::new(held.rules.into()),
        })
    }
}

/// What the ledger holds against a writer's belief.
#[derive(Debug, Clone, Copy)]
pub struct HeldNow {
    /// The fence whose token is in force.
    pub token: Option<u8>,
    pub fence: u8,
    /// Whether a writer is right that believes it has the newest version.
    pub current: bool,
    pub rules: u8,
}

impl Memory {
    fn of(phase: &Phase) -> Self {
        let tail = phase.tail().map(|tail| Remembered {
            rules: small(tail.rules.get()),
            cursor: passed(&tail.cursor.passed),
            mark: Name {
                fence: small(tail.mark.fence.get()),
                number: small_number(tail.mark.number),
            },
            sent: small_number(tail.sent),
            registered: small(tail.registered.counter.get()),
            outdated: tail.outdated,
        });
        Self {
            halted: matches!(phase, Phase::Halted(_)),
            tailing: matches!(phase, Phase::Tailing(_)),
            ahead: matches!(phase, Phase::Halted(halted) if halted.code == Code::SINK_AHEAD),
            doubt: phase.tail().and_then(|tail| tail.distrust.as_ref()).map(Doubt::of),
            tail,
        }
    }
}

/// By how much the numbers of batches grow from turn to turn.
const TURN: u64 = MarkNumber::new(0).turn_after().get();

/// The number of a batch.
pub fn number(small: u8) -> MarkNumber {
    let (turn, place) = (small / sink::TURN, small % sink::TURN);
    MarkNumber::new(u64::from(turn) * TURN + u64::from(place))
}

/// The name of a batch.
pub fn batch_name(small: Name) -> BatchName {
    BatchName { fence: Fence::new(small.fence.into()), number: number(small.number) }
}

/// The same, small.
pub fn small_number(number: MarkNumber) -> u8 {
    let (turn, place) = (small(number.get() / TURN), small(number.get() % TURN));
    assert!(place < sink::TURN, "a turn has few batches");
    turn * sink::TURN + place
}

/// The newest version that a moment includes.
pub fn passed(moment: &Moment) -> u8 {
    small(moment.newest().get())
}

/// Worlds are small.
pub fn small(number: u64) -> u8 {
    u8::try_from(number).expect("worlds are small")
}

/// The name of a key.
pub fn key(number: u8) -> Key {
    Key::new(["a", "b"][usize::from(number)])
}

/// The number of a key.
pub fn key_number(key: &Key) -> usize {
    usize::from(key.as_str() == "b")
}

fn consumer() -> Consumer {
    Consumer {
        ledger: LedgerId::parse("ledger").expect("valid"),
        pipeline: Incarnation::parse("pipeline").expect("valid"),
    }
}

fn observation(seen: Seen) -> Observation {
    match seen {
        Seen::TookOver { after_crash } => Observation::TookOver { after_crash },
        Seen::Opened { view, mark } => {
            Observation::Opened(Opened { view: source_view(view), mark: mark.map(sink_mark) })
        }
        Seen::Registered(acknowledged) => Observation::Registered(registration(acknowledged)),
        Seen::Armed => Observation::Armed,
        Seen::Page { next, moment, view, done } => Observation::Page(PageSeen {
            next: Place::at(version(next)),
            newest: None,
            moment: moment.map(|newest| Moment::at(version(newest))),
            view: source_view(view),
            delivered: done.map(delivered).unwrap_or_default(),
        }),
        Seen::Redelivered(done) => Observation::Redelivered(delivered(done)),
        Seen::Judged(doubt) => Observation::Judged(doubt.map(Doubt::code)),
        Seen::SinkWentBack => Observation::Refused(Code::SINK_WENT_BACK),
        Seen::Isolated { next, view, row } => Observation::Isolated(PageSeen {
            next: Place::at(version(next)),
            newest: None,
            moment: None,
            view: source_view(view),
            delivered: Delivered {
                failed: row.map(|done| failed(done, false)).into_iter().collect(),
                ..Delivered::default()
            },
        }),
    }
}

fn version(number: u8) -> Version {
    Version::new(number.into())
}

/// An acknowledgement in the machine's words.
pub fn registration(acknowledged: Acknowledged) -> Registration {
    Registration {
        counter: RegistrationCounter::new(acknowledged.counter.into()),
        passed: Moment::at(version(acknowledged.cursor)),
    }
}

fn source_view(view: View) -> SourceView {
    SourceView {
        incarnation: Incarnation::parse("feed").expect("valid"),
        newest: Moment::at(version(view.newest)),
        pruned: Moment::at(version(view.pruned)),
        continues: true,
        repairable: true,
        registration: view.acknowledged.map(registration),
        capture: CaptureState::Trusted(Signature::parse("capture").expect("valid")),
    }
}

/// A mark in the machine's words.
pub fn sink_mark(mark: SinkMark) -> Mark {
    let Consumer { ledger, pipeline } = consumer();
    Mark {
        ledger,
        pipeline,
        rules: RulesNumber::new(mark.rules.into()),
        fence: Fence::new(mark.fence.into()),
        number: number(mark.number),
        removed: false,
    }
}

/// The same, small.
pub fn small_mark(mark: &Mark) -> SinkMark {
    SinkMark {
        rules: small(mark.rules.get()),
        fence: small(mark.fence.get()),
        number: small_number(mark.number),
    }
}

fn delivered(done: Done) -> Delivered {
    let settle = || Settle { key: key(done.key), version: version(done.version) };
    Delivered {
        settled: matches!(done.fate, Fate::Done).then(settle).into_iter().collect(),
        failed: match done.fate {
            Fate::Done | Fate::Ahead => Vec::new(),
            Fate::Refused => vec![failed(done, false)],
            Fate::Again => vec![failed(done, true)],
        },
        mark: done.sent.map(batch_name),
        ahead: matches!(done.fate, Fate::Ahead).then(|| key(done.key)),
    }
}

fn failed(done: Done, retryable: bool) -> Failed {
    Failed {
        key: key(done.key),
        version: version(done.version),
        kind: if done.deleted { ItemKind::Delete } else { ItemKind::Upsert },
        attempts: done.attempts.into(),
        retryable,
        code: if done.sent.is_some() { Code::SINK_REFUSED } else { Code::KILLS_WORKER },
        reason: String::new(),
        draw: 0.0,
    }
}
