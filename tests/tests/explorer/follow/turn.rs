//! The turns of a worker: the engine's order of operations, one effect at a time.
//!
//! acquire, load, commit the take-over; then again and again: what is due, perform it, see, commit.
//! Reading a page, sending it, its arrival and the commit are steps of their own, so that anything
//! else can happen between them.

use truekeep_core::follow::Command;
use truekeep_core::guard::Lost;

use super::Breaks;
use super::ledger::{Item, ItemState, Lease};
use super::machine::{ATTEMPTS_MAX, passed, small};
use super::sink::{Answer, Batch, SinkMark};
use super::source::{Acknowledged, KEYS, Page};
use super::story::Action;
use super::worker::{Batches, Belief, Done, Fate, Holding, Seen, Turn, Work, Worker};
use super::world::{LateCommit, Steps, World};

/// Every next step of a worker.
pub fn steps(world: &World, w: u8, to: &mut Steps<'_>) {
    match world.workers[usize::from(w)] {
        Worker::Down => acquire(world, w, to),
        Worker::Loading { lease, after_crash, batches } => {
            let turn = Turn {
                belief: Belief { lease, current: true },
                phase: world.ledger.run,
                ahead: None,
                batches,
            };
            load(world, w, turn, after_crash, to);
        }
        Worker::Ready(turn) => {
            notice(world, w, turn, to);
            perform(world, w, turn, to);
        }
        Worker::Holds(turn, work) => send(world, w, turn, work, to),
        Worker::Sent(turn, work, batch) => {
            arrive(world, w, turn, work, batch, to);
            read_ahead(world, w, turn, work, batch, to);
        }
        Worker::Committing { turn, seen, landed } => commit(world, w, turn, seen, landed, to),
    }
}

fn acquire(world: &World, w: u8, to: &mut Steps<'_>) {
    // Two workers that remember nothing are the same: the first one is tried.
    let other_is_first = w == 1 && world.workers[0] == Worker::Down;
    if other_is_first || world.ledger.in_force(to.machine).is_some() {
        return;
    }
    let after_crash = world.ledger.lease.is_some();
    to.step(world, Action::Acquire(w), |next| {
        next.ledger.fence += 1;
        let fence = next.ledger.fence;
        next.ledger.lease = Some(Lease { fence, expired: false });
        let lease = Holding { fence, rules: next.ledger.rules };
        let after_crash = Some(after_crash);
        Worker::Loading { lease, after_crash, batches: Batches::default() }
    });
}

fn load(world: &World, w: u8, turn: Turn, after_crash: Option<bool>, to: &mut Steps<'_>) {
    to.step(world, Action::Load(w), |_| match after_crash {
        Some(after_crash) => committing(turn, Seen::TookOver { after_crash }),
        None => Worker::Ready(turn),
    });
}

/// The pulse: an operator or new rules moved something.
fn notice(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    let lease = turn.belief.lease;
    if lease.rules != world.ledger.rules {
        to.step(world, Action::Notice(w), |next| give_way(next, turn, Lost::Rules));
    } else if !turn.belief.current {
        let batches = turn.batches;
        to.step(world, Action::Notice(w), |_| Worker::Loading {
            lease,
            after_crash: None,
            batches,
        });
    }
}

fn committing(turn: Turn, seen: Seen) -> Worker {
    Worker::Committing { turn, seen, landed: false }
}

fn perform(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    match to.machine.due(turn.belief.lease.rules, turn.phase) {
        Command::Open => {
            let seen = Seen::Opened { view: world.source.view(), mark: world.sink.mark };
            let taken = world.sink.newest();
            let turn = Turn { batches: Batches { taken, ..turn.batches }, ..turn.anew() };
            to.step(world, Action::Open(w), |_| committing(turn, seen));
        }
        Command::Register(registration) => {
            let acknowledged = Acknowledged {
                counter: small(registration.counter.get()),
                cursor: passed(&registration.passed),
            };
            let effect = |next: &mut World| next.source.register(acknowledged);
            // A page that was read before would show an older acknowledgement.
            let turn =
                if to.breaks.read_ahead_outlives_an_acknowledgement { turn } else { turn.anew() };
            to.step(world, Action::Register(w), |next| {
                effect(next);
                committing(turn, Seen::Registered(acknowledged))
            });
            to.fault(world, Action::RegisterUnanswered(w), |next| {
                effect(next);
                Worker::Ready(turn)
            });
        }
        Command::BeginAgain { .. } | Command::Fill => unreachable!("the source is never older"),
        Command::Arm => {
            to.step(world, Action::Arm(w), |_| committing(turn, Seen::Armed));
        }
        Command::Isolate { after } => {
            let place = passed(&after.passed);
            let row = world.source.page(place).row.map(|row| Done {
                key: row.key,
                version: row.version,
                deleted: row.deleted,
                attempts: small(ATTEMPTS_MAX.into()),
                sent: None,
                fate: Fate::Refused,
            });
            let next = row.map_or(place, |row| row.version);
            let seen = Seen::Isolated { next, view: world.source.view(), row };
            to.step(world, Action::Isolate(w), |_| committing(turn.anew(), seen));
        }
        Command::Deliver { after, .. } => {
            claim(world, w, turn, to);
            read(world, w, turn, passed(&after.passed), to);
        }
    }
}

/// Claims an item that is due. A retry may be due or not, so the page is read as well.
fn claim(world: &World, w: u8, turn: Turn, to: &mut Steps<'_>) {
    for key in 0..KEYS {
        let Some(item) = world.ledger.items[usize::from(key)] else { continue };
        if item.state == ItemState::Parked {
            continue;
        }
        if let Some(lost) = world.ledger.refuses(to.machine, turn.belief, to.breaks) {
            to.step(world, Action::ClaimLost(w), |next| give_way(next, turn, lost));
            return;
        }
        let attempts = item.attempts + 1;
        let claimed = move |next: &mut World| {
            next.ledger.items[usize::from(key)] =
                Some(Item { state: ItemState::Leased, attempts, ..item });
        };
        to.step(world, Action::Claim(w, key), |next| {
            claimed(next);
            if u32::from(attempts) > ATTEMPTS_MAX {
                let (version, fate) = (item.version, Fate::Refused);
                let done = Done { key, version, deleted: false, attempts, sent: None, fate };
                return committing(turn, Seen::Redelivered(done));
            }
            Worker::Holds(turn, Work::Item { key, version: item.version, attempts })
        });
        to.fault(world, Action::ClaimUnanswered(w, key), |next| {
            claimed(next);
            Worker::Ready(turn)
        });
    }
}

/// The next page: the one that was read ahead, or else one in a snapshot of now. An idle page that
/// changes nothing is not committed.
fn read(world: &World, w: u8, turn: Turn, after: u8, to: &mut Steps<'_>) {
    let ahead = turn.ahead.filter(|(place, _)| *place == after).map(|(_, page)| page);
    let page = ahead.unwrap_or_else(|| page_after(world, after, to.breaks));
    let turn = turn.anew();
    let Some(row) = page.row else {
        let Page { next, moment, view, .. } = page;
        let seen = Seen::Page { next, moment, view, done: None };
        match witness(world, turn, to) {
            Some(Answer::WentBack) => {
                to.step(world, Action::ReadEnd(w), |_| committing(turn, Seen::SinkWentBack));
                return;
            }
            Some(_) => {
                to.step(world, Action::ReadEnd(w), |next| give_way(next, turn, Lost::Fence));
                return;
            }
            None => {}
        }
        let plan = to.machine.on(turn.belief.lease.rules, turn.phase, seen);
        if plan.next != turn.phase || !plan.writes.is_empty() || ahead.is_some() {
            to.step(world, Action::ReadEnd(w), |_| committing(turn, seen));
        }
        return;
    };
    to.step(world, Action::Read(w, row), |_| Worker::Holds(turn, Work::Page(page, row)));
}

/// What the sink would say to a batch, asked by who sends none.
fn witness(world: &World, turn: Turn, to: &Steps<'_>) -> Option<Answer> {
    if to.breaks.an_idle_page_asks_no_sink {
        return None;
    }
    let number = to.machine.memory(turn.phase).tail.map_or(0, |tail| tail.sent);
    let Holding { fence, rules } = turn.belief.lease;
    let follows = turn.batches.taken;
    let batch = Batch { mark: SinkMark { rules, fence, number }, follows, ..Batch::NONE };
    world.sink.clone().refuse(batch, to.breaks)
}

fn page_after(world: &World, after: u8, breaks: Breaks) -> Page {
    let mut page = world.source.page(after);
    if breaks.moment_before_the_end {
        page.moment = Some(world.source.newest());
    }
    page
}

/// While a page that is not the last is on its way, the next one may be read.
fn read_ahead(world: &World, w: u8, turn: Turn, work: Work, batch: Batch, to: &mut Steps<'_>) {
    let Work::Page(page, _) = work else { return };
    if page.moment.is_none() && turn.ahead.is_none() {
        let ahead = Some((page.next, page_after(world, page.next, to.breaks)));
        to.step(world, Action::ReadAhead(w), |_| Worker::Sent(Turn { ahead, ..turn }, work, batch));
    }
}

/// Loads the document, later than the version that it will carry, and sends it.
fn send(world: &World, w: u8, turn: Turn, work: Work, to: &mut Steps<'_>) {
    let tail = to.machine.memory(turn.phase).tail.expect("only a tail delivers");
    let (key, version) = match work {
        Work::Page(_, row) => (row.key, row.version),
        Work::Item { key, version, .. } => {
            (key, world.source.find(key).map_or(version, |row| row.version))
        }
    };
    let lease = turn.belief.lease;
    let next = turn.batches.next(tail.sent);
    let mark = SinkMark { rules: lease.rules, fence: lease.fence, number: next };
    let follows = turn.batches.taken;
    let batch = Batch { mark, follows, key, version, document: world.source.document(key) };
    let turn = Turn { batches: Batches { sent: next, ..turn.batches }, ..turn };
    let commits_first = to.breaks.commit_before_apply && world.late_batch.is_none();
    to.step(world, Action::Send(w, batch), |next| {
        if commits_first {
            next.late_batch = Some(batch);
            return answered(turn, work, batch, Fate::Done);
        }
        Worker::Sent(turn, work, batch)
    });
}

fn arrive(world: &World, w: u8, turn: Turn, work: Work, batch: Batch, to: &mut Steps<'_>) {
    let breaks = to.breaks;
    to.step(world, Action::Arrive(w), |next| match next.sink.apply(batch, breaks) {
        Answer::Fenced => give_way(next, turn, Lost::Fence),
        Answer::WentBack => committing(turn.anew(), Seen::SinkWentBack),
        Answer::Held => answered(turn, work, batch, Fate::Done),
        // Something greater is success only if the feed, read again, is as great.
        Answer::Outdone { rules, version } => {
            if rules > batch.mark.rules {
                return give_way(next, turn, Lost::Fence);
            }
            let feed = next.source.find(batch.key).map_or(0, |row| row.version);
            let fate = if feed >= version { Fate::Done } else { Fate::Ahead };
            answered(turn, work, batch, fate)
        }
    });
    for fate in [Fate::Refused, Fate::Again] {
        to.fault(world, Action::Trouble(w, fate), |next| match next.sink.refuse(batch, breaks) {
            Some(Answer::WentBack) => committing(turn.anew(), Seen::SinkWentBack),
            Some(_) => give_way(next, turn, Lost::Fence),
            None => answered(turn, work, batch, fate),
        });
    }
    to.fault(world, Action::ArriveUnanswered(w), |next| {
        next.sink.apply(batch, breaks);
        Worker::Ready(turn.anew())
    });
    if world.late_batch.is_none() {
        to.fault(world, Action::Delay(w), |next| {
            next.late_batch = Some(batch);
            Worker::Ready(turn.anew())
        });
    }
}

fn answered(turn: Turn, work: Work, batch: Batch, fate: Fate) -> Worker {
    let batches = Batches { taken: batch.mark.name(), ..turn.batches };
    let turn = Turn { batches, ..turn };
    let attempts = match work {
        Work::Page(..) => 1,
        Work::Item { attempts, .. } => attempts,
    };
    let done = Done {
        key: batch.key,
        version: batch.version,
        deleted: batch.document.is_none(),
        attempts,
        sent: Some(batch.mark.name()),
        fate,
    };
    committing(
        turn,
        match work {
            Work::Page(Page { next, moment, view, .. }, _) => {
                Seen::Page { next, moment, view, done: Some(done) }
            }
            Work::Item { .. } => Seen::Redelivered(done),
        },
    )
}

fn commit(world: &World, w: u8, turn: Turn, seen: Seen, landed: bool, to: &mut Steps<'_>) {
    let plan = to.machine.on(turn.belief.lease.rules, turn.phase, seen);
    let ready = Worker::Ready(Turn {
        belief: Belief { current: true, ..turn.belief },
        phase: plan.next,
        ..turn
    });
    if landed {
        to.step(world, Action::FoundLanded(w), |_| ready);
        return;
    }
    if plan.next == turn.phase && plan.writes.is_empty() {
        to.step(world, Action::NothingToCommit(w), |_| Worker::Ready(turn));
        return;
    }
    if let Some(lost) = world.ledger.refuses(to.machine, turn.belief, to.breaks) {
        to.step(world, Action::CommitLost(w, lost), |next| give_way(next, turn, lost));
    } else {
        let (breaks, itself) = (to.breaks, LateCommit { turn, seen, landed: false });
        let lawful = world.holds_lease(to.machine, turn.belief.lease);
        to.step(world, Action::Commit(w), |next| {
            next.land(itself, &plan, breaks);
            ready
        });
        to.wrote(lawful, &plan);
        to.fault(world, Action::CommitUnanswered(w), |next| {
            next.land(itself, &plan, breaks);
            next.workers[usize::from(w)]
        });
    }
    if world.late_commit.is_none() {
        to.fault(world, Action::CommitDelayed(w), |next| {
            next.late_commit = Some(LateCommit { turn, seen, landed: false });
            Worker::Committing { turn, seen, landed }
        });
    }
}

/// A lost race: whose lease is lost gives it back all the same; else the run is loaded again, under
/// the rules that are in force now.
fn give_way(next: &mut World, turn: Turn, lost: Lost) -> Worker {
    let lease = turn.belief.lease;
    match lost {
        Lost::Lease | Lost::Fence | Lost::Run => {
            next.ledger.release(lease.fence);
            Worker::Down
        }
        Lost::RunVersion => Worker::Loading { lease, after_crash: None, batches: turn.batches },
        Lost::Rules => {
            let lease = Holding { rules: next.ledger.rules, ..lease };
            Worker::Loading { lease, after_crash: None, batches: turn.batches }
        }
    }
}
