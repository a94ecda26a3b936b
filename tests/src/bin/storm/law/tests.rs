//! The law itself: what it sees, and what it lets pass.

use super::*;

fn complete(moment: u64) -> Claim {
    Claim { state: "complete".into(), code: None, moment: Some(moment) }
}

fn stale(moment: u64) -> Claim {
    Claim { state: "stale".into(), ..complete(moment) }
}

/// Two live records and one that is gone, all touched up to 30.
fn truth() -> Truth {
    let touched = |token, row: Option<&str>| Touched { token, row: row.map(str::to_owned) };
    let keys =
        [("a", touched(10, Some("A"))), ("b", touched(20, Some("B"))), ("c", touched(30, None))];
    Truth { newest: 30, keys: keys.map(|(key, touched)| (key.to_owned(), touched)).into() }
}

fn entry(version: u64, row: Option<&str>) -> Entry {
    Entry { rank: (1, version), row: row.map(str::to_owned) }
}

fn held(entries: &[(&str, u64, Option<&str>)]) -> Held {
    let entries = entries.iter().map(|&(key, version, row)| (key.to_owned(), entry(version, row)));
    entries.collect()
}

fn lies(claim: &Claim, held: &Held) -> Vec<String> {
    let mut law = Law::default();
    law.judge(claim, held, &truth(), Instant::now());
    law.lies
}

#[test]
fn a_true_certificate_is_no_lie() {
    let all = held(&[("a", 10, Some("A")), ("b", 20, Some("B")), ("c", 30, None)]);
    assert_eq!(lies(&complete(30), &all), [""; 0]);
    assert_eq!(truth().differences(&all), [""; 0]);
    // What came after the moment may be there or not.
    let some = held(&[("a", 10, Some("A")), ("c", 25, Some("C"))]);
    assert_eq!(lies(&complete(19), &some), [""; 0]);
    assert_eq!(truth().differences(&some).len(), 2);
}

#[test]
fn a_certificate_that_says_nothing_cannot_lie() {
    assert_eq!(lies(&stale(30), &Held::new()), [""; 0]);
    assert_eq!(lies(&Claim::default(), &Held::new()), [""; 0]);
}

#[test]
fn a_missing_an_old_and_an_undead_record_are_lies() {
    for wrong in [
        held(&[("a", 10, Some("A"))]),
        held(&[("a", 10, Some("A")), ("b", 20, Some("old"))]),
        held(&[("a", 10, Some("A")), ("b", 20, Some("B")), ("c", 25, Some("C"))]),
    ] {
        assert_eq!(lies(&complete(30), &wrong).len(), 1, "{wrong:?}");
    }
}

#[test]
fn a_record_that_never_was_is_a_lie() {
    let all = held(&[("a", 10, Some("A")), ("b", 20, Some("B")), ("z", 1, Some("Z"))]);
    assert_eq!(lies(&complete(30), &all).len(), 1);
}

#[test]
fn a_moment_that_the_source_has_not_reached_is_a_lie() {
    let all = held(&[("a", 10, Some("A")), ("b", 20, Some("B"))]);
    assert_eq!(lies(&complete(31), &all).len(), 1);
}

#[test]
fn a_key_that_goes_back_is_a_lie_whatever_the_certificate_says() {
    let mut law = Law::default();
    law.judge(&stale(0), &held(&[("a", 10, None), ("b", 20, None)]), &truth(), Instant::now());
    law.judge(&stale(0), &held(&[("a", 9, None)]), &truth(), Instant::now());
    assert_eq!(law.lies.len(), 2, "one is older, one forgotten: {:?}", law.lies);
    law.sink_restored();
    law.judge(&stale(0), &held(&[("a", 1, None)]), &truth(), Instant::now());
    assert_eq!(law.lies.len(), 2);
}

#[test]
fn after_a_restore_a_certificate_is_excused_until_it_was_taken_back_or_could_have_been() {
    let now = Instant::now();
    let mut law = Law::default();
    law.restored(now);
    law.judge(&complete(30), &Held::new(), &truth(), now);
    assert_eq!(law.lies.len(), 0, "nobody has looked yet");
    law.judge(&complete(30), &Held::new(), &truth(), now + RECOGNISED_WITHIN);
    assert_eq!(law.lies.len(), 2, "by now somebody has");

    let mut law = Law::default();
    law.restored(now);
    law.judge(&stale(30), &Held::new(), &truth(), now);
    law.judge(&complete(30), &Held::new(), &truth(), now);
    assert_eq!(law.lies.len(), 2, "it was taken back, and given again");
}

#[test]
fn of_many_lies_a_few_are_told() {
    let many = (0..100).map(|n| (n.to_string(), Touched { token: 1, row: Some("A".into()) }));
    let truth = Truth { newest: 1, keys: many.collect() };
    let mut law = Law::default();
    law.judge(&complete(1), &Held::new(), &truth, Instant::now());
    assert_eq!(law.lies.len(), TOLD_MAX + 1, "{:?}", law.lies);
    assert_eq!(law.lies.last().map(String::as_str), Some("and 95 more"));
}
