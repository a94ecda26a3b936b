//! The world: source, sink, ledger, two workers, and somebody who spoils things.

use super::ghost::Ghost;
use super::machine::{Machine, StoredId};
use super::source::{Source, only};
use super::story::Action;
use super::turn;
use super::worker::{Concluding, Worker};
use super::{Breaks, FOREIGN, Laws, invariants, story};
use crate::follow::NONE;
use crate::follow::ledger::{Lease, Ledger};
use crate::follow::machine::{Machine as Follow, Plan};
use crate::follow::sink::{Answer, Batch, Held, Sink};
use crate::follow::source::KEYS;
use crate::follow::worker::Belief;
use crate::search::{self, Broken, Step};

/// What may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Changes of the source that capture sees.
    pub changes: u8,
    /// Changes that it does not see.
    pub unseen: u8,
    /// Entries that the sink loses, or that somebody plants there.
    pub spoils: u8,
    /// Times that the sink is put back to what it was at first.
    pub restores: u8,
    /// Deaths, lost answers, late messages, leases that end too early, records put off.
    pub faults: u8,
    /// Wishes for a run.
    pub wishes: u8,
    /// Wishes for a run that may delete what the guard refuses.
    pub yeses: u8,
    /// Times that an operator moves the run's version.
    pub moves: u8,
    /// Runs that are opened because the sink is not trusted.
    pub repairs: u8,
}

/// A run beside, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Beside {
    pub stored: StoredId,
    /// Whether the one who holds this has the newest version.
    pub current: bool,
}

/// A commit of the run beside that is on the way although its writer is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LateCommit {
    pub belief: Belief,
    pub beside: Beside,
    pub concluding: Concluding,
}

/// One state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub source: Source,
    pub sink: Sink,
    pub ledger: Ledger,
    /// The newest run of reconcile.
    pub run: Option<StoredId>,
    pub workers: [Worker; 2],
    pub late_batch: Option<Batch>,
    pub late_commit: Option<LateCommit>,
    pub ghost: Ghost,
    pub left: Budget,
}

/// Collects the steps out of one world.
#[derive(Debug)]
pub struct Steps<'a> {
    pub follow: &'a mut Follow,
    pub machine: &'a mut Machine,
    pub breaks: Breaks,
    pub backup: Sink,
    /// A key whose deliveries the sink swallows.
    pub swallows: Option<u8>,
    pub found: Vec<Step<World>>,
}

impl Steps<'_> {
    /// A step of a worker.
    pub fn step(&mut self, action: Action, next: World, worker: Worker) {
        self.worker(action, next, worker, true);
    }

    /// A step of a worker that cost a fault.
    pub fn bad(&mut self, action: Action, next: World, worker: Worker) {
        self.worker(action, next, worker, false);
    }

    fn worker(&mut self, action: Action, mut next: World, worker: Worker, progress: bool) {
        let w = action.worker().expect("a worker does it");
        next.workers[usize::from(w)] = worker;
        self.push(action, next, progress);
    }

    /// A step of the world around the workers.
    pub fn around(&mut self, from: &World, action: Action, then: impl FnOnce(&mut World)) {
        let mut world = *from;
        then(&mut world);
        self.push(action, world, action == Action::ExpireDead);
    }

    fn push(&mut self, action: Action, mut world: World, progress: bool) {
        let broke = world.ghost.broke.take();
        world.ghost.settle(&world.source, &world.sink);
        self.found.push(Step { action, world, progress, broke });
    }
}

impl World {
    pub fn new(left: Budget) -> Self {
        Self {
            source: Source::EMPTY,
            sink: Sink::EMPTY,
            ledger: Ledger::NEW,
            run: None,
            workers: [Worker::Down; 2],
            late_batch: None,
            late_commit: None,
            ghost: Ghost::NEW,
            left,
        }
    }

    /// The same, with a fault less to come.
    pub fn spend(&self) -> Option<Self> {
        let faults = self.left.faults.checked_sub(1)?;
        Some(Self { left: Budget { faults, ..self.left }, ..*self })
    }

    /// A batch arrives at the sink.
    pub fn apply(&mut self, batch: Batch, swallows: Option<u8>) -> Answer {
        let before = self.sink;
        let answer = self.sink.apply(batch, NONE);
        if answer == Answer::Held {
            if swallows == Some(batch.key) {
                self.sink.keys = before.keys;
                self.ghost.swallowed(only(batch.key));
            }
            self.ghost.delivered(&self.source, &before, batch);
        }
        answer
    }

    /// Everybody else's belief of the run beside is old now.
    pub fn outdate(&mut self) {
        for worker in &mut self.workers {
            if let Some(beside) = worker.turn_mut().and_then(|turn| turn.beside.as_mut()) {
                beside.current = false;
            }
            if let Worker::Storing { landed, .. } = worker {
                *landed = false;
            }
        }
        if let Some(late) = &mut self.late_commit {
            late.beside.current = false;
        }
    }

    /// A commit of follow lands.
    pub fn land(&mut self, plan: &Plan) {
        self.ledger.write(plan.next, &plan.writes, 1, NONE);
        for worker in &mut self.workers {
            if let Some(turn) = worker.turn_mut() {
                turn.belief.current = false;
            }
        }
    }

    fn end_of_worker(&self, w: u8, to: &mut Steps<'_>) {
        let worker = self.workers[usize::from(w)];
        if worker == Worker::Down {
            return;
        }
        let Some(next) = self.spend() else { return };
        to.bad(Action::Crash(w), next, Worker::Down);
        if let Worker::Storing { turn, concluding, landed: false } = worker
            && self.late_commit.is_none()
            && let Some(beside) = turn.beside
        {
            let late_commit = Some(LateCommit { belief: turn.belief, beside, concluding });
            to.bad(Action::CrashInCommit(w), World { late_commit, ..next }, Worker::Down);
        }
    }

    /// A dead holder's lease ends in time; that of a living one only if it is slow.
    fn clock(&self, to: &mut Steps<'_>) {
        let Some(lease) = self.ledger.lease.filter(|lease| !lease.expired) else { return };
        let expire = |next: &mut World| next.ledger.lease = Some(Lease { expired: true, ..lease });
        let is_its = |worker: &Worker| worker.lease().is_some_and(|held| held.fence == lease.fence);
        if !self.workers.iter().any(is_its) {
            to.around(self, Action::ExpireDead, expire);
        } else if let Some(from) = self.spend() {
            to.around(&from, Action::ExpireSlow, expire);
        }
    }

    fn late(&self, to: &mut Steps<'_>) {
        let swallows = to.swallows;
        if let Some(batch) = self.late_batch {
            to.around(self, Action::LateBatch(batch), |next| {
                next.late_batch = None;
                next.apply(batch, swallows);
            });
        }
        if let Some(commit) = self.late_commit {
            let lands = turn::refused(self, commit.belief, commit.beside.current, to).is_none();
            let plan = to.machine.on(commit.beside.stored, commit.concluding.seen);
            let lawful = turn::lawful(self, commit.belief, to) && commit.beside.current;
            let memory = to.machine.memory(plan.next).clone();
            to.around(self, Action::LateCommit { lands }, |next| {
                next.late_commit = None;
                if lands {
                    next.store(&plan, &memory, commit.concluding, lawful);
                }
            });
        }
    }

    /// A commit of the run beside lands.
    pub fn store(
        &mut self,
        plan: &super::machine::Plan,
        memory: &super::machine::Memory,
        concluding: Concluding,
        lawful: bool,
    ) {
        self.outdate();
        self.ledger.write(self.ledger.run, &plan.writes, 1, NONE);
        self.run = Some(plan.next);
        self.ghost.stored(memory, concluding, lawful);
    }

    fn writer(&self, to: &mut Steps<'_>) {
        for key in 0..KEYS {
            if let Some(changes) = self.left.changes.checked_sub(1) {
                let mut from = *self;
                from.left.changes = changes;
                to.around(&from, Action::Put(key), |next| next.source.change(key, true));
                if self.source.row(key).is_some() {
                    to.around(&from, Action::Delete(key), |next| next.source.change(key, false));
                }
            }
            if let Some(unseen) = self.left.unseen.checked_sub(1)
                && self.source.is_told(key)
            {
                let mut from = *self;
                from.left.unseen = unseen;
                to.around(&from, Action::Unseen(key), |next| {
                    next.source.change_unseen(key);
                    next.unaudit(only(key));
                });
            }
        }
    }

    fn unaudit(&mut self, keys: u8) {
        self.ghost.unseen(keys);
        for worker in &mut self.workers {
            worker.spoil(0, keys);
        }
        if let Some(late) = &mut self.late_commit {
            late.concluding.evidence.spoil(0, keys);
        }
    }

    fn spoil(&mut self, keys: u8) {
        self.ghost.spoiled(keys);
        for worker in &mut self.workers {
            worker.spoil(1, keys);
        }
        if let Some(late) = &mut self.late_commit {
            late.concluding.evidence.spoil(1, keys);
        }
    }

    /// Somebody spoils the sink.
    fn spoiler(&self, to: &mut Steps<'_>) {
        for key in 0..KEYS {
            let Some(spoils) = self.left.spoils.checked_sub(1) else { break };
            let mut from = *self;
            from.left.spoils = spoils;
            let place = usize::from(key);
            if self.sink.document(key).is_some() {
                to.around(&from, Action::Lose(key), |next| {
                    next.sink.keys[place] = None;
                    next.spoil(only(key));
                });
            }
            for version in [0, AHEAD] {
                let planted = Held { rules: 1, version, document: Some(PLANTED) };
                to.around(&from, Action::Plant(key, version), |next| {
                    next.sink.keys[place] = Some(planted);
                    next.spoil(only(key));
                });
            }
        }
        // As in the explorer of follow, no former holder is about to write.
        let former =
            |worker: &Worker| worker.lease().is_some_and(|lease| lease.fence < self.ledger.fence);
        let backup = to.backup;
        if let Some(restores) = self.left.restores.checked_sub(1)
            && self.sink != backup
            && !self.workers.iter().any(former)
            && self.late_batch.is_none()
        {
            to.around(self, Action::Restore, |next| {
                next.left.restores = restores;
                let differs =
                    |key: &u8| next.sink.keys[usize::from(*key)] != backup.keys[usize::from(*key)];
                let keys = (0..KEYS).filter(differs).map(only).fold(0, |all, key| all | key);
                next.sink = backup;
                next.spoil(keys);
            });
        }
    }

    /// Wishes for runs, and moves the version of the one that is there.
    fn operator(&self, to: &mut Steps<'_>) {
        let active = turn::active(self, to.machine).is_some();
        let wishes = [(self.left.wishes, false), (self.left.yeses, true)];
        for (left, confirmed) in wishes {
            let Some(left) = left.checked_sub(1).filter(|_| !active) else { continue };
            let first = to.machine.first(confirmed);
            to.around(self, Action::Wish { confirmed }, |next| {
                if confirmed {
                    next.left.yeses = left;
                } else {
                    next.left.wishes = left;
                }
                next.open(first, confirmed);
            });
        }
        if let Some(moves) = self.left.moves.checked_sub(1).filter(|_| active) {
            to.around(self, Action::Move, |next| {
                next.left.moves = moves;
                next.outdate();
            });
        }
    }

    /// A new run.
    pub fn open(&mut self, first: StoredId, yes: bool) {
        self.outdate();
        self.run = Some(first);
        self.ghost.began(yes);
    }
}

/// The version of a planted entry that is newer than anything the source will say.
const AHEAD: u8 = FOREIGN;
/// The document of a planted entry.
const PLANTED: u8 = 250;

impl search::World for World {
    type Action = Action;
    type Laws = Laws;

    fn steps(&self, laws: &mut Laws) -> Vec<Step<Self>> {
        let mut to = Steps {
            follow: &mut laws.follow,
            machine: &mut laws.machine,
            breaks: laws.breaks,
            backup: laws.backup,
            swallows: laws.swallows,
            found: Vec::new(),
        };
        for w in 0..2 {
            turn::steps(self, w, &mut to);
            self.end_of_worker(w, &mut to);
        }
        self.clock(&mut to);
        self.late(&mut to);
        self.writer(&mut to);
        self.spoiler(&mut to);
        self.operator(&mut to);
        to.found
    }

    fn always(&self, laws: &Laws) -> Result<(), Broken> {
        invariants::always(self, laws)
    }

    fn between(&self, after: &Self, laws: &Laws) -> Result<(), Broken> {
        invariants::between(self, after, laws)
    }

    fn at_rest(&self, laws: &Laws) -> Result<(), Broken> {
        invariants::at_rest(self, laws)
    }

    fn tell(&self, laws: &Laws) -> String {
        story::tell(self, laws)
    }
}
