//! X43, X54 and rule 122: when a source that went back is numbered anew, and what follows then.

use super::*;
use crate::limits::{REPAIR_AGAIN_AFTER, REPAIR_GAP};

fn repairs() -> Terms {
    Terms { source_went_back: SourceWentBack::Repair, ..terms() }
}

fn after(phase: Phase, seen: Observation, now: Timestamp) -> Step<Phase> {
    Follow::on(&repairs(), phase, seen, now).expect("asked for")
}

fn restored() -> Opened {
    let view = SourceView { registration: Some(registration(2, 30)), ..view() };
    Opened { view, mark: Some(mark()) }
}

fn looked(phase: Phase, opened: Opened) -> Phase {
    after(phase, Observation::Opened(opened), NOW).next
}

/// X54.
#[test]
fn a_source_that_went_back_is_repaired_only_once_the_same_was_seen_twice() {
    let first = looked(opening(Some(tail())), restored());
    assert_eq!(first.name(), "halted");
    let due = Follow::due(&repairs(), &first, NOW);
    assert_eq!(due, Due::At(NOW.plus(Duration::from_secs(30))), "a while apart");
    assert_eq!(looked(first.clone(), restored()).name(), "repairing");
    let mut other = restored();
    other.view.registration = Some(registration(1, 20));
    let again = looked(first, other.clone());
    assert_eq!(again.name(), "halted", "it says something else");
    assert_eq!(looked(again, other).name(), "repairing");
}

/// X54.
#[test]
fn another_source_or_another_loss_is_never_repaired() {
    let table: [(&str, Opened); 5] = [
        ("a server beside the real one", {
            let view = SourceView { repairable: false, ..restored().view };
            Opened { view, ..restored() }
        }),
        ("another feed", {
            let view = SourceView { incarnation: incarnation("other"), ..view() };
            Opened { view, mark: Some(mark()) }
        }),
        ("the ledger went back", {
            let view = SourceView { registration: Some(registration(9, 90)), ..view() };
            Opened { view, mark: Some(mark()) }
        }),
        ("tombstones are gone", {
            let view = SourceView { pruned: moment(51), ..view() };
            Opened { view, mark: Some(mark()) }
        }),
        ("somebody else's sink", {
            let mark = Some(Mark { ledger: ledger("other"), ..mark() });
            Opened { view: view(), mark }
        }),
    ];
    for (what, opened) in table {
        let first = looked(opening(Some(tail())), opened.clone());
        assert_eq!(first.name(), "halted", "{what}");
        assert_eq!(looked(first, opened).name(), "halted", "{what}");
    }
    let first = on(opening(Some(tail())), Observation::Opened(restored())).next;
    let again = on(first, Observation::Opened(restored())).next;
    assert_eq!(again.name(), "halted", "the policy is to halt");
}

/// X54.
#[test]
fn a_second_repair_within_an_hour_is_an_operators() {
    let table = [(Duration::ZERO, "halted"), (REPAIR_AGAIN_AFTER, "repairing")];
    for (rested, name) in table {
        let before = Tail { repaired_at: Some(NOW), ..tail() };
        let now = NOW.plus(rested);
        let first = after(opening(Some(before)), Observation::Opened(restored()), now).next;
        let second = after(first, Observation::Opened(restored()), now).next;
        assert_eq!(second.name(), name);
    }
}

/// A run that saw its source gone back twice.
fn repairing(tail: Tail) -> Phase {
    looked(looked(opening(Some(tail)), restored()), restored())
}

/// Rule 122 and X43.
#[test]
fn numbers_go_on_above_all_that_was_seen_and_the_feed_is_followed_from_its_beginning() {
    for (delivered, above) in [(55, 60), (75, 75)] {
        let phase = repairing(Tail { delivered: at(delivered), ..tail() });
        let above = at(above + REPAIR_GAP);
        let due = |phase: &Phase| Follow::due(&repairs(), phase, NOW);
        assert_eq!(due(&phase), Due::Now(Command::BeginAgain { above }));
        let phase = after(phase, Observation::BegunAgain, NOW).next;
        assert_eq!(due(&phase), Due::Now(Command::Fill));
        let phase = after(phase, Observation::Filled { done: false }, NOW).next;
        assert_eq!(due(&phase), Due::Now(Command::Fill));
        let phase = after(phase, Observation::Filled { done: true }, NOW).next;
        assert_eq!(due(&phase), Due::Now(Command::Open));
        let step = after(phase, Observation::Opened(restored()), NOW);
        assert_eq!(claims(&step), [&Claim::Broken(Code::SOURCE_WENT_BACK)]);
        let expected = Tail {
            cursor: place(0),
            floor: moment(40),
            delivered: at(delivered),
            registered: registration(2, 30),
            distrust: Some(Code::SOURCE_WENT_BACK),
            repaired_at: Some(NOW),
            ..tail()
        };
        assert_eq!(step.next, tailing(expected));
    }
}

#[test]
fn a_repair_whose_worker_died_is_done_from_its_beginning() {
    let begun = after(repairing(tail()), Observation::BegunAgain, NOW).next;
    let filled = after(begun.clone(), Observation::Filled { done: true }, NOW).next;
    for phase in [repairing(tail()), begun, filled] {
        let step = after(phase, Observation::TookOver { after_crash: true }, NOW);
        assert_eq!((step.next, step.writes), (repairing(tail()), Vec::new()));
    }
}

#[test]
fn a_repair_that_finds_another_world_at_its_end_halts() {
    let begun = after(repairing(tail()), Observation::BegunAgain, NOW).next;
    let filled = after(begun, Observation::Filled { done: true }, NOW).next;
    let other = SourceView { incarnation: incarnation("other"), ..view() };
    let stolen = Some(Mark { ledger: ledger("other"), ..mark() });
    let later = MarkNumber::new(0).turn_after().turn_after();
    let table = [
        (other, Some(mark()), Code::SOURCE_WENT_BACK),
        (view(), stolen, Code::SINK_OWNED),
        (view(), Some(Mark { number: later, ..mark() }), Code::LEDGER_WENT_BACK),
    ];
    for (view, mark, code) in table {
        let step = after(filled.clone(), Observation::Opened(Opened { view, mark }), NOW);
        assert_eq!(claims(&step), [&Claim::Broken(code)]);
        assert_eq!(step.next.name(), "halted");
    }
}
