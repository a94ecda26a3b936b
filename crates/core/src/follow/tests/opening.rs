//! What halts a run before anything is delivered, and what does not.

use super::*;

/// What a run finds: its own memory, the source and the sink.
#[derive(Debug, Clone)]
struct World {
    before: Option<Tail>,
    view: SourceView,
    mark: Option<Mark>,
}

fn world() -> World {
    World { before: Some(tail()), view: view(), mark: Some(mark()) }
}

/// A ledger that remembers no delivery, before a source and a sink that nobody used.
fn unused() -> World {
    let view = SourceView { registration: None, ..view() };
    World { before: None, view, mark: None }
}

fn opened(world: &World) -> Step<Phase> {
    let seen = Opened { view: world.view.clone(), mark: world.mark.clone() };
    on(opening(world.before.clone()), Observation::Opened(seen))
}

fn numbered(number: u64) -> Option<Mark> {
    Some(Mark { number: MarkNumber::new(number), ..mark() })
}

/// The mark of the first batch of this turn; the one that fits the tail is of turn 0.
fn of_turn(turn: u32) -> Option<Mark> {
    let after = |number: MarkNumber, _| number.turn_after();
    let number = (0..turn).fold(MarkNumber::new(0), after);
    Some(Mark { number, ..mark() })
}

fn changed(change: impl FnOnce(&mut World)) -> World {
    let mut world = world();
    change(&mut world);
    world
}

/// What a removed pipeline left in the sink, under these rules.
fn headstone(rules: u64) -> Option<Mark> {
    let (pipeline, rules) = (incarnation("removed"), RulesNumber::new(rules));
    Some(Mark { pipeline, rules, removed: true, ..mark() })
}

/// X3, X5, X17, X21 and rule 57: each alone stops the run, before anything is sent.
#[test]
fn what_went_back_or_belongs_to_another_halts() {
    let acknowledged = |counter| Some(registration(counter, 40));
    let table: [(&str, World, Code); 17] = [
        (
            "another life of the feed",
            changed(|w| w.view.incarnation = incarnation("other")),
            Code::SOURCE_WENT_BACK,
        ),
        (
            "the acknowledgement is gone",
            changed(|w| w.view.registration = None),
            Code::SOURCE_WENT_BACK,
        ),
        (
            "an older acknowledgement",
            changed(|w| w.view.registration = acknowledged(2)),
            Code::SOURCE_WENT_BACK,
        ),
        ("the feed ends below the cursor", changed(|w| w.view.newest = moment(49)), {
            Code::SOURCE_WENT_BACK
        }),
        ("the cursor is no place of this feed", changed(|w| w.view.continues = false), {
            Code::SOURCE_WENT_BACK
        }),
        (
            "an acknowledgement that the ledger does not know",
            changed(|w| w.view.registration = acknowledged(5)),
            Code::LEDGER_WENT_BACK,
        ),
        (
            "tombstones that were not seen are gone",
            changed(|w| w.view.pruned = moment(51)),
            Code::TOMBSTONES_PRUNED,
        ),
        (
            "a mark that the ledger does not know",
            changed(|w| w.mark = of_turn(2)),
            Code::LEDGER_WENT_BACK,
        ),
        (
            "another ledger's sink",
            changed(|w| w.mark = Some(Mark { ledger: ledger("other"), ..mark() })),
            Code::SINK_OWNED,
        ),
        (
            "another pipeline's sink",
            changed(|w| w.mark = Some(Mark { pipeline: incarnation("other"), ..mark() })),
            Code::SINK_OWNED,
        ),
        (
            "a sink that a removed pipeline wrote under the same rules",
            World { mark: headstone(2), ..unused() },
            Code::SINK_INHERITED,
        ),
        (
            "a sink that a removed pipeline wrote under later rules",
            changed(|w| w.mark = headstone(3)),
            Code::SINK_INHERITED,
        ),
        (
            "a sink that says that this very pipeline was removed",
            changed(|w| w.mark = Some(Mark { removed: true, ..mark() })),
            Code::LEDGER_WENT_BACK,
        ),
        (
            "a sink written under later rules",
            changed(|w| w.mark = Some(Mark { rules: RulesNumber::new(3), ..mark() })),
            Code::LEDGER_WENT_BACK,
        ),
        (
            "a fresh ledger and a used sink",
            World { mark: of_turn(2), ..unused() },
            Code::LEDGER_WENT_BACK,
        ),
        (
            "a fresh ledger and another ledger's sink",
            World { mark: Some(Mark { ledger: ledger("other"), ..mark() }), ..unused() },
            Code::SINK_OWNED,
        ),
        (
            "new rules and a mark under them that the ledger does not know",
            changed(|w| {
                w.before = Some(Tail { rules: RulesNumber::new(1), ..tail() });
                w.mark = of_turn(2);
            }),
            Code::LEDGER_WENT_BACK,
        ),
    ];
    for (what, world, code) in table {
        let step = opened(&world);
        assert_eq!(
            step.next,
            Phase::Halted(Halted {
                suspect: Suspect::of(world.before.as_ref(), &code, &world.view),
                code: code.clone(),
                since: NOW,
                before: world.before.clone(),
            }),
            "{what}"
        );
        assert_eq!(claims(&step), [&Claim::Broken(code)], "{what}");
    }
}

/// A holder dies between an effect and its commit: what it did is one ahead of what is known.
#[test]
fn an_effect_whose_commit_is_missing_is_normal() {
    let one_ahead = || Some(registration(4, 50));
    let table = [
        ("nothing is ahead", world(), 7),
        ("the batch was sent", changed(|w| w.mark = numbered(8)), 8),
        ("the acknowledgement was stored", changed(|w| w.view.registration = one_ahead()), 7),
        (
            "both",
            changed(|w| {
                w.mark = numbered(8);
                w.view.registration = one_ahead();
            }),
            8,
        ),
        ("tombstones that were passed are gone", changed(|w| w.view.pruned = moment(50)), 7),
        ("the feed ends at the cursor", changed(|w| w.view.newest = moment(50)), 7),
    ];
    for (what, world, number) in table {
        let step = opened(&world);
        let mark = batch(number);
        let expected = Tail { mark, sent: mark.number, ..tail() };
        assert_eq!(step.next, tailing(expected), "{what}");
        assert_eq!(step.writes, [LedgerWrite::Certify(Claim::Begun)], "{what}");
    }
}

/// The very first start, also after one that died between its first effects and its first commit.
#[test]
fn a_fresh_ledger_begins_at_the_feeds_beginning() {
    let table = [
        ("nobody was here", unused(), 0, registration(0, 0)),
        ("a batch was sent", World { mark: numbered(1), ..unused() }, 1, registration(0, 0)),
        (
            "it was acknowledged",
            World {
                view: SourceView { registration: Some(registration(1, 0)), ..view() },
                ..unused()
            },
            0,
            registration(1, 0),
        ),
    ];
    for (what, world, number, registered) in table {
        let step = opened(&world);
        let fresh = Tail {
            cursor: place(0),
            floor: moment(40),
            mark: batch(number),
            sent: MarkNumber::new(number),
            registered,
            ..tail()
        };
        assert_eq!(step.next, tailing(fresh), "{what}");
        assert_eq!(claims(&step), [&Claim::Begun], "{what}");
    }
}

/// Rule 57 and X4: new rules deliver everything again; batches and acknowledgements count on.
#[test]
fn new_rules_go_on_where_follow_was_and_wait_for_a_rebuild() {
    let old = Tail {
        rules: RulesNumber::new(1),
        claimed: Some(Claim::UpTo(moment(50))),
        probe: Some(Probe { rows: 1, armed: true, lone_deaths: 3 }),
        ..tail()
    };
    for (number, before) in [(7, opening(Some(old.clone()))), (8, tailing(old.clone()))] {
        let seen = Opened { view: view(), mark: numbered(number) };
        let step = on(before, Observation::Opened(seen));
        let (mark, sent) = (batch(number), MarkNumber::new(number));
        let distrust = Some(Code::RULES_CHANGED);
        let probe = old.probe;
        let goes_on = Tail { mark, sent, outdated: true, distrust, probe, ..tail() };
        assert_eq!(step.next, tailing(goes_on));
        assert_eq!(claims(&step), [&Claim::Broken(Code::RULES_CHANGED)]);
        let failed = on(step.next, Observation::Judged(Some(Code::GUARD_REFUSED)));
        assert!(tail_of(&failed).outdated, "what is left is still of earlier rules");
        let ended = on(failed.next, Observation::Judged(None));
        assert!(!tail_of(&ended).outdated && tail_of(&ended).distrust.is_none());
    }
    // Nothing was passed yet that would have to be delivered again.
    let early = Tail { cursor: place(0), ..old };
    let step = opened(&World { before: Some(early), ..world() });
    assert_eq!((tail_of(&step).outdated, claims(&step)), (false, vec![&Claim::Begun]));
}

/// Rule 124: a sink that was restored and then exchanged for a backup with batches that were lost
/// is told from one that holds those that were sent since.
#[test]
fn the_numbers_of_lost_batches_are_not_given_again() {
    let restored = opened(&World { mark: numbered(2), ..world() });
    assert_eq!(tail_of(&restored).sent, MarkNumber::new(7), "numbers go on from here");
    let sent = MarkNumber::new(7).turn_after();
    let next = BatchName { number: sent, ..batch(7) };
    let delivered = Delivered { mark: Some(next), ..Delivered::default() };
    let step = on(restored.next, Observation::Page(PageSeen { delivered, ..page() }));
    assert_eq!((tail_of(&step).mark, tail_of(&step).sent), (next, sent));
    let exchanged = Opened { view: view(), mark: numbered(7) };
    let step = on(step.next, Observation::Opened(exchanged));
    assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_WENT_BACK)]);
}

/// Rule 124: and so is one that is exchanged before anything new was sent.
#[test]
fn another_backup_is_told_from_the_one_that_was_gone_on_with() {
    let restored = opened(&World { mark: numbered(2), ..world() });
    let trusted = on(restored.next, Observation::Judged(None));
    for (number, distrust) in [(2, None), (5, Some(Code::SINK_WENT_BACK))] {
        let seen = Opened { view: view(), mark: numbered(number) };
        let step = on(trusted.next.clone(), Observation::Opened(seen));
        assert_eq!(tail_of(&step).distrust, distrust, "batch {number}");
    }
}

/// Rule 124: a sink that lost what it had confirmed is followed from what it has, untrusted.
#[test]
fn a_sink_that_went_back_is_not_trusted_until_it_is_reconciled() {
    for (mark, number) in [(None, 0), (numbered(6), 6)] {
        let step = opened(&World { mark, ..world() });
        let distrust = Some(Code::SINK_WENT_BACK);
        let expected = Tail { mark: batch(number), distrust, ..tail() };
        assert_eq!(step.next, tailing(expected));
        assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_WENT_BACK)]);
        let step = on(step.next, Observation::Page(page()));
        assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_WENT_BACK)], "no moment is claimed");
        let step = on(step.next, Observation::Judged(None));
        let step = on(step.next, Observation::Page(page()));
        assert!(matches!(claims(&step)[..], [Claim::UpTo(_)]), "{step:?}");
    }
}

/// Rule 122 and X4: under new rules everything is delivered again, above whatever the sink holds;
/// what only the sink has is a reconcile's, and until then it is not trusted.
#[test]
fn new_rules_repair_what_went_back_and_wait_for_a_reconcile() {
    let old = Tail { rules: RulesNumber::new(1), ..tail() };
    let before = Mark { rules: RulesNumber::new(1), ..mark() };
    let numbered = |number| Some(Mark { number: MarkNumber::new(number), ..before.clone() });
    let table = [
        (
            "the source",
            SourceView { newest: moment(49), ..view() },
            numbered(7),
            Code::SOURCE_WENT_BACK,
        ),
        ("the sink", view(), numbered(6), Code::SINK_WENT_BACK),
        ("the ledger", view(), numbered(1 << 21), Code::LEDGER_WENT_BACK),
        (
            "another database",
            SourceView { incarnation: incarnation("other"), ..view() },
            numbered(7),
            Code::SOURCE_WENT_BACK,
        ),
        ("a doubt at the beginning", view(), numbered(7), Code::DRIFT_FOUND),
    ];
    for (what, view, mark, code) in table {
        let early = code == Code::DRIFT_FOUND;
        let distrust = Some(Code::GUARD_REFUSED).filter(|_| early);
        let cursor = if early { place(0) } else { old.cursor.clone() };
        let before = Some(Tail { distrust, cursor, ..old.clone() });
        let step = opened(&World { before, view, mark });
        let tail = tail_of(&step);
        assert_eq!((&tail.cursor, tail.distrust.clone()), (&place(0), Some(code)), "{what}");
    }
}

/// A ledger that was restored to before it knew the pipeline delivers everything, untrusted.
#[test]
fn a_fresh_ledger_and_a_used_acknowledgement_wait_for_a_reconcile() {
    let view = SourceView { registration: Some(registration(2, 40)), ..view() };
    let step = opened(&World { view, ..unused() });
    assert_eq!(tail_of(&step).distrust, Some(Code::LEDGER_WENT_BACK));
}

/// An operator who has emptied the sink may begin anew whatever went back.
#[test]
fn new_rules_and_an_empty_sink_accept_every_source() {
    let old = Some(Tail { rules: RulesNumber::new(1), ..tail() });
    let views = [
        SourceView { incarnation: incarnation("other"), ..view() },
        SourceView { registration: None, ..view() },
        SourceView { registration: Some(registration(9, 90)), ..view() },
        SourceView { newest: moment(3), pruned: moment(0), ..view() },
    ];
    for view in views {
        let step = opened(&World { before: old.clone(), view: view.clone(), mark: None });
        let tail = tail_of(&step);
        assert_eq!((step.next.name(), &tail.cursor), ("tailing", &place(0)), "{view:?}");
        assert_eq!((&tail.feed, tail.mark), (&view.incarnation, batch(0)));
        assert_eq!(
            tail.registered.counter,
            view.registration.map_or_else(|| RegistrationCounter::new(0), |r| r.counter,)
        );
    }
}

/// X17: tombstones that were gone before the first page, or that earlier rules had passed, are
/// not missed; others are.
#[test]
fn only_tombstones_that_were_never_passed_are_missed() {
    let pruned = |pruned| SourceView { pruned: moment(pruned), ..view() };
    let seen = |next, pruned_to| PageSeen {
        next: place(next),
        moment: None,
        view: pruned(pruned_to),
        ..page()
    };
    let name = |step: &Step<Phase>| step.next.name();

    let new = World { view: SourceView { registration: None, ..pruned(40) }, ..unused() };
    let step = opened(&new);
    let step = on(step.next, Observation::Registered(registration(3, 0)));
    // Between the first look and the acknowledgement, others had more of them removed.
    let step = on(step.next, Observation::Page(seen(10, 45)));
    let step = on(step.next, Observation::Page(seen(20, 45)));
    assert_eq!((name(&step), &tail_of(&step).cursor), ("tailing", &place(20)));
    assert_eq!(name(&on(step.next, Observation::Page(seen(30, 46)))), "halted");

    // A sink that went back is delivered everything again under new rules, from the beginning.
    let old = Tail { rules: RulesNumber::new(1), ..tail() };
    let lost = Some(Mark { rules: RulesNumber::new(1), number: MarkNumber::new(6), ..mark() });
    let step = opened(&World { before: Some(old), mark: lost, ..world() });
    let step = on(step.next, Observation::Page(seen(10, 50)));
    // An acknowledgement of the old cursor was still on the way.
    let step = on(step.next, Observation::Page(seen(20, 50)));
    assert_eq!((name(&step), &tail_of(&step).cursor), ("tailing", &place(20)));
    assert_eq!(name(&on(step.next, Observation::Page(seen(30, 51)))), "halted");
}

/// X58: what a removed pipeline left is taken over above its rules, from its number on, and not
/// trusted until a reconcile has looked through it; also when the worker dies before it wrote.
#[test]
fn what_a_removed_pipeline_left_is_taken_over_in_doubt() {
    let number = mark().number;
    for world in [
        World { mark: headstone(1), ..unused() },
        changed(|w| {
            w.before = Some(Tail { rules: RulesNumber::new(1), ..tail() });
            w.mark = headstone(1);
        }),
        changed(|w| w.mark = headstone(1)),
    ] {
        let step = opened(&world);
        let left = step.next.tail().expect("it tails");
        assert!(matches!(step.next, Phase::Tailing(_)));
        assert_eq!((left.mark.number, &left.distrust), (number, &Some(Code::SINK_INHERITED)));
        assert!(left.went_back(), "the doubt is about everything");
        assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_INHERITED)]);
    }
}

/// What a removed pipeline left may have greater numbers than we ever gave: ours go on above them, or
/// else the next look would take our own batches for those of a later ledger.
#[test]
fn numbers_go_on_above_those_of_a_removed_pipeline() {
    let number = MarkNumber::new(7).turn_after().turn_after().turn_after();
    let left = headstone(1).map(|mark| Mark { number, ..mark });
    let step = opened(&World { mark: left, ..world() });
    let tail = tail_of(&step);
    assert_eq!((tail.sent, tail.distrust.clone()), (number, Some(Code::SINK_INHERITED)));
    let sent = BatchName { number: number.turn_after(), ..batch(7) };
    let delivered = Delivered { mark: Some(sent), ..Delivered::default() };
    let step = on(step.next, Observation::Page(PageSeen { delivered, ..page() }));
    let held = Some(Mark { number: sent.number, ..mark() });
    let step = on(step.next, Observation::Opened(Opened { view: view(), mark: held }));
    assert_eq!(step.next.name(), "tailing", "{step:?}");
}
