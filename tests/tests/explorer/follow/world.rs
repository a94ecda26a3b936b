//! The world: source, sink, ledger, two workers, and what is still on the way.

use truekeep_core::certificate::Claim;
use truekeep_core::ports::LedgerWrite;

use super::Breaks;
use super::ledger::{Item, ItemState, Lease, Ledger};
use super::machine::{Machine, Plan};
use super::sink::{Batch, Sink};
use super::source::{KEYS, Source};
use super::story::Action;
use super::turn;
use super::worker::{Belief, Holding, Seen, Turn, Worker};
use super::{Laws, invariants, story};
use crate::search::{self, Broken, Step};

/// What the world may still do to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Changes of the source.
    pub changes: u8,
    /// Deaths, lost answers, late messages, leases that end too early, records that are refused.
    pub faults: u8,
    /// Deaths beyond those.
    pub deaths: u8,
    /// New rules.
    pub announcements: u8,
    /// Times that the sink is put back to what it was at first.
    pub restores: u8,
}

/// A commit that is still on the way although its writer has stopped waiting for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LateCommit {
    pub turn: Turn,
    pub seen: Seen,
    /// Whether the run carries its token.
    pub landed: bool,
}

impl LateCommit {
    fn is(&self, turn: &Turn, seen: Seen) -> bool {
        (self.turn.belief.lease, self.turn.phase, self.seen)
            == (turn.belief.lease, turn.phase, seen)
    }
}

/// One state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub source: Source,
    pub sink: Sink,
    pub ledger: Ledger,
    pub workers: [Worker; 2],
    pub late_batch: Option<Batch>,
    pub late_commit: Option<LateCommit>,
    /// Whether the sink was restored and lost what it had confirmed.
    pub lost: bool,
    pub left: Budget,
}

/// Collects the steps out of one world.
#[derive(Debug)]
pub struct Steps<'a> {
    pub machine: &'a mut Machine,
    pub breaks: Breaks,
    pub backup: Sink,
    pub found: Vec<Step<World>>,
}

const UNNOTICED: &str = "rule 124: a moment was claimed for a sink that has lost what it held";
const UNLAWFUL: &str = "rules 4 and 5: a commit landed without the lease in force";

impl Steps<'_> {
    /// A step of a worker.
    pub fn step(&mut self, from: &World, action: Action, then: impl FnOnce(&mut World) -> Worker) {
        self.worker(from, action, true, then);
    }

    /// A step of a worker that costs a fault.
    pub fn fault(&mut self, from: &World, action: Action, then: impl FnOnce(&mut World) -> Worker) {
        if let Some(faults) = from.left.faults.checked_sub(1) {
            let mut from = *from;
            from.left.faults = faults;
            self.worker(&from, action, false, then);
        }
    }

    fn worker(
        &mut self,
        from: &World,
        action: Action,
        progress: bool,
        then: impl FnOnce(&mut World) -> Worker,
    ) {
        let mut world = *from;
        let worker = then(&mut world);
        let w = action.worker().expect("a worker does it");
        world.workers[usize::from(w)] = worker;
        self.found.push(Step { action, world, progress, broke: None });
    }

    /// A step of the world around the workers.
    pub fn around(&mut self, from: &World, action: Action, then: impl FnOnce(&mut World)) {
        let mut world = *from;
        then(&mut world);
        let progress = action == Action::ExpireDead;
        self.found.push(Step { action, world, progress, broke: None });
    }

    /// The last step wrote the ledger.
    pub fn wrote(&mut self, lawful: bool, plan: &Plan) {
        let Some(step) = self.found.last_mut() else { return };
        let claims = |write: &LedgerWrite| matches!(write, LedgerWrite::Certify(Claim::UpTo(_)));
        if !lawful {
            step.broke = Some(UNLAWFUL);
        } else if step.world.lost && plan.writes.iter().any(claims) {
            step.broke = Some(UNNOTICED);
        }
    }
}

impl World {
    pub fn new(left: Budget) -> Self {
        Self {
            source: Source::EMPTY,
            sink: Sink::EMPTY,
            ledger: Ledger::NEW,
            workers: [Worker::Down; 2],
            late_batch: None,
            late_commit: None,
            lost: false,
            left,
        }
    }

    pub fn holds_lease(&self, machine: &Machine, lease: Holding) -> bool {
        self.ledger.in_force(machine).is_some_and(|held| held.fence == lease.fence)
    }

    /// A commit lands: what everybody else believes is old now, and who repeats the same commit
    /// finds its token.
    pub fn land(&mut self, commit: LateCommit, plan: &Plan, breaks: Breaks) {
        let rules = commit.turn.belief.lease.rules;
        self.ledger.write(plan.next, &plan.writes, rules, breaks);
        self.outdate();
        for worker in &mut self.workers {
            if let Worker::Committing { turn, seen, landed } = worker {
                *landed = commit.is(turn, *seen);
            }
        }
        if let Some(late) = &mut self.late_commit {
            late.landed = commit.is(&late.turn, late.seen);
        }
    }

    fn outdate(&mut self) {
        for worker in &mut self.workers {
            if let Some(turn) = worker.turn_mut() {
                turn.belief.current = false;
            }
            if let Worker::Committing { landed, .. } = worker {
                *landed = false;
            }
        }
        if let Some(late) = &mut self.late_commit {
            late.turn.belief.current = false;
            late.landed = false;
        }
    }

    /// A worker dies with what it remembers, or hands its lease back.
    fn end_of_worker(&self, w: u8, to: &mut Steps<'_>) {
        let worker = self.workers[usize::from(w)];
        if worker == Worker::Down {
            return;
        }
        let mut from = *self;
        if let Some(deaths) = from.left.deaths.checked_sub(1) {
            from.left.deaths = deaths;
            from.left.faults += 1;
        }
        to.fault(&from, Action::Crash(w), |next| {
            match worker {
                Worker::Sent(_, _, batch) => {
                    next.late_batch.get_or_insert(batch);
                }
                Worker::Committing { turn, seen, landed } => {
                    next.late_commit.get_or_insert(LateCommit { turn, seen, landed });
                }
                Worker::Down | Worker::Loading { .. } | Worker::Ready(_) | Worker::Holds(..) => {}
            }
            Worker::Down
        });
        if let Worker::Ready(turn) = worker {
            to.fault(self, Action::GiveBack(w), |next| {
                next.ledger.release(turn.belief.lease.fence);
                Worker::Down
            });
        }
    }

    /// A dead holder's lease ends in time; that of a living one only if it is slow.
    fn clock(&self, to: &mut Steps<'_>) {
        let Some(lease) = self.ledger.lease.filter(|lease| !lease.expired) else { return };
        let is_its = |worker: &Worker| worker.lease().is_some_and(|held| held.fence == lease.fence);
        let mut from = *self;
        if self.workers.iter().any(is_its) {
            let Some(faults) = self.left.faults.checked_sub(1) else { return };
            from.left.faults = faults;
            to.around(&from, Action::ExpireSlow, |next| next.expire());
        } else {
            to.around(&from, Action::ExpireDead, |next| next.expire());
        }
    }

    fn expire(&mut self) {
        self.ledger.lease = self.ledger.lease.map(|lease| Lease { expired: true, ..lease });
    }

    fn late(&self, to: &mut Steps<'_>) {
        let breaks = to.breaks;
        if let Some(batch) = self.late_batch {
            to.around(self, Action::LateBatch(batch), |next| {
                next.late_batch = None;
                next.sink.apply(batch, breaks);
            });
        }
        let Some(commit) = self.late_commit else { return };
        let Belief { lease, .. } = commit.turn.belief;
        let lost = self.ledger.refuses(to.machine, commit.turn.belief, breaks);
        let lands = !commit.landed && lost.is_none();
        let plan = to.machine.on(lease.rules, commit.turn.phase, commit.seen);
        let lawful = self.holds_lease(to.machine, lease);
        to.around(self, Action::LateCommit { lands }, |next| {
            next.late_commit = None;
            if lands {
                next.land(commit, &plan, breaks);
            }
        });
        if lands {
            to.wrote(lawful, &plan);
        }
    }

    fn writer(&self, to: &mut Steps<'_>) {
        let Some(changes) = self.left.changes.checked_sub(1) else { return };
        let mut from = *self;
        from.left.changes = changes;
        // Until one is written, the keys are the same.
        let keys = if self.source.newest() == 0 { 1 } else { KEYS };
        for key in 0..keys {
            to.around(&from, Action::Put(key), |next| next.source.change(key, true));
            if self.source.document(key).is_some() {
                to.around(&from, Action::Delete(key), |next| next.source.change(key, false));
            }
        }
    }

    /// Somebody restores the sink. What was answered before is committed first: a loss in between
    /// cannot be told from one a moment later.
    fn restore(&self, to: &mut Steps<'_>) {
        let answered = |worker: &Worker| matches!(worker, Worker::Committing { .. });
        let answered = self.workers.iter().any(answered) || self.late_commit.is_some();
        let backup = to.backup;
        let Some(restores) = self.left.restores.checked_sub(1) else { return };
        if answered || self.sink == backup {
            return;
        }
        let confirmed =
            to.machine.memory(self.ledger.run).tail.map(|tail| tail.mark).unwrap_or_default();
        to.around(self, Action::Restore, |next| {
            next.left.restores = restores;
            next.sink = backup;
            next.lost |= backup.newest() < confirmed;
        });
    }

    /// Retries, new rules, and the clean-up of tombstones.
    fn operator(&self, to: &mut Steps<'_>) {
        for key in 0..KEYS {
            let item = self.ledger.items[usize::from(key)];
            if let Some(item) = item.filter(|item| item.state == ItemState::Parked) {
                to.around(self, Action::Retry(key), |next| {
                    let pending = Item { state: ItemState::Pending, attempts: 0, ..item };
                    next.ledger.items[usize::from(key)] = Some(pending);
                    next.outdate();
                });
            }
        }
        if let Some(announcements) = self.left.announcements.checked_sub(1) {
            to.around(self, Action::Announce, |next| {
                next.left.announcements = announcements;
                next.ledger.announce();
            });
        }
        // Until we have registered, only others hold tombstones back.
        let passed = self.source.acknowledged.map_or(u8::MAX, |acknowledged| acknowledged.cursor);
        let passed = if to.breaks.prunes_too_early { u8::MAX } else { passed };
        let mut pruned = self.source;
        if pruned.prune(passed) {
            to.around(self, Action::Prune, |next| next.source = pruned);
        }
    }
}

impl search::World for World {
    type Action = Action;
    type Laws = Laws;

    fn steps(&self, laws: &mut Laws) -> Vec<Step<Self>> {
        let mut to = Steps {
            machine: &mut laws.machine,
            breaks: laws.breaks,
            backup: laws.backup,
            found: Vec::new(),
        };
        for w in 0..2 {
            turn::steps(self, w, &mut to);
            self.end_of_worker(w, &mut to);
        }
        self.clock(&mut to);
        self.late(&mut to);
        self.writer(&mut to);
        self.operator(&mut to);
        self.restore(&mut to);
        to.found
    }

    fn always(&self, laws: &Laws) -> Result<(), Broken> {
        invariants::always(self, &laws.machine)
    }

    fn between(&self, after: &Self, laws: &Laws) -> Result<(), Broken> {
        invariants::between(self, after, &laws.machine)
    }

    fn at_rest(&self, laws: &Laws) -> Result<(), Broken> {
        invariants::at_rest(self, &laws.machine)
    }

    fn tell(&self, laws: &Laws) -> String {
        story::tell(self, &laws.machine)
    }
}
