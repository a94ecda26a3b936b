//! Reconcile beside follow: under the real machines, guard, lease and certificate.
//!
//! A table of two keys, a feed that does not see every change, a sink that somebody spoils or
//! restores, an operator, and two workers that die: whatever the order, the invariants Q1 to Q3 and
//! C1 to C3 hold, what was found and not repaired is never vouched for, and what ended well is
//! equal. A page of the sink has one entry, so that two keys make two ranges. What follow does
//! between two of its commits is one step: the explorer of follow takes that apart.

mod ghost;
mod invariants;
mod look;
mod machine;
mod source;
mod story;
mod turn;
mod worker;
mod world;

use machine::Machine;
use story::Action;
use truekeep_core::reconcile::BlastGuard;
use world::{Budget, World};

use crate::follow::machine::Machine as Follow;
use crate::follow::sink::{Batch, Sink};
use crate::search::{self, Explored};

/// Versions from here on are no version of the source.
const FOREIGN: u8 = 200;

/// Guards that are taken out, to show that the search notices.
#[derive(Debug, Clone, Copy)]
pub struct Breaks {
    no_second_look: bool,
    the_feed_is_not_asked: bool,
    the_feed_is_asked_too_early: bool,
    an_orphan_is_not_judged_again: bool,
    the_guard_lets_everything_pass: bool,
    the_purge_has_no_bound: bool,
    the_audit_is_skipped: bool,
    the_audit_buries_all: bool,
    stores_before_it_tells: bool,
    nothing_begins_again: bool,
    what_is_found_goes_on: bool,
    a_yes_is_kept: bool,
    the_runs_guard_ignores_the_lease: bool,
    the_runs_guard_ignores_its_version: bool,
}

const NONE: Breaks = Breaks {
    no_second_look: false,
    the_feed_is_not_asked: false,
    the_feed_is_asked_too_early: false,
    an_orphan_is_not_judged_again: false,
    the_guard_lets_everything_pass: false,
    the_purge_has_no_bound: false,
    the_audit_is_skipped: false,
    the_audit_buries_all: false,
    stores_before_it_tells: false,
    nothing_begins_again: false,
    what_is_found_goes_on: false,
    a_yes_is_kept: false,
    the_runs_guard_ignores_the_lease: false,
    the_runs_guard_ignores_its_version: false,
};

/// The same in every world of a search.
#[derive(Debug)]
pub struct Laws {
    follow: Follow,
    machine: Machine,
    breaks: Breaks,
    /// What the sink is restored to.
    backup: Sink,
    /// A key whose deliveries the sink takes and does not keep.
    swallows: Option<u8>,
}

/// Where a search begins: the keys that were written, or deleted where they stand for the second
/// time, and how many of these changes a backup of the sink has.
#[derive(Debug, Clone, Copy)]
struct Past {
    changes: &'static [u8],
    backed_up: usize,
    swallows: Option<u8>,
    /// How many orphans may be deleted whatever their share is.
    free: u64,
}

/// Both keys are written and certified.
const TWO: Past = Past { changes: &[0, 1], backed_up: 1, swallows: None, free: 1 };
/// One is, the other was deleted again.
const ONE: Past = Past { changes: &[0, 1, 1], backed_up: 2, swallows: None, free: 1 };
/// As the first, with a sink that does not keep what it is given for one of them.
const SWALLOWING: Past = Past { swallows: Some(1), ..TWO };
/// As the second, where no orphan is free.
const STRICT: Past = Past { free: 0, ..ONE };

fn explore(past: Past, budget: Budget, breaks: Breaks) -> Explored<World> {
    let mut machine = Machine::default();
    machine.guard = BlastGuard { orphans_free: past.free, share_max: 0.5, orphans_max: 9 };
    machine.no_guard = breaks.the_guard_lets_everything_pass;
    machine.no_second_look = breaks.no_second_look;
    let follow = Follow::acknowledging_once();
    let mut laws = Laws { follow, machine, breaks, backup: Sink::EMPTY, swallows: None };
    let mut world = World::new(Budget::default());
    for (number, key) in past.changes.iter().enumerate() {
        if number == past.backed_up {
            laws.backup = world.sink;
        }
        world.source.change(*key, world.source.row(*key).is_none());
        world = search::settled(world, &mut laws);
    }
    laws.swallows = past.swallows;
    search::explore(World { left: budget, ..world }, laws)
}

/// Explores all of these without a broken promise, and says how many worlds that were.
fn holds(searches: &[(Past, Budget)], kinds: &[Action]) -> usize {
    let mut worlds = 0;
    let mut unseen: Vec<Action> = kinds.to_vec();
    for (past, budget) in searches {
        let explored = explore(*past, *budget, NONE);
        if let Some((broken, story)) = &explored.broken {
            panic!("{broken}, after {past:?} with {budget:?}:\n{story}");
        }
        assert!(explored.at_rest > 0, "somewhere there is nothing left to do");
        unseen.retain(|kind| !explored.saw(*kind));
        worlds += explored.worlds;
    }
    assert_eq!(unseen, [], "the search must see these happen");
    worlds
}

/// A run that an operator wishes for, and nothing else.
const RUN: Budget = Budget {
    changes: 0,
    unseen: 0,
    spoils: 0,
    restores: 0,
    faults: 0,
    wishes: 1,
    yeses: 0,
    moves: 0,
    repairs: 1,
};

/// Rules 51 to 54 and Q3: writers beside a run, whatever is late, is no difference.
#[test]
fn writes_beside_a_run_are_neither_drift_nor_lost() {
    let searches = [
        (TWO, Budget { changes: 3, faults: 1, ..RUN }),
        (ONE, Budget { changes: 1, faults: 2, ..RUN }),
    ];
    println!("{} worlds", holds(&searches, &[Action::Delay(0, Batch::NONE)]));
}

/// Rules 36, 116 and 117, Q1 and Q2: what is spoiled is found, and no more is removed than may be.
#[test]
fn what_is_spoiled_is_repaired_and_no_more_is_removed() {
    let searches = [
        (TWO, Budget { changes: 1, spoils: 2, ..RUN }),
        (ONE, Budget { spoils: 3, yeses: 1, ..RUN }),
        (STRICT, Budget { changes: 1, spoils: 2, ..RUN }),
        (ONE, Budget { changes: 1, spoils: 1, faults: 1, ..RUN }),
    ];
    println!("{} worlds", holds(&searches, &[Action::Plant(0, 0)]));
}

/// X7 and X11: what capture did not see is found by the audit.
#[test]
fn what_capture_did_not_see_is_found() {
    let searches = [
        (TWO, Budget { unseen: 2, changes: 1, ..RUN }),
        (ONE, Budget { unseen: 2, faults: 1, yeses: 1, ..RUN }),
        (ONE, Budget { unseen: 1, spoils: 1, changes: 1, ..RUN }),
    ];
    println!("{} worlds", holds(&searches, &[Action::Unseen(0)]));
}

/// Rules 28 and 84: an operator moves the run, a commit comes late: every range counts once.
#[test]
fn a_run_that_is_moved_or_late_counts_each_range_once() {
    let searches = [
        (TWO, Budget { spoils: 1, faults: 1, moves: 1, ..RUN }),
        (ONE, Budget { changes: 1, faults: 2, moves: 1, ..RUN }),
    ];
    let kinds = [Action::Move, Action::LateCommit { lands: true }, Action::FoundLanded(0)];
    println!("{} worlds", holds(&searches, &kinds));
}

/// Rules 122 to 124: a sink that went back is doubted, and the run begins again.
#[test]
fn a_run_beside_a_restored_sink_begins_again() {
    let searches = [
        (TWO, Budget { changes: 2, restores: 1, ..RUN }),
        (TWO, Budget { restores: 1, faults: 1, moves: 1, ..RUN }),
        (ONE, Budget { changes: 1, restores: 1, spoils: 1, yeses: 1, ..RUN }),
    ];
    println!("{} worlds", holds(&searches, &[Action::Restore, Action::Repair(0)]));
}

/// A sink that takes a record and does not keep it: the second look parks it.
#[test]
fn what_does_not_converge_is_parked() {
    let searches = [(SWALLOWING, Budget { changes: 2, spoils: 1, ..RUN })];
    println!("{} worlds", holds(&searches, &[Action::Reach(0)]));
}

/// Each guard that is taken out, within how much bad luck that shows, and what it breaks.
const TAKEN_OUT: &[(Breaks, Past, Budget, &str)] = &[
    (
        Breaks { no_second_look: true, ..NONE },
        SWALLOWING,
        Budget { spoils: 1, ..RUN },
        "a difference that was found",
    ),
    (Breaks { the_feed_is_not_asked: true, ..NONE }, TWO, Budget { changes: 1, ..RUN }, "Q3"),
    (Breaks { the_feed_is_asked_too_early: true, ..NONE }, TWO, Budget { changes: 1, ..RUN }, "Q3"),
    (
        Breaks { an_orphan_is_not_judged_again: true, ..NONE },
        ONE,
        Budget { spoils: 1, changes: 1, ..RUN },
        "Q2",
    ),
    (
        Breaks { the_guard_lets_everything_pass: true, ..NONE },
        ONE,
        Budget { changes: 1, spoils: 2, ..RUN },
        "Q1",
    ),
    (
        Breaks { the_purge_has_no_bound: true, ..NONE },
        STRICT,
        Budget { unseen: 1, spoils: 1, ..RUN },
        "Q1",
    ),
    (Breaks { the_audit_is_skipped: true, ..NONE }, ONE, Budget { unseen: 1, ..RUN }, "Q2"),
    (Breaks { the_audit_buries_all: true, ..NONE }, TWO, Budget { unseen: 2, ..RUN }, "Q1"),
    (
        Breaks { stores_before_it_tells: true, ..NONE },
        TWO,
        Budget { spoils: 1, ..RUN },
        "a difference that was found",
    ),
    (
        Breaks { nothing_begins_again: true, ..NONE },
        TWO,
        Budget { restores: 1, ..RUN },
        "a difference that was found",
    ),
    (
        Breaks { what_is_found_goes_on: true, ..NONE },
        TWO,
        Budget { restores: 1, moves: 1, ..RUN },
        "a difference that was found",
    ),
    (
        Breaks { a_yes_is_kept: true, ..NONE },
        TWO,
        Budget { restores: 1, unseen: 2, wishes: 0, yeses: 1, ..RUN },
        "Q1",
    ),
    (
        Breaks { the_runs_guard_ignores_the_lease: true, ..NONE },
        TWO,
        Budget { faults: 1, ..RUN },
        "G1",
    ),
    (
        Breaks { the_runs_guard_ignores_its_version: true, ..NONE },
        TWO,
        Budget { moves: 1, ..RUN },
        "G1",
    ),
];

#[test]
fn a_guard_that_is_taken_out_is_noticed() {
    for (breaks, past, budget, promise) in TAKEN_OUT {
        let Some((broken, _)) = explore(*past, *budget, *breaks).broken else {
            panic!("not noticed: {breaks:?}");
        };
        assert!(broken.starts_with(promise), "{breaks:?} broke something else: {broken}");
    }
}
