//! What the board keeps of what happens.

use std::time::Duration;

use truekeep_core::{HolderId, Moment, Place, Timestamp, Version};

use super::*;

fn halted(code: Code) -> Happening {
    Happening::Halted { code, text: "it said so".into() }
}

fn trouble(code: Code) -> Happening {
    Happening::Trouble { code, text: String::new(), again_in: Duration::from_secs(8) }
}

fn delivered(records: u64, failed: u64, cursor: u64, newest: u64) -> Happening {
    let (cursor, newest) = (Place::at(Version::new(cursor)), Moment::at(Version::new(newest)));
    Happening::Delivered { records, failed, cursor, newest }
}

fn after(all: &[Happening]) -> Facts {
    let mut facts = Facts::default();
    for what in all {
        facts.hear(what, Duration::from_secs(1));
    }
    facts
}

#[test]
fn deliveries_and_failures_are_counted() {
    let facts = after(&[
        delivered(10, 1, 10, 25),
        trouble(Code::SOURCE_LOCKED),
        trouble(Code::SOURCE_LOCKED),
        halted(Code::SINK_OWNED),
        delivered(5, 0, 15, 25),
    ]);
    assert_eq!((facts.delivered, facts.failed, facts.behind), (15, 1, Some(10)));
    assert_eq!(facts.troubles[&Code::SOURCE_LOCKED], 2);
    assert_eq!(facts.troubles[&Code::SINK_OWNED], 1);
    assert_eq!(facts.condition, Condition::Working, "a delivery ends what was wrong");
}

#[test]
fn what_went_wrong_stays_told_until_something_goes_well() {
    let facts = after(&[
        Happening::Acquired(Fence::new(4)),
        trouble(Code::SINK_FENCED),
        Happening::Released,
    ]);
    assert_eq!(facts.ailment().map(|ailment| &ailment.code), Some(&Code::SINK_FENCED));
    assert_eq!(facts.fence, None, "a lease that was given back is not ours");
    let facts = after(&[trouble(Code::SINK_FENCED), Happening::Idle]);
    assert_eq!(facts.ailment(), None);
}

/// A lease that is taken again and again says nothing of what went wrong under it.
#[test]
fn what_goes_wrong_under_each_lease_is_one_trouble() {
    let each =
        [Happening::Acquired(Fence::new(4)), trouble(Code::SINK_FENCED), Happening::Released];
    let mut facts = after(&each);
    let told = facts.condition.clone();
    for what in each.iter().cycle().take(9) {
        facts.hear(what, Duration::from_secs(1));
        assert_eq!(facts.condition, told, "{what:?}");
    }
}

#[test]
fn how_far_a_halted_scope_is_behind_is_not_known() {
    let facts = after(&[delivered(10, 1, 10, 25), halted(Code::SINK_OWNED)]);
    assert_eq!(facts.behind, None);
}

#[test]
fn what_another_worker_does_is_not_known() {
    let holder = HolderId::parse("other").expect("valid");
    let facts = after(&[
        Happening::Acquired(Fence::new(4)),
        Happening::Idle,
        Happening::Lost,
        Happening::HeldBy(holder, Timestamp::from_ms(0)),
    ]);
    assert_eq!(facts.condition, Condition::Waiting);
    assert_eq!((facts.fence, facts.behind), (None, None));
}

#[test]
fn waiting_for_the_next_try_is_no_silence() {
    let facts = after(&[trouble(Code::SOURCE_LOCKED)]);
    assert_eq!(facts.silence(Duration::from_secs(9)), Duration::ZERO);
    assert_eq!(facts.silence(Duration::from_secs(12)), Duration::from_secs(3));
}

#[test]
fn a_paused_scope_is_nothing_to_complain_of() {
    let facts = after(&[
        Happening::Acquired(Fence::new(4)),
        trouble(Code::SOURCE_LOCKED),
        Happening::Inactive(Code::PIPELINE_PAUSED),
    ]);
    assert_eq!((&facts.condition, facts.ailment()), (&Condition::Paused, None));
    assert_eq!((facts.fence, facts.behind), (None, None));
    let removed = after(&[Happening::Inactive(Code::PIPELINE_REMOVED)]);
    assert_eq!(removed.ailment().map(|ailment| &ailment.code), Some(&Code::PIPELINE_REMOVED));
}
