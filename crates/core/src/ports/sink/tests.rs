//! Who may write a sink, and what its mark is afterwards.

use super::*;

fn mark(rules: u64, fence: u64, number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(rules),
        fence: Fence::new(fence),
        number: MarkNumber::new(number),
    }
}

#[test]
fn batch_that_is_admitted_leaves_a_mark_in_which_nothing_went_back() {
    let held = mark(2, 5, 7);
    for (sent, left) in [
        (mark(2, 5, 8), mark(2, 5, 8)),
        (mark(2, 5, 7), mark(2, 5, 7)),
        (mark(2, 5, 1), mark(2, 5, 7)),
        (mark(2, 6, 8), mark(2, 6, 8)),
        (mark(2, 6, 3), mark(2, 6, 7)),
        (mark(3, 5, 8), mark(3, 5, 8)),
        (mark(1, 5, 8), mark(2, 5, 8)),
    ] {
        assert_eq!(
            Mark::after(Some(&held), &sent, sent.number.min(held.number)),
            Ok(left),
            "{sent:?}"
        );
    }
    assert_eq!(
        Mark::after(None, &mark(9, 9, 1), MarkNumber::new(0)),
        Ok(mark(9, 9, 1)),
        "nobody has written it"
    );
}

#[test]
fn batch_of_a_former_holder_is_denied() {
    let held = mark(2, 5, 7);
    for sent in [mark(2, 4, 8), mark(3, 4, 7), mark(2, 1, 99)] {
        assert_eq!(
            Mark::after(Some(&held), &sent, sent.number.min(held.number)),
            Err(Denied::Fenced(held.fence)),
            "{sent:?}"
        );
    }
}

#[test]
fn batch_of_another_owner_is_denied_whatever_its_numbers_are() {
    let held = mark(2, 5, 7);
    let owned = Denied::Owned(held.ledger.clone(), held.pipeline.clone());
    for sent in [mark(2, 5, 8), mark(2, 4, 8), mark(9, 9, 99)] {
        let ledger = LedgerId::parse("another").expect("a token");
        let pipeline = Incarnation::parse("another").expect("a token");
        for stranger in [Mark { ledger, ..sent.clone() }, Mark { pipeline, ..sent.clone() }] {
            assert_eq!(
                Mark::after(Some(&held), &stranger, MarkNumber::new(0)),
                Err(owned.clone()),
                "{stranger:?}"
            );
        }
    }
}

/// X5: whatever the rules and the fence are, nobody knows what lies between.
#[test]
fn batch_after_one_that_is_not_held_is_denied() {
    let held = mark(2, 5, 7);
    let number = MarkNumber::new;
    for sent in [mark(2, 5, 9), mark(2, 6, 9), mark(3, 5, 9), mark(2, 5, u64::MAX)] {
        assert!(Mark::after(Some(&held), &sent, number(7)).is_ok(), "{sent:?}");
        let denied = Mark::after(Some(&held), &sent, number(8));
        assert_eq!(denied, Err(Denied::WentBack(held.number)), "{sent:?}");
    }
    let nothing = Denied::WentBack(number(0));
    assert_eq!(Mark::after(None, &mark(2, 5, 2), number(1)), Err(nothing), "it was emptied");
}

#[test]
fn what_is_denied_has_the_class_that_opens_the_sink_again_or_gives_way() {
    let held = mark(2, 5, 7);
    let denied = |denied: Denied| {
        let error = PortError::from(denied);
        (error.class, error.code)
    };
    assert_eq!(
        denied(Denied::Owned(held.ledger, held.pipeline)),
        (FailureClass::Halted, Code::SINK_OWNED)
    );
    assert_eq!(denied(Denied::Fenced(held.fence)), (FailureClass::Fenced, Code::SINK_FENCED));
    assert_eq!(denied(Denied::WentBack(held.number)), (FailureClass::Halted, Code::SINK_WENT_BACK));
}
