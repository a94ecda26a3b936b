//! Follow: under the real machine, guard, lease and certificate.
//!
//! Two workers, a writer, an operator and bad luck take turns in every possible order: the search
//! visits every world that a budget of changes and faults can reach, and holds each against the
//! invariants G1, L2, C1 to C3, F1 to F3. What is modelled is what the ports promise; what decides
//! is the code that the worker runs. A page has one row, so that two keys make a backlog.

mod invariants;
pub mod ledger;
pub mod machine;
pub mod sink;
pub mod source;
mod story;
mod turn;
pub mod worker;
mod world;

use machine::Machine;
use sink::{Batch, Sink};
use story::Action;
use truekeep_core::guard::Lost;
use world::{Budget, World};

use crate::search::{self, Explored};

/// Guards that are taken out, to show that the search notices.
#[derive(Debug, Clone, Copy)]
pub struct Breaks {
    pub guard_ignores_the_token: bool,
    pub guard_ignores_the_run_version: bool,
    pub guard_ignores_the_rules: bool,
    pub sink_has_no_order: bool,
    pub sink_forgets_deletes: bool,
    pub moment_before_the_end: bool,
    pub commit_before_apply: bool,
    pub items_do_not_hold_the_moment: bool,
    pub prunes_too_early: bool,
    pub read_ahead_outlives_an_acknowledgement: bool,
    pub batches_name_no_batch_before: bool,
    pub an_idle_page_asks_no_sink: bool,
    pub batches_are_nobodys: bool,
}

const fn budget(changes: u8, faults: u8, deaths: u8, announcements: u8) -> Budget {
    Budget { changes, faults, deaths, announcements, restores: 0 }
}

const fn restored(changes: u8, faults: u8) -> Budget {
    Budget { restores: 1, ..budget(changes, faults, 0, 0) }
}

/// The same in every world of a search.
#[derive(Debug)]
pub struct Laws {
    machine: Machine,
    breaks: Breaks,
    /// What the sink is restored to.
    backup: Sink,
}

/// Explores everything within a budget, from a world at rest in which these keys were written, or
/// deleted where they stand for the second time.
fn explore(before: &[u8], budget: Budget, breaks: Breaks) -> Explored<World> {
    let mut laws = Laws { machine: Machine::new(), breaks, backup: Sink::EMPTY };
    let mut world = World::new(budget);
    for key in before {
        let live = world.source.document(*key).is_none();
        world.source.change(*key, live);
        world = search::settled(world, &mut laws);
    }
    laws.backup = world.sink;
    search::explore(world, laws)
}

/// Explores all of these without a broken promise, and says how many worlds that were.
fn holds(searches: &[(&[u8], Budget)], kinds: &[Action]) -> usize {
    let mut worlds = 0;
    let mut unseen: Vec<Action> = kinds.to_vec();
    for (before, budget) in searches {
        let explored = explore(before, *budget, NONE);
        if let Some((broken, story)) = &explored.broken {
            panic!("{broken}, after {before:?} with {budget:?}:\n{story}");
        }
        assert!(explored.at_rest > 0, "somewhere there is nothing left to do");
        unseen.retain(|kind| !explored.saw(*kind));
        worlds += explored.worlds;
    }
    assert_eq!(unseen, [], "the search must see these happen");
    worlds
}

/// Nothing has happened yet.
const NEW: &[u8] = &[];
/// One key is written and certified.
const ONE: &[u8] = &[0];
/// One key is written, another was written and deleted, all is certified.
const ONE_AND_A_TOMBSTONE: &[u8] = &[0, 1, 1];

/// Rules 4, 6, 26, 28, 36, 42, 55, 63, 67 and X1, X5, X6, X10.
#[test]
fn no_two_faults_break_a_promise() {
    let searches = [
        (NEW, budget(2, 2, 0, 0)),
        (NEW, budget(3, 1, 0, 0)),
        (ONE_AND_A_TOMBSTONE, budget(1, 2, 0, 0)),
    ];
    let batch = Batch::NONE;
    let kinds = [
        Action::Prune,
        Action::Retry(0),
        Action::Notice(0),
        Action::RegisterUnanswered(0),
        Action::Arm(0),
        Action::ClaimUnanswered(0, 0),
        Action::ClaimLost(0),
        Action::ReadAhead(0),
        Action::LateBatch(batch),
        Action::FoundLanded(0),
        Action::CommitLost(0, Lost::Lease),
        Action::LateCommit { lands: true },
    ];
    println!("{} worlds", holds(&searches, &kinds));
}

/// Rules 40, 57 and X50: whatever is on the way when rules change.
#[test]
fn new_rules_break_no_promise() {
    let searches = [
        (NEW, budget(1, 2, 0, 1)),
        (ONE, budget(2, 1, 0, 1)),
        (ONE_AND_A_TOMBSTONE, budget(0, 2, 0, 1)),
    ];
    println!("{} worlds", holds(&searches, &[Action::Announce, Action::Prune]));
}

/// Rule 95 and X27: who dies in hand of a page again and again has it parked, and no more.
#[test]
fn deaths_in_a_row_break_no_promise() {
    let searches = [(NEW, budget(2, 0, 3, 0)), (NEW, budget(1, 0, 4, 0))];
    println!("{} worlds", holds(&searches, &[Action::Isolate(0), Action::Retry(0)]));
}

/// Rule 124: a sink that was restored is noticed before anything is claimed of it again.
#[test]
fn a_restored_sink_is_noticed() {
    let searches =
        [(NEW, restored(2, 1)), (ONE, restored(2, 1)), (ONE_AND_A_TOMBSTONE, restored(1, 1))];
    println!("{} worlds", holds(&searches, &[Action::Restore]));
}

/// Each guard that is taken out, within how much bad luck that shows, and what it breaks.
const TAKEN_OUT: &[(Breaks, Budget, &str)] = &[
    (Breaks { guard_ignores_the_token: true, ..NONE }, budget(0, 1, 0, 0), "rules 4 and 5"),
    (Breaks { guard_ignores_the_run_version: true, ..NONE }, budget(1, 1, 0, 0), "F1"),
    (Breaks { guard_ignores_the_rules: true, ..NONE }, budget(0, 0, 0, 1), "rule 57"),
    (Breaks { sink_has_no_order: true, ..NONE }, budget(2, 1, 0, 0), "the sink went back"),
    (Breaks { sink_forgets_deletes: true, ..NONE }, budget(2, 1, 0, 0), "C1"),
    (Breaks { moment_before_the_end: true, ..NONE }, budget(2, 0, 0, 0), "C1"),
    (Breaks { commit_before_apply: true, ..NONE }, budget(1, 0, 0, 0), "C1"),
    (Breaks { items_do_not_hold_the_moment: true, ..NONE }, budget(1, 1, 0, 0), "C1"),
    (Breaks { prunes_too_early: true, ..NONE }, budget(2, 1, 0, 0), "at rest"),
    (Breaks { read_ahead_outlives_an_acknowledgement: true, ..NONE }, budget(2, 0, 0, 0), "F2"),
    (Breaks { batches_name_no_batch_before: true, ..NONE }, restored(2, 0), "rule 124"),
    (Breaks { an_idle_page_asks_no_sink: true, ..NONE }, restored(1, 1), "rule 124"),
    (Breaks { batches_are_nobodys: true, ..NONE }, restored(2, 1), "rule 124"),
];

pub const NONE: Breaks = Breaks {
    guard_ignores_the_token: false,
    guard_ignores_the_run_version: false,
    guard_ignores_the_rules: false,
    sink_has_no_order: false,
    sink_forgets_deletes: false,
    moment_before_the_end: false,
    commit_before_apply: false,
    items_do_not_hold_the_moment: false,
    prunes_too_early: false,
    read_ahead_outlives_an_acknowledgement: false,
    batches_name_no_batch_before: false,
    an_idle_page_asks_no_sink: false,
    batches_are_nobodys: false,
};

#[test]
fn a_guard_that_is_taken_out_is_noticed() {
    for (breaks, budget, promise) in TAKEN_OUT {
        let Some((broken, _)) = explore(NEW, *budget, *breaks).broken else {
            panic!("not noticed: {breaks:?}");
        };
        assert!(broken.starts_with(promise), "{breaks:?} broke something else: {broken}");
    }
}

#[test]
fn a_broken_promise_is_told_as_its_shortest_story() {
    let breaks = Breaks { commit_before_apply: true, ..NONE };
    let (broken, story) = explore(NEW, budget(1, 0, 0, 0), breaks).broken.expect("noticed");
    assert_eq!(broken, "C1: the certificate lies");
    let told: Vec<&str> = story.lines().skip(7).take(4).collect();
    assert_eq!(
        told,
        [
            "  8. the application writes a",
            "  9. worker one reads a at version 1",
            " 10. worker one loads and sends a at version 1 (row of version 1)",
            " 11. worker one commits",
        ]
    );
}
