//! The past is told right: what every other check relies on.

use super::*;

fn observed(truth: &mut Truth, rows: &[(&str, &str)], feed: &[(&str, u64)]) -> Time {
    let rows = rows.iter().map(|(key, text)| (Key::new(*key), (*text).to_owned())).collect();
    let feed = feed
        .iter()
        .map(|(key, version)| (Key::new(*key), (Version::new(*version), false)))
        .collect();
    truth.observe(&rows, &feed, false);
    truth.now
}

#[test]
fn older_than_the_moment_is_not_as_new_and_newer_is() {
    let mut truth = Truth::default();
    let key = Key::new("a");
    let first = observed(&mut truth, &[("a", "1")], &[("a", 1)]);
    let second = observed(&mut truth, &[("a", "2")], &[("a", 2)]);
    assert!(!truth.is_as_new(&key, None, first), "it was there since");
    let third = observed(&mut truth, &[], &[("a", 3)]);
    assert!(truth.is_as_new(&key, Some("1"), first));
    assert!(!truth.is_as_new(&key, Some("1"), second));
    assert!(truth.is_as_new(&key, None, second), "newer");
    assert!(!truth.is_as_new(&key, Some("2"), third));
    assert!(truth.is_newest(third) && !truth.is_newest(second));
}

#[test]
fn what_the_feed_did_not_see_is_asked_of_no_moment() {
    let mut truth = Truth::default();
    observed(&mut truth, &[("a", "1")], &[("a", 1)]);
    let missed = observed(&mut truth, &[("a", "2")], &[("a", 1)]);
    assert!(truth.is_as_new(&Key::new("a"), Some("1"), missed));
    let noted = observed(&mut truth, &[("a", "2")], &[("a", 2)]);
    assert!(!truth.is_as_new(&Key::new("a"), Some("1"), noted));
}

#[test]
fn a_restored_row_is_its_own_newest_state() {
    let mut truth = Truth::default();
    observed(&mut truth, &[("a", "1")], &[("a", 1)]);
    observed(&mut truth, &[("a", "2")], &[("a", 2)]);
    let restored = observed(&mut truth, &[("a", "1")], &[("a", 1)]);
    assert!(truth.is_as_new(&Key::new("a"), Some("1"), restored));
    assert!(!truth.is_as_new(&Key::new("a"), Some("2"), restored));
}

#[test]
fn a_deletion_is_right_only_of_a_row_that_was_absent() {
    let mut truth = Truth::default();
    let key = Key::new("a");
    observed(&mut truth, &[("a", "1")], &[("a", 1)]);
    assert!(!truth.was_absent_since(&key, Version::new(1)));
    observed(&mut truth, &[], &[("a", 2)]);
    observed(&mut truth, &[("a", "3")], &[("a", 3)]);
    assert!(truth.was_absent_since(&key, Version::new(1)));
    assert!(truth.was_absent_since(&key, Version::new(2)));
    assert!(!truth.was_absent_since(&key, Version::new(3)));
}

#[test]
fn a_moment_is_the_last_of_its_name() {
    let (mut pasts, moment) = (Pasts::default(), Moment::at(Version::new(0)));
    pasts.name(moment.clone(), Time(1));
    pasts.name(Moment::at(Version::new(1)), Time(2));
    pasts.name(moment.clone(), Time(3));
    assert_eq!(pasts.when(&moment), Some(Time(3)));
    assert_eq!(pasts.when(&Moment::at(Version::new(2))), None);
}

#[test]
fn what_was_named_before_a_fork_is_told_from_what_is_named_after() {
    let (mut pasts, moment) = (Pasts::default(), Moment::at(Version::new(0)));
    pasts.name(moment.clone(), Time(1));
    pasts.fork(Time(2));
    pasts.name(moment.clone(), Time(2));
    assert_eq!((pasts.when(&moment), pasts.forked()), (Some(Time(1)), Some(Time(2))));
    pasts.claim(&moment);
    assert_eq!((pasts.when(&moment), pasts.forked()), (Some(Time(2)), None));
}

#[test]
fn a_ledger_that_went_back_claims_what_was_named_before_its_backup() {
    let (mut pasts, moment) = (Pasts::default(), Moment::at(Version::new(0)));
    pasts.name(moment.clone(), Time(1));
    let backup = pasts.backup(Time(2));
    pasts.fork(Time(3));
    pasts.name(moment.clone(), Time(4));
    pasts.claim(&moment);
    pasts.restore(&backup);
    assert_eq!((pasts.when(&moment), pasts.forked()), (Some(Time(1)), Some(Time(2))));
}
