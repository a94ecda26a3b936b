//! The turns of a worker: a step of follow, which is one here, or of the run beside it, one call
//! after the other, so that anything else can happen between them.

use truekeep_core::follow::Command;
use truekeep_core::guard::Lost;

use super::look;
use super::machine::{Machine, Seen, Standing, StoredId, Task};
use super::story::Action;
use super::worker::{Concluding, Evidence, Turn, Worker};
use super::world::{Beside, Steps, World};
use crate::follow::ledger::{ItemState, Lease};
use crate::follow::machine::{Doubt, passed, small};
use crate::follow::sink::{Answer, Batch, SinkMark};
use crate::follow::source::{Acknowledged, KEYS};
use crate::follow::worker::{Batches, Belief, Done, Fate, Holding, Seen as Saw};
use crate::follow::{self, NONE};

const RULES: u8 = 1;

/// Every next step of a worker.
pub fn steps(world: &World, w: u8, to: &mut Steps<'_>) {
    match world.workers[usize::from(w)] {
        Worker::Down => acquire(world, w, to),
        Worker::Loading(lease) => load(world, w, lease, to),
        Worker::Ready(turn) => {
            follow(world, w, turn, to);
            if to.follow.memory(turn.phase).tailing {
                find(world, w, turn, to);
                beside(world, w, turn, to);
            }
        }
        Worker::Looking(turn, evidence, stage) => {
            look::go_on(world, w, (turn, evidence, stage), to);
        }
        Worker::Telling(turn, concluding) => tell(world, w, turn, concluding, to),
        Worker::Storing { turn, concluding, landed } => {
            store(world, w, turn, (concluding, landed), to);
        }
    }
}

fn acquire(world: &World, w: u8, to: &mut Steps<'_>) {
    // Two workers that remember nothing are the same: the first one is tried.
    let other_is_first = w == 1 && world.workers[0] == Worker::Down;
    if other_is_first || world.ledger.in_force(to.follow).is_some() {
        return;
    }
    let mut next = *world;
    next.ledger.fence += 1;
    let fence = next.ledger.fence;
    next.ledger.lease = Some(Lease { fence, expired: false });
    to.step(Action::Acquire(w), next, Worker::Loading(Holding { fence, rules: RULES }));
}

fn load(world: &World, w: u8, lease: Holding, to: &mut Steps<'_>) {
    let (belief, phase) = (Belief { lease, current: true }, world.ledger.run);
    let turn = Turn { belief, phase, batches: Batches::default(), beside: None };
    let mut next = *world;
    let worker = commit(&mut next, turn, Saw::TookOver { after_crash: false }, to);
    to.step(Action::Load(w), next, worker);
}

/// Commits what follow has seen, if anything follows from it.
fn commit(next: &mut World, turn: Turn, seen: Saw, to: &mut Steps<'_>) -> Worker {
    let plan = to.follow.on(RULES, turn.phase, seen);
    if plan.next == turn.phase && plan.writes.is_empty() {
        return Worker::Ready(turn);
    }
    if next.ledger.refuses(to.follow, turn.belief, NONE).is_some() {
        return give_way(next, turn);
    }
    next.land(&plan);
    let belief = Belief { current: true, ..turn.belief };
    Worker::Ready(Turn { belief, phase: plan.next, ..turn })
}

/// Who has lost gives its lease back, if it is still its own.
fn give_way(next: &mut World, turn: Turn) -> Worker {
    next.ledger.release(turn.belief.lease.fence);
    Worker::Down
}

fn follow(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    if to.follow.memory(turn.phase).ahead {
        // It looks again now and then, and finds the same.
        return;
    }
    let mut next = *world;
    match to.follow.due(RULES, turn.phase) {
        Command::Open => open(world, w, turn, to),
        Command::Register(registration) => {
            let acknowledged = Acknowledged {
                counter: small(registration.counter.get()),
                cursor: passed(&registration.passed),
            };
            next.source.acknowledged = Some(acknowledged);
            let worker = commit(&mut next, turn, Saw::Registered(acknowledged), to);
            to.step(Action::Register(w), next, worker);
        }
        Command::Deliver { after, .. } => {
            redeliver(world, w, turn, to);
            deliver(world, w, turn, passed(&after.passed), to);
        }
        Command::BeginAgain { .. } | Command::Fill | Command::Arm | Command::Isolate { .. } => {
            unreachable!("nobody kills, and the source is never older")
        }
    }
}

/// Source and sink are looked at; the run that is open is found, and if something went back it
/// begins again.
fn open(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    let mut next = *world;
    let batches = Batches { taken: world.sink.newest(), ..turn.batches };
    let seen = Saw::Opened { view: world.source.view(), mark: world.sink.mark };
    let worker = commit(&mut next, Turn { batches, ..turn }, seen, to);
    let Worker::Ready(mut turn) = worker else {
        return to.step(Action::Open(w), next, worker);
    };
    if turn.beside.is_none() {
        turn.beside = active(world, to.machine).map(|stored| Beside { stored, current: true });
    }
    if went_back(turn, to) {
        next.ghost.went_back(&next.source);
        turn = anew(turn, to);
    }
    to.step(Action::Open(w), next, Worker::Ready(turn));
}

fn went_back(turn: Turn, to: &Steps<'_>) -> bool {
    let memory = to.follow.memory(turn.phase);
    memory.tailing && memory.doubt == Some(Doubt::SinkWentBack)
}

/// What a run saw before something went back says nothing.
fn anew(turn: Turn, to: &mut Steps<'_>) -> Turn {
    let Some(beside) = turn.beside.filter(|_| !to.breaks.nothing_begins_again) else {
        return turn;
    };
    let confirmed = to.machine.memory(beside.stored).confirmed && to.breaks.a_yes_is_kept;
    let stored = to.machine.first(confirmed);
    Turn { beside: Some(Beside { stored, ..beside }), ..turn }
}

/// The run that is open.
pub fn active(world: &World, machine: &Machine) -> Option<StoredId> {
    world.run.filter(|run| machine.memory(*run).standing == Standing::Active)
}

fn batch(turn: Turn, key: u8, version: u8, world: &World, to: &Steps<'_>) -> (Batch, Turn) {
    let tail = to.follow.memory(turn.phase).tail.expect("only a tail delivers");
    let number = turn.batches.next(tail.sent);
    let Holding { rules, fence } = turn.belief.lease;
    let mark = SinkMark { rules, fence, number };
    let batches = Batches { sent: number, ..turn.batches };
    let follows = turn.batches.taken;
    let document = world.source.row(key);
    (Batch { mark, follows, key, version, document }, Turn { batches, ..turn })
}

/// Reads the next change and the document, sends it and commits, all in one step: what may happen
/// in between is the explorer of follow's to find out.
fn deliver(world: &World, w: u8, turn: Turn, after: u8, to: &mut Steps<'_>) {
    let (row, is_last) = world.source.after(after);
    let moment = is_last.then_some(world.source.newest);
    let view = world.source.view();
    let Some((key, version)) = row else {
        let witness = SinkMark { fence: turn.belief.lease.fence, rules: RULES, number: 0 };
        let ask = Batch { mark: witness, follows: turn.batches.taken, ..Batch::NONE };
        let mut next = *world;
        let worker = match world.sink.clone().refuse(ask, NONE) {
            Some(Answer::WentBack) => commit(&mut next, turn, Saw::SinkWentBack, to),
            Some(_) => give_way(&mut next, turn),
            None => {
                commit(&mut next, turn, Saw::Page { next: after, moment, view, done: None }, to)
            }
        };
        if next != *world || worker != Worker::Ready(turn) {
            to.step(Action::Claim(w), next, worker);
        }
        return;
    };
    let (batch, turn) = batch(turn, key, version, world, to);
    let seen = |done| Saw::Page { next: version, moment, view, done: Some(done) };
    send(world, w, (turn, batch, 1), &seen, to);
    if let Some(mut next) = world.spend().filter(|next| next.late_batch.is_none()) {
        next.late_batch = Some(batch);
        to.bad(Action::Delay(w, batch), next, Worker::Ready(turn));
    }
}

/// Sends again what was put off.
fn redeliver(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    for key in 0..KEYS {
        let Some(item) = world.ledger.items[usize::from(key)] else { continue };
        if item.state == ItemState::Parked {
            continue;
        }
        let version = world.source.feed(key).map_or(item.version, |row| row.version);
        let (batch, turn) = batch(turn, key, version, world, to);
        send(world, w, (turn, batch, item.attempts + 1), &Saw::Redelivered, to);
    }
}

fn send(
    world: &World,
    w: u8,
    (turn, batch, attempts): (Turn, Batch, u8),
    seen: &dyn Fn(Done) -> Saw,
    to: &mut Steps<'_>,
) {
    let done = |fate| Done {
        key: batch.key,
        version: batch.version,
        deleted: batch.document.is_none(),
        attempts,
        sent: Some(batch.mark.name()),
        fate,
    };
    let taken = Turn { batches: Batches { taken: batch.mark.name(), ..turn.batches }, ..turn };
    let mut next = *world;
    let worker = match next.apply(batch, to.swallows) {
        Answer::Fenced => give_way(&mut next, turn),
        Answer::WentBack => commit(&mut next, turn, Saw::SinkWentBack, to),
        Answer::Held => commit(&mut next, taken, seen(done(Fate::Done)), to),
        Answer::Outdone { version, .. } => {
            let known = world.source.feed(batch.key).map_or(0, |row| row.version);
            let fate = if known >= version { Fate::Done } else { Fate::Ahead };
            commit(&mut next, taken, seen(done(fate)), to)
        }
    };
    to.step(Action::Deliver(w, batch), next, worker);
    let Some(mut next) = world.spend() else { return };
    if next.sink.refuse(batch, NONE).is_none() {
        let worker = commit(&mut next, taken, seen(done(Fate::Again)), to);
        to.bad(Action::PutOff(w, batch), next, worker);
    }
    let Some(mut next) = world.spend() else { return };
    next.apply(batch, to.swallows);
    to.bad(Action::DeliverUnanswered(w, batch), next, Worker::Ready(turn));
}

/// Looks for a run that is open, or opens the one that is due because the sink is not trusted.
fn find(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    if turn.beside.is_some() {
        return;
    }
    let found = |stored| Turn { beside: Some(Beside { stored, current: true }), ..turn };
    if let Some(stored) = active(world, to.machine) {
        let again = went_back(turn, to) && !to.breaks.what_is_found_goes_on;
        let turn = if again { anew(found(stored), to) } else { found(stored) };
        return to.step(Action::Find(w), *world, Worker::Ready(turn));
    }
    let due = match to.follow.memory(turn.phase).doubt {
        None | Some(Doubt::GuardRefused | Doubt::SinkAhead) => None,
        Some(Doubt::Drift | Doubt::SinkWentBack | Doubt::Other) => {
            world.left.repairs.checked_sub(1)
        }
    };
    let Some(repairs) = due else { return };
    let first = to.machine.first(false);
    let mut next = *world;
    next.left.repairs = repairs;
    next.open(first, false);
    to.step(Action::Repair(w), next, Worker::Ready(found(first)));
}

fn beside(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    let Some(beside) = turn.beside else { return };
    let concluding = |seen| Concluding { seen, evidence: Evidence::default() };
    match to.machine.due(beside.stored) {
        Task::Look => {
            let worker = told(turn, concluding(Seen::Looked), to);
            to.step(Action::Begin(w), *world, worker);
        }
        Task::Audit { ghosts_max } => look::audit(world, w, turn, ghosts_max, to),
        Task::Compare { after, .. } | Task::Purge { after, .. } => {
            look::list(world, w, turn, after, to);
        }
        Task::Await { numbered } => {
            let cursor = to.follow.memory(turn.phase).tail.map_or(0, |tail| tail.cursor);
            if cursor >= numbered {
                let worker = told(turn, concluding(Seen::Reached), to);
                to.step(Action::Reach(w), *world, worker);
            }
        }
    }
}

/// Follow is told first, if there is anything to tell, and the run is stored second.
pub fn told(turn: Turn, concluding: Concluding, to: &mut Steps<'_>) -> Worker {
    let storing = Worker::Storing { turn, concluding, landed: false };
    let Some(beside) = turn.beside.filter(|_| !to.breaks.stores_before_it_tells) else {
        return storing;
    };
    let plan = to.machine.on(beside.stored, concluding.seen);
    let judgement = to.machine.memory(plan.next).judgement;
    match judgement {
        Some(doubt) if news(turn, doubt, to) => Worker::Telling(turn, concluding),
        Some(_) | None => storing,
    }
}

fn news(turn: Turn, doubt: Option<Doubt>, to: &mut Steps<'_>) -> bool {
    let plan = to.follow.on(RULES, turn.phase, Saw::Judged(doubt));
    plan.next != turn.phase || !plan.writes.is_empty()
}

fn tell(world: &World, w: u8, turn: Turn, concluding: Concluding, to: &mut Steps<'_>) {
    let beside = turn.beside.expect("it has a run");
    let stored = if to.breaks.stores_before_it_tells {
        beside.stored
    } else {
        to.machine.on(beside.stored, concluding.seen).next
    };
    let doubt = to.machine.memory(stored).judgement.expect("there is something to tell");
    let mut next = *world;
    let worker = match commit(&mut next, turn, Saw::Judged(doubt), to) {
        Worker::Ready(turn) if to.breaks.stores_before_it_tells => Worker::Ready(turn.ended(to)),
        Worker::Ready(turn) => Worker::Storing { turn, concluding, landed: false },
        worker => worker,
    };
    to.step(Action::Tell(w, doubt), next, worker);
}

impl Turn {
    /// The same, without a run that has ended.
    fn ended(self, to: &Steps<'_>) -> Self {
        let active =
            |beside: &Beside| to.machine.memory(beside.stored).standing == Standing::Active;
        Self { beside: self.beside.filter(active), ..self }
    }
}

/// Why a commit of the run beside may not land.
pub fn refused(world: &World, belief: Belief, current: bool, to: &Steps<'_>) -> Option<Lost> {
    let breaks = follow::Breaks {
        guard_ignores_the_token: to.breaks.the_runs_guard_ignores_the_lease,
        guard_ignores_the_run_version: to.breaks.the_runs_guard_ignores_its_version,
        ..NONE
    };
    world.ledger.refuses(to.follow, Belief { current, ..belief }, breaks)
}

/// Whether a writer has the lease in force.
pub fn lawful(world: &World, belief: Belief, to: &Steps<'_>) -> bool {
    world.ledger.in_force(to.follow).is_some_and(|held| held.fence == belief.lease.fence)
}

fn store(
    world: &World,
    w: u8,
    turn: Turn,
    (concluding, landed): (Concluding, bool),
    to: &mut Steps<'_>,
) {
    let beside = turn.beside.expect("it has a run");
    let plan = to.machine.on(beside.stored, concluding.seen);
    let memory = to.machine.memory(plan.next).clone();
    let after = Turn { beside: Some(Beside { stored: plan.next, current: true }), ..turn };
    let after = match memory.judgement {
        Some(doubt) if to.breaks.stores_before_it_tells && news(turn, doubt, to) => {
            Worker::Telling(after, concluding)
        }
        Some(_) | None => Worker::Ready(after.ended(to)),
    };
    let mut next = *world;
    if landed {
        return to.step(Action::FoundLanded(w), next, after);
    }
    if plan.next == beside.stored && plan.writes.is_empty() {
        return to.step(Action::NothingToStore(w), next, Worker::Ready(turn));
    }
    match refused(world, turn.belief, beside.current, to) {
        Some(Lost::Run | Lost::RunVersion) => {
            to.step(Action::StoreLost(w), next, Worker::Ready(Turn { beside: None, ..turn }));
        }
        Some(_) => {
            let worker = give_way(&mut next, turn);
            to.step(Action::StoreLost(w), next, worker);
        }
        None => {
            let lawful = lawful(world, turn.belief, to) && beside.current;
            next.store(&plan, &memory, concluding, lawful);
            to.step(Action::Store(w), next, after);
            let Some(mut next) = world.spend() else { return };
            next.store(&plan, &memory, concluding, lawful);
            to.bad(
                Action::StoreUnanswered(w),
                next,
                Worker::Storing { turn, concluding, landed: true },
            );
        }
    }
}
