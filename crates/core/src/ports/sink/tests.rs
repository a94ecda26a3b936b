//! Who may write a sink, and what its mark is afterwards.

use super::*;

fn mark(rules: u64, fence: u64, number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(rules),
        fence: Fence::new(fence),
        number: MarkNumber::new(number),
        removed: false,
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
            Mark::after(Some(&held), &sent, sent.batch().min(held.batch())),
            Ok(left),
            "{sent:?}"
        );
    }
    assert_eq!(
        Mark::after(None, &mark(9, 9, 1), BatchName::default()),
        Ok(mark(9, 9, 1)),
        "nobody has written it"
    );
}

#[test]
fn batch_of_a_former_holder_is_denied() {
    let held = mark(2, 5, 7);
    for sent in [mark(2, 4, 8), mark(3, 4, 7), mark(2, 1, 99)] {
        assert_eq!(
            Mark::after(Some(&held), &sent, sent.batch().min(held.batch())),
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
                Mark::after(Some(&held), &stranger, BatchName::default()),
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
    let batch = |fence, number| mark(2, fence, number).batch();
    for sent in [mark(2, 5, 9), mark(2, 6, 9), mark(3, 5, 9), mark(2, 5, u64::MAX)] {
        assert!(Mark::after(Some(&held), &sent, batch(5, 7)).is_ok(), "{sent:?}");
        let denied = Mark::after(Some(&held), &sent, batch(5, 8));
        assert_eq!(denied, Err(Denied::WentBack(held.batch())), "{sent:?}");
    }
    let nothing = Denied::WentBack(BatchName::default());
    assert_eq!(Mark::after(None, &mark(2, 5, 2), batch(5, 1)), Err(nothing), "it was emptied");
}

/// X5: two holders that knew of the same batch give the next one the same number. A late one of the
/// former does not stand for the one of the latter that was lost.
#[test]
fn a_batch_of_a_former_holder_does_not_stand_for_a_lost_one() {
    let (late, lost, next) = (mark(2, 5, 8), mark(2, 6, 8), mark(2, 6, 9));
    let denied = Mark::after(Some(&late), &next, lost.batch());
    assert_eq!(denied, Err(Denied::WentBack(late.batch())));
    assert!(Mark::after(Some(&lost), &next, late.batch()).is_ok(), "what was known is there");
}

fn of_another(mark: Mark) -> Mark {
    Mark { pipeline: Incarnation::parse("another").expect("a token"), ..mark }
}

/// X58: its former writers are kept out whatever their fence is; whoever removes it goes on.
#[test]
fn a_headstone_admits_nobody_of_the_pipeline_that_was_removed_but_who_removes_it() {
    let first = BatchName::default();
    let alive = mark(2, 5, 7);
    let headstone = Mark { removed: true, ..mark(2, 5, 8) };
    assert_eq!(Mark::after(Some(&alive), &headstone, alive.batch()), Ok(headstone.clone()));
    for late in [mark(2, 5, 8), mark(2, 9, 99), mark(9, 9, 99)] {
        assert_eq!(Mark::after(Some(&headstone), &late, first), Err(Denied::Removed), "{late:?}");
    }
    let purge = Mark { number: MarkNumber::new(9), ..headstone.clone() };
    assert_eq!(Mark::after(Some(&headstone), &purge, headstone.batch()), Ok(purge));
    for stranger in [of_another(headstone.clone()), of_another(alive.clone())] {
        let removed = Mark { removed: true, ..stranger };
        let owned = Denied::Owned(alive.ledger.clone(), alive.pipeline.clone());
        assert_eq!(Mark::after(Some(&alive), &removed, first), Err(owned.clone()));
        assert_eq!(Mark::after(Some(&headstone), &removed, first), Err(owned));
    }
}

/// X58: another pipeline begins above its rules, at whatever fence, and then the sink is its own.
#[test]
fn a_headstone_gives_way_to_greater_rules_only() {
    let headstone = Mark { removed: true, ..mark(2, 5, 8) };
    for rules in [1, 2] {
        let sent = of_another(mark(rules, 9, 9));
        let denied = Mark::after(Some(&headstone), &sent, headstone.batch());
        assert_eq!(denied, Err(Denied::Inherited(headstone.rules)));
    }
    let next = of_another(mark(3, 1, 9));
    let known = headstone.batch_before(&next.ledger, &next.pipeline);
    assert_eq!(Mark::after(Some(&headstone), &next, known), Ok(next.clone()));
    let owned = Denied::Owned(next.ledger.clone(), next.pipeline.clone());
    assert_eq!(Mark::after(Some(&next), &mark(9, 9, 99), headstone.batch()), Err(owned));
}

#[test]
fn what_is_denied_has_the_class_that_opens_the_sink_again_or_gives_way() {
    let held = mark(2, 5, 7);
    let denied = |denied: Denied| {
        let error = PortError::from(denied);
        (error.class, error.code)
    };
    assert_eq!(
        denied(Denied::Owned(held.ledger.clone(), held.pipeline.clone())),
        (FailureClass::Halted, Code::SINK_OWNED)
    );
    assert_eq!(denied(Denied::Fenced(held.fence)), (FailureClass::Fenced, Code::SINK_FENCED));
    assert_eq!(
        denied(Denied::WentBack(held.batch())),
        (FailureClass::Halted, Code::SINK_WENT_BACK)
    );
    assert_eq!(denied(Denied::Removed), (FailureClass::Fenced, Code::PIPELINE_REMOVED));
    let inherited = denied(Denied::Inherited(held.rules));
    assert_eq!(inherited, (FailureClass::Halted, Code::SINK_INHERITED));
}
