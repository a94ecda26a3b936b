//! Which servers go on from a place: one row per way in which a server comes in another's stead.

use super::*;

/// Started at 1 without anything to replay, on timeline 2, the log at 100.
const FIRST: Start = Start(1, None);

/// The server that makes the place.
fn server() -> Line {
    Line { timeline: 2, log: 100, start: FIRST, known: Some(FIRST), promoted: false }
}

/// The same after another start, that replayed up to here.
fn again(replayed: Option<u64>) -> Line {
    Line { start: Start(9, replayed), log: 900, ..server() }
}

/// A standby of it that was promoted, and took its log up to here.
fn promoted(forked: u64) -> Line {
    Line { timeline: 3, promoted: true, ..again(Some(forked)) }
}

/// X3, X43, X54, rules 121 and 122: who goes on from a place, and who may be repaired if not.
#[test]
fn what_nobody_knows_is_not_believed() {
    let before = Some(Start(0, None));
    let table: [(&str, Line, bool, bool); 16] = [
        ("the same", server(), true, false),
        ("the same, later", Line { log: 200, ..server() }, true, false),
        ("behind, and never started again", Line { log: 99, ..server() }, false, false),
        ("stopped and started", again(None), true, true),
        ("crashed, all replayed", again(Some(100)), true, true),
        ("crashed, replayed less, and beyond by now", again(Some(99)), false, true),
        ("a copy of a stopped one, behind", Line { log: 99, ..again(None) }, false, true),
        (
            "a copy of before that start, beyond by now",
            Line { known: before, ..again(None) },
            false,
            true,
        ),
        ("promoted with all", promoted(100), true, true),
        ("promoted without all", promoted(99), false, true),
        ("promoted, then crashed", Line { promoted: false, ..promoted(400) }, false, true),
        ("promoted twice", Line { timeline: 4, ..promoted(100) }, false, true),
        ("of a line that never had ours", Line { known: before, ..promoted(100) }, false, false),
        ("nothing acknowledged", Line { known: None, ..promoted(100) }, false, false),
        ("the line before", Line { timeline: 1, ..again(None) }, false, false),
        (
            "looked at under this start",
            Line { known: Some(Start(9, None)), ..again(None) },
            true,
            true,
        ),
    ];
    let place = server().here();
    for (what, line, goes_on, earlier) in table {
        assert_eq!(line.goes_on(&place), goes_on, "{what}");
        assert_eq!(line.is_earlier(&place), earlier, "{what}");
    }
    assert!(server().goes_on(&Rest::default()) && !server().is_earlier(&Rest::default()));
}

/// A start is noted once, and for nobody who has not said who he is.
#[test]
fn a_start_is_noted_before_anything_is_handed_out_under_it() {
    assert_eq!(server().unnoted(), None);
    assert_eq!(Line { known: None, ..again(None) }.unnoted(), None);
    assert_eq!(again(Some(7)).unnoted().as_deref(), Some("[9,7]"));
}
