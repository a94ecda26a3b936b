//! Pages, items, acknowledgements and claims.

use super::*;
use crate::retry::RetryPolicy;

fn seen(phase: Phase, page: PageSeen) -> Step<Phase> {
    on(phase, Observation::Page(page))
}

/// X1 and S3: a place in a compacted feed is no moment.
#[test]
fn only_the_end_of_the_feed_claims_a_moment() {
    let step = seen(tailing(tail()), PageSeen { next: place(58), moment: None, ..page() });
    assert_eq!((&tail_of(&step).cursor, step.writes.len()), (&place(58), 0));
    let step = seen(step.next, PageSeen { next: place(60), ..page() });
    assert_eq!(tail_of(&step).cursor, place(60));
    assert_eq!(claims(&step), [&Claim::UpTo(moment(60))]);
}

/// An idle worker: nothing changed, so there is nothing to commit.
#[test]
fn an_idle_page_writes_nothing_and_leaves_the_phase() {
    let step = seen(tailing(tail()), page());
    assert_eq!(claims(&step), [&Claim::UpTo(moment(60))]);
    let again = seen(step.next.clone(), page());
    assert_eq!((&again.next, again.writes), (&step.next, Vec::new()));
    // Nor where the source's moments go on by themselves, as by a commit of ours.
    let view = SourceView { newest: moment(70), ..view() };
    let later = PageSeen { moment: Some(moment(70)), view, ..page() };
    let again = seen(again.next, later.clone());
    assert_eq!((&again.next, again.writes), (&step.next, Vec::new()));
    // What came without a moment is claimed with the next one.
    let more = PageSeen { next: place(65), moment: None, ..later.clone() };
    let more = seen(again.next, more);
    let claimed = seen(more.next, PageSeen { next: place(65), ..later });
    assert_eq!(claims(&claimed), [&Claim::UpTo(moment(70))]);
}

/// X7: while capture does not record everything, changes are delivered and no moment is claimed.
#[test]
fn without_trusted_capture_nothing_is_vouched_for() {
    let states = [
        (CaptureState::Filling, Code::CAPTURE_FILLING),
        (CaptureState::Broken(Code::CAPTURE_CHANGED), Code::CAPTURE_CHANGED),
    ];
    for (capture, code) in states {
        let untrusted = SourceView { capture, ..view() };
        for moment in [None, page().moment] {
            let seen_page = PageSeen { next: place(58), moment, view: untrusted.clone(), ..page() };
            let step = seen(tailing(tail()), seen_page.clone());
            assert_eq!(tail_of(&step).cursor, place(58));
            assert_eq!(claims(&step), [&Claim::Broken(code.clone())]);
            assert_eq!(seen(step.next.clone(), seen_page).writes, [], "it is said once");
            let mended = seen(step.next, PageSeen { next: place(60), ..page() });
            assert_eq!(claims(&mended), [&Claim::UpTo(crate::Moment::at(at(60)))]);
        }
    }
}

/// X3: the view of every page is judged; a page of a source that went back counts for nothing.
#[test]
fn a_page_of_a_source_that_went_back_halts_where_the_run_was() {
    let views = [
        (SourceView { newest: moment(49), ..view() }, Code::SOURCE_WENT_BACK),
        (SourceView { incarnation: incarnation("other"), ..view() }, Code::SOURCE_WENT_BACK),
        (SourceView { registration: None, ..view() }, Code::SOURCE_WENT_BACK),
        (SourceView { pruned: moment(51), ..view() }, Code::TOMBSTONES_PRUNED),
    ];
    for (view, code) in views {
        let step = seen(tailing(tail()), PageSeen { next: place(58), view, ..page() });
        assert_eq!((step.next.name(), tail_of(&step)), ("halted", &tail()));
        assert_eq!(claims(&step), [&Claim::Broken(code)]);
    }
}

/// X5: the sink knows more than the source does; somebody has to say which side is right.
#[test]
fn a_sink_that_is_ahead_halts() {
    let delivered =
        Delivered { mark: Some(batch(9)), ahead: Some(Key::new("k")), ..Delivered::default() };
    let of_page = PageSeen { next: place(58), delivered: delivered.clone(), ..page() };
    for observation in [Observation::Page(of_page), Observation::Redelivered(delivered)] {
        let step = on(tailing(tail()), observation);
        assert_eq!((step.next.name(), &tail_of(&step).cursor), ("halted", &place(50)));
        assert_eq!(tail_of(&step).mark, batch(9), "the batch was sent");
        assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_AHEAD)]);
    }
}

#[test]
fn the_mark_is_that_of_the_newest_batch_that_was_taken() {
    for (taken, number) in [(Some(12), 12), (None, 7), (Some(3), 7)] {
        let mark = taken.map(batch);
        let delivered = Delivered { mark, ..Delivered::default() };
        let step = seen(
            tailing(tail()),
            PageSeen { next: place(58), delivered: delivered.clone(), ..page() },
        );
        assert_eq!(tail_of(&step).mark, batch(number));
        let step = on(tailing(tail()), Observation::Redelivered(delivered));
        assert_eq!((tail_of(&step).mark, &tail_of(&step).cursor), (batch(number), &place(50)));
    }
}

/// Rules 60, 61, 93 and 94: retried with growing delays, and parked when it is refused or was
/// tried often enough.
#[test]
fn a_failed_delivery_is_retried_until_it_is_parked() {
    let seconds = |n| Some(Duration::from_secs(n));
    let table = [
        (failed("k", 1, true), seconds(1)),
        (failed("k", 2, true), seconds(2)),
        (failed("k", 4, true), seconds(8)),
        (failed("k", 5, true), None),
        (failed("k", 6, true), None),
        (failed("k", 1, false), None),
    ];
    assert_eq!(terms().delivery.attempts_max, RetryPolicy::DELIVERY.attempts_max);
    for (failed, retry_in) in table {
        let attempts = failed.attempts;
        let delivered = Delivered { failed: vec![failed], ..Delivered::default() };
        let of_page = PageSeen { next: place(58), delivered: delivered.clone(), ..page() };
        for observation in [Observation::Page(of_page), Observation::Redelivered(delivered)] {
            let step = on(tailing(tail()), observation);
            let item = &items(&step)[0];
            assert_eq!((item.retry_in, item.attempts), (retry_in, attempts));
            assert_eq!((&item.key, item.version), (&Key::new("k"), at(55)));
            assert_eq!((&item.code, item.reason.as_str()), (&Code::SINK_REFUSED, "too long"));
        }
    }
}

/// F1 and rule 42: the items of a page land before the page's moment is judged, in one commit.
#[test]
fn a_page_settles_and_enqueues_before_it_claims() {
    let delivered = Delivered {
        settled: vec![Settle { key: Key::new("done"), version: at(54) }],
        failed: vec![failed("k", 1, true)],
        mark: Some(batch(8)),
        ahead: None,
    };
    let step = seen(tailing(tail()), PageSeen { next: place(60), delivered, ..page() });
    let kinds: Vec<_> = step.writes.iter().map(std::mem::discriminant).collect();
    let expected = [
        LedgerWrite::Settle(Vec::new()),
        LedgerWrite::Enqueue(Vec::new()),
        LedgerWrite::Certify(Claim::Begun),
    ];
    assert_eq!(kinds, expected.iter().map(std::mem::discriminant).collect::<Vec<_>>());
    assert_eq!(claims(&step), [&Claim::UpTo(moment(60))]);
}

/// Rules 42 and 70: the ledger kept an old moment because of an item; once the item has moved,
/// the same moment is claimed again.
#[test]
fn a_moment_is_claimed_again_after_items_moved() {
    let claimed = seen(tailing(tail()), page()).next;
    let settled = Delivered {
        settled: vec![Settle { key: Key::new("k"), version: at(55) }],
        ..Delivered::default()
    };
    let parked = Delivered { failed: vec![failed("k", 5, true)], ..Delivered::default() };
    for moved in [settled, parked] {
        let step = on(claimed.clone(), Observation::Redelivered(moved));
        assert_eq!(claims(&step), [] as [&Claim; 0], "items know no moment");
        assert_eq!(claims(&seen(step.next, page())), [&Claim::UpTo(moment(60))]);
    }
}

/// The position in the source moves while it moves, and at most this often.
#[test]
fn an_acknowledgement_is_written_at_most_each_interval() {
    let due = |tail: Tail, after_ms| {
        let now = NOW.plus(Duration::from_millis(after_ms));
        match Follow::due(&terms(), &tailing(tail), now) {
            Due::Now(Command::Register(registration)) => Some(registration),
            Due::Now(_) | Due::At(_) => None,
        }
    };
    assert_eq!(due(tail(), 999), None);
    assert_eq!(due(tail(), 1_000), Some(registration(4, 50)));
    assert_eq!(due(Tail { registered: registration(3, 50), ..tail() }, 9_000), None, "idle");
    let step = Follow::on(
        &terms(),
        tailing(tail()),
        Observation::Registered(registration(4, 50)),
        NOW.plus(Duration::from_secs(1)),
    )
    .expect("asked for");
    let next = tail_of(&step).clone();
    assert_eq!((&next.registered, step.writes.len()), (&registration(4, 50), 0));
    assert_eq!(due(Tail { cursor: place(51), ..next.clone() }, 1_999), None);
    assert_eq!(due(Tail { cursor: place(51), ..next }, 2_000), Some(registration(5, 51)));
}

/// A clock that was wrong for a while leaves a time behind that is still to come. Nothing waits for
/// it.
#[test]
fn what_a_wrong_clock_left_behind_holds_nothing_up() {
    let later = NOW.plus(std::time::Duration::from_secs(86_400 * 3));
    let phase = tailing(Tail { registered_at: later, ..tail() });
    let due = Follow::due(&terms(), &phase, NOW);
    assert!(matches!(due, Due::Now(Command::Register(_))), "{due:?}");
    let halted = Halted { code: Code::SINK_OWNED, since: later, before: None, suspect: None };
    let due = Follow::due(&terms(), &Phase::Halted(halted), NOW);
    assert!(matches!(due, Due::Now(Command::Open)), "{due:?}");
}
