//! The table of judgements.

use super::*;
use crate::Version;

fn moment(newest: u64) -> Moment {
    Moment::at(Version::new(newest))
}

fn certificate(state: State, at: Option<u64>) -> Certificate {
    Certificate {
        state,
        moment: at.map(moment),
        ..Certificate::never(RulesNumber::new(1), Timestamp::from_ms(1))
    }
}

fn judged(
    before: &Certificate,
    claim: &Claim,
    unsettled: u64,
    parked: u64,
    rules: u64,
) -> Certificate {
    let tally = Tally { unsettled, parked };
    judge(before, claim, tally, RulesNumber::new(rules), Timestamp::from_ms(2))
}

#[test]
fn a_claim_with_nothing_open_is_complete() {
    let now = judged(&certificate(State::Running, None), &Claim::UpTo(moment(7)), 0, 0, 1);
    assert_eq!((now.state, now.moment), (State::Complete, Some(moment(7))));
}

/// Rule 42: a record in retry holds the moment back, a parked one makes it partial.
#[test]
fn a_moment_never_passes_an_unsettled_item() {
    let before = certificate(State::Complete, Some(5));
    let held = judged(&before, &Claim::UpTo(moment(9)), 1, 0, 1);
    assert_eq!((held.state, held.moment, held.unsettled), (State::Complete, Some(moment(5)), 1));
    let first = judged(&certificate(State::Running, None), &Claim::UpTo(moment(9)), 1, 0, 1);
    assert_eq!((first.state, first.moment), (State::Running, None));
    let parked = judged(&before, &Claim::UpTo(moment(9)), 0, 2, 1);
    assert_eq!((parked.state, parked.moment, parked.parked), (State::Partial, Some(moment(9)), 2));
}

#[test]
fn a_partial_certificate_stays_partial_while_its_records_are_tried_again() {
    let before = certificate(State::Partial, Some(5));
    let now = judged(&before, &Claim::UpTo(moment(9)), 1, 0, 1);
    assert_eq!((now.state, now.moment), (State::Partial, Some(moment(5))));
}

#[test]
fn a_moment_never_goes_down_under_the_same_rules() {
    let now = judged(&certificate(State::Complete, Some(9)), &Claim::UpTo(moment(4)), 0, 0, 1);
    assert_eq!(now.moment, Some(moment(9)));
}

#[test]
fn other_rules_make_it_stale_until_it_is_claimed_again() {
    let before = certificate(State::Complete, Some(9));
    let begun = judged(&before, &Claim::Begun, 0, 0, 2);
    assert_eq!((begun.state, begun.code.clone()), (State::Stale, Some(Code::RULES_CHANGED)));
    assert_eq!(begun.rules, RulesNumber::new(1), "it still speaks of the old rules");
    let held = judged(&begun, &Claim::UpTo(moment(3)), 1, 0, 2);
    assert_eq!(held.state, State::Stale);
    let again = judged(&begun, &Claim::UpTo(moment(3)), 0, 0, 2);
    assert_eq!((again.state, again.moment), (State::Complete, Some(moment(3))));
    assert_eq!(again.rules, RulesNumber::new(2));
}

#[test]
fn a_broken_capture_makes_stale_and_keeps_the_last_good_moment() {
    let now = judged(
        &certificate(State::Partial, Some(9)),
        &Claim::Broken(Code::CAPTURE_CHANGED),
        0,
        1,
        1,
    );
    assert_eq!((now.state, now.moment), (State::Stale, Some(moment(9))));
    assert_eq!(now.code, Some(Code::CAPTURE_CHANGED));
}

#[test]
fn trust_never_comes_from_nothing() {
    for claim in [Claim::Begun, Claim::Broken(Code::CAPTURE_FILLING)] {
        for state in [State::Never, State::Running] {
            assert_eq!(judged(&certificate(state, None), &claim, 0, 0, 1).state, State::Running);
        }
    }
}

#[test]
fn a_judgement_that_changes_nothing_keeps_its_time() {
    let before = certificate(State::Complete, Some(9));
    assert_eq!(judged(&before, &Claim::UpTo(moment(9)), 0, 0, 1), before);
}

/// Rule 89.
#[test]
fn scopes_aggregate_by_rank() {
    use State::*;
    let of = |states: &[State]| aggregate(states.iter().copied().map(Some));
    assert_eq!(aggregate([Some(Complete), None]), None);
    assert_eq!(of(&[Complete, Running, Stale]), Some(Running));
    assert_eq!(of(&[Complete, Stale, Partial]), Some(Stale));
    assert_eq!(of(&[Complete, Partial, Never]), Some(Partial));
    assert_eq!(of(&[Never, Never]), Some(Never));
    assert_eq!(of(&[Failed, Failed]), Some(Failed));
    assert_eq!(of(&[Complete, Never]), Some(Partial));
    assert_eq!(of(&[Complete, Failed]), Some(Partial));
    assert_eq!(of(&[Complete, Complete]), Some(Complete));
    assert_eq!(of(&[]), Some(Never));
}
