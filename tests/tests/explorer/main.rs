//! Every order of events of a small world, under the real follow machine, guard, lease and certificate.

mod invariants;
mod ledger;
mod machine;
mod search;
mod sink;
mod source;
mod story;
mod worker;
mod world;

use search::explore;
use world::Budget;

/// Guards that are taken out, to show that the search would notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Breaks {
    guard_ignores_the_token: bool,
    guard_ignores_the_run_version: bool,
    sink_has_no_order: bool,
    sink_forgets_deletes: bool,
    moment_before_the_end: bool,
    commit_before_apply: bool,
    items_do_not_hold_the_moment: bool,
    prunes_too_early: bool,
}

fn holds(name: &str, changes: u8, faults: u8, announcements: u8) {
    let t = std::time::Instant::now();
    let explored = explore(Budget { changes, faults, announcements }, Breaks::default());
    println!("{name}: {} worlds, {} at rest {:?}", explored.worlds, explored.at_rest, t.elapsed());
    if let Some((broken, story)) = explored.broken {
        panic!("{broken}\n{story}");
    }
    assert!(explored.at_rest > 0, "somewhere there is nothing left to do");
}

#[test]
fn t10() { holds("1,0", 1, 0, 0); }
#[test]
fn t20() { holds("2,0", 2, 0, 0); }
#[test]
fn t11() { holds("1,1", 1, 1, 0); }
#[test]
fn t21() { holds("2,1", 2, 1, 0); }
#[test]
fn t31() { holds("3,1", 3, 1, 0); }
#[test]
fn t12() { holds("1,2", 1, 2, 0); }
#[test]
fn t22() { holds("2,2", 2, 2, 0); }
