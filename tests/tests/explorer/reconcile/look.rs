//! A look of the run: the feed is held against the table, or a range of the sink against both.

use truekeep_core::compare::{Compare, Difference, Next, Side};

use super::machine::{Counts, Parked, Seen, Task, count};
use super::source::{ALL, Keys, each, only, rank};
use super::story::Action;
use super::turn::told;
use super::worker::{Concluding, Evidence, Judged, Range, Stage, Turn, Worker};
use super::world::{Beside, Steps, World};
use crate::follow::ledger::ItemState;
use crate::follow::machine::{key, key_number, small};
use crate::follow::source::KEYS;
use crate::search::Broken;

const TOO_MANY: Broken = "Q1: more is removed than was counted and let pass";

/// Reads the whole audit in one page.
pub fn audit(world: &World, w: u8, turn: Turn, ghosts_max: u64, to: &mut Steps<'_>) {
    let told = |key: &u8| world.source.live(*key) == world.source.row(*key).is_some();
    let among = |row: bool| {
        let wanted = |key: &u8| !told(key) && world.source.row(*key).is_some() == row;
        each(ALL).filter(wanted).map(only).fold(0, |all, key| all | key)
    };
    let (mut missed, mut ghosts) = (among(true), among(false));
    if to.breaks.the_audit_is_skipped {
        (missed, ghosts) = (0, 0);
    }
    let allowed = u64::from(count(ghosts)) <= ghosts_max || to.breaks.the_audit_buries_all;
    let numbers = missed | if allowed { ghosts } else { 0 };
    let mut evidence = Evidence { fresh: [ALL, 0], ..Evidence::default() };
    for key in each(missed | ghosts) {
        evidence.known[usize::from(key)] = row_version(world, key).max(1);
    }
    let stage = Stage::Audited { missed, ghosts, numbers };
    to.step(Action::Audit(w), *world, Worker::Looking(turn, evidence, stage));
}

/// Lists the next page of the sink: one entry.
pub fn list(world: &World, w: u8, turn: Turn, after: Option<u8>, to: &mut Steps<'_>) {
    let rest: Keys = each(ALL)
        .filter(|key| after.is_none_or(|after| *key > after))
        .map(only)
        .fold(0, |all, key| all | key);
    let mut entries = each(rest).filter(|key| world.sink.document(*key).is_some());
    let first = entries.next();
    let next = first.filter(|_| entries.next().is_some());
    let keys = match next {
        Some(bound) => rest & (only(bound) | (only(bound) - 1)),
        None => rest,
    };
    let version = |key: u8| world.sink.keys[usize::from(key)].map_or(0, |held| held.version);
    let mut feed = [0; KEYS as usize];
    if to.breaks.the_feed_is_asked_too_early {
        each(ALL).for_each(|key| feed[usize::from(key)] = row_version(world, key));
    }
    let entry = first.map(|key| (key, version(key)));
    let evidence = Evidence { fresh: [0, keys], ..Evidence::default() };
    let stage = Stage::Listed(Range { keys, next, entry, feed });
    to.step(Action::List(w), *world, Worker::Looking(turn, evidence, stage));
}

fn row_version(world: &World, key: u8) -> u8 {
    world.source.feed(key).map_or(0, |row| row.version)
}

/// The next call of a look.
pub fn go_on(
    world: &World,
    w: u8,
    (turn, evidence, stage): (Turn, Evidence, Stage),
    to: &mut Steps<'_>,
) {
    match stage {
        Stage::Listed(range) => {
            let mut rows = [None; KEYS as usize];
            world.source.keys(range.keys).for_each(|(key, v)| rows[usize::from(key)] = Some(v));
            let stage = Stage::Read(range, rows);
            to.step(Action::Read(w), *world, Worker::Looking(turn, evidence, stage));
        }
        Stage::Read(range, rows) => {
            let judged = judge(world, turn, range, rows, to);
            let stage = Stage::Judged(judged);
            to.step(Action::Judge(w), *world, Worker::Looking(turn, evidence, stage));
        }
        Stage::Audited { missed, ghosts, numbers } => {
            let seen = |numbered| {
                let (missed, ghosts) = (count(missed), count(ghosts));
                Concluding { seen: Seen::Audited { missed, ghosts, numbered }, evidence }
            };
            number(world, w, (turn, numbers), &seen, to);
        }
        Stage::Judged(judged) => conclude(world, w, turn, evidence, judged, to),
    }
}

/// Merges the range by the core's own comparison, and sorts out what follow has not come to yet.
fn judge(
    world: &World,
    turn: Turn,
    range: Range,
    rows: [Option<u8>; KEYS as usize],
    to: &Steps<'_>,
) -> Judged {
    let mut compare = Compare::default();
    let entry = range.entry.map(|(number, version)| (key(number), rank(version)));
    compare.feed(Side::Sink, entry, true).expect("in order");
    let rows = (0..).zip(rows).filter_map(|(number, version)| Some((key(number), rank(version?))));
    compare.feed(Side::Source, rows, true).expect("in order");
    let cursor = to.follow.memory(turn.phase).tail.map_or(0, |tail| tail.cursor);
    let beside = turn.beside.expect("it has a run");
    let park = matches!(to.machine.due(beside.stored), Task::Compare { park: true, .. });
    let mut judged = Judged {
        next: range.next,
        counts: Counts::default(),
        repairs: 0,
        orphans: 0,
        park: Parked::default(),
        known: [0; KEYS as usize],
    };
    let mut found = Vec::new();
    loop {
        match compare.advance() {
            Next::Found(difference) => found.push(difference),
            Next::Need(_) => unreachable!("both were fed whole"),
            Next::Done => break,
        }
    }
    let equal = small(compare.equal());
    let of = |one: fn(&Difference) -> bool| small(found.iter().filter(|d| one(d)).count() as u64);
    judged.counts.listed = equal + of(|d| !matches!(d, Difference::Missing(..)));
    judged.counts.live = equal + of(|d| !matches!(d, Difference::Orphan(..)));
    for difference in found {
        let number = small(key_number(difference.key()) as u64);
        let ahead = matches!(difference, Difference::Ahead(..));
        let version = if to.breaks.the_feed_is_asked_too_early {
            range.feed[usize::from(number)]
        } else {
            row_version(world, number)
        };
        let item = world.ledger.items[usize::from(number)].map(|item| item.state);
        let coming = version > cursor || item.is_some_and(|state| state != ItemState::Parked);
        let coming = coming && !ahead && !to.breaks.the_feed_is_not_asked;
        if coming || item == Some(ItemState::Parked) {
            continue;
        }
        judged.known[usize::from(number)] = version.max(1);
        add(&mut judged, &difference, number);
        if park {
            judged.park[usize::from(number)] = Some(version);
            judged.repairs = 0;
        }
    }
    judged
}

fn add(judged: &mut Judged, difference: &Difference, number: u8) {
    let Judged { counts, repairs, orphans, .. } = judged;
    match difference {
        Difference::Missing(..) => {
            counts.missing += 1;
            *repairs |= only(number);
        }
        Difference::Stale(..) => {
            counts.stale += 1;
            *repairs |= only(number);
        }
        Difference::Orphan(..) => {
            counts.orphans += 1;
            *orphans |= only(number);
        }
        Difference::Ahead(..) => counts.ahead += 1,
        Difference::Altered(..) => unreachable!("documents are not compared"),
    }
}

fn conclude(
    world: &World,
    w: u8,
    turn: Turn,
    evidence: Evidence,
    judged: Judged,
    to: &mut Steps<'_>,
) {
    let stored = turn.beside.expect("it has a run").stored;
    let Judged { next, counts, repairs, orphans, park, known } = judged;
    match to.machine.due(stored) {
        Task::Purge { orphans_max, .. } => {
            let exceeded =
                u64::from(count(orphans)) > orphans_max && !to.breaks.the_purge_has_no_bound;
            let orphans = if exceeded { 0 } else { orphans };
            // What else differs by now is not this step's to say.
            let evidence = Evidence { fresh: [0; 2], ..evidence };
            let buried = count(orphans);
            let seen = |numbered| Concluding {
                seen: Seen::Purged { next, buried, exceeded, numbered },
                evidence,
            };
            number(world, w, (turn, orphans), &seen, to);
        }
        Task::Compare { park: second, .. } => {
            let counted = if second { 0 } else { evidence.counted | covered(next, turn, to) };
            let evidence = Evidence { counted, known, ..evidence };
            let seen = |numbered| Concluding {
                seen: Seen::Compared { next, counts, park, numbered },
                evidence,
            };
            number(world, w, (turn, repairs), &seen, to);
        }
        Task::Look | Task::Audit { .. } | Task::Await { .. } => {
            unreachable!("the run asked for a range")
        }
    }
}

/// The keys of the range that the run is at.
fn covered(next: Option<u8>, turn: Turn, to: &Steps<'_>) -> Keys {
    let stored = turn.beside.expect("it has a run").stored;
    let after = to.machine.memory(stored).after;
    let inside =
        |key: &u8| after.is_none_or(|after| *key > after) && next.is_none_or(|next| *key <= next);
    each(ALL).filter(inside).map(only).fold(0, |all, key| all | key)
}

/// Numbers keys, if there are any, and concludes.
fn number(
    world: &World,
    w: u8,
    (turn, keys): (Turn, Keys),
    seen: &dyn Fn(Option<u8>) -> Concluding,
    to: &mut Steps<'_>,
) {
    if keys == 0 {
        let worker = told(turn, seen(None), to);
        return to.step(Action::Conclude(w), *world, worker);
    }
    let Beside { stored, current } = turn.beside.expect("it has a run");
    let task = to.machine.due(stored);
    let purges = matches!(task, Task::Purge { .. });
    let numbered = |mut next: World| {
        for key in each(keys) {
            if purges && to.breaks.an_orphan_is_not_judged_again {
                next.source.bury(key);
            } else {
                next.source.number(key);
            }
        }
        let (memory, guard) = (to.machine.memory(stored), to.machine.guard);
        let removed = each(keys).filter(|key| !next.source.live(*key)).count() as u64;
        let report = &memory.report;
        let yes = next.ghost.yes;
        let allowed = match task {
            Task::Purge { .. } => {
                memory.name == "purging"
                    && report.deleted + removed <= report.orphans + guard.orphans_free
                    && (yes || guard.judge(report).is_ok())
            }
            Task::Audit { .. } => yes || report.ghosts + removed <= guard.orphans_free,
            Task::Look | Task::Compare { .. } | Task::Await { .. } => true,
        };
        // Who was overtaken works under what was said to an earlier run.
        if current && !allowed {
            next.ghost.broke = Some(TOO_MANY);
        }
        next
    };
    let next = numbered(*world);
    let lost = world.spend().map(numbered);
    let newest = next.source.newest;
    let mut concluding = seen(Some(newest));
    for key in each(keys).filter(|_| !purges) {
        concluding.evidence.known[usize::from(key)] = row_version(&next, key);
    }
    let worker = told(turn, concluding, to);
    to.step(Action::Number(w, keys), next, worker);
    if let Some(next) = lost {
        to.bad(Action::NumberUnanswered(w, keys), next, Worker::Ready(turn));
    }
}
