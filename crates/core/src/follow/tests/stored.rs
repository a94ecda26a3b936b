//! The stored form of the phases: a ledger that was written by an older program is read by a newer.

use super::*;

fn full() -> Tail {
    Tail {
        floor: moment(30),
        claimed: Some(Claim::UpTo(moment(50))),
        probe: Some(Probe { rows: 8, armed: true, lone_deaths: 1 }),
        ..tail()
    }
}

#[test]
fn the_stored_form_is_a_promise() {
    let begun = Tail { claimed: Some(Claim::Begun), ..tail() };
    let broken = Tail { claimed: Some(Claim::Broken(Code::CAPTURE_FILLING)), ..tail() };
    let table = [
        (Phase::START, r#"{"phase":"opening","before":null}"#),
        (
            opening(Some(tail())),
            concat!(
                r#"{"phase":"opening","before":{"rules":2,"feed":"feed","cursor":{"passed":"50"},"floor":"0","delivered":0,"#,
                r#""claimed":null,"mark":{"fence":4,"number":7},"sent":7,"registered":{"counter":3,"passed":"40"},"#,
                r#""registered_at":100000,"distrust":null,"repaired_at":null,"probe":null}}"#,
            ),
        ),
        (
            tailing(full()),
            concat!(
                r#"{"phase":"tailing","tail":{"rules":2,"feed":"feed","cursor":{"passed":"50"},"floor":"30","delivered":0,"#,
                r#""claimed":{"up_to":"50"},"mark":{"fence":4,"number":7},"sent":7,"registered":{"counter":3,"passed":"40"},"#,
                r#""registered_at":100000,"distrust":null,"repaired_at":null,"probe":{"rows":8,"armed":true,"lone_deaths":1}}}"#,
            ),
        ),
        (
            tailing(begun),
            concat!(
                r#"{"phase":"tailing","tail":{"rules":2,"feed":"feed","cursor":{"passed":"50"},"floor":"0","delivered":0,"#,
                r#""claimed":"begun","mark":{"fence":4,"number":7},"sent":7,"registered":{"counter":3,"passed":"40"},"#,
                r#""registered_at":100000,"distrust":null,"repaired_at":null,"probe":null}}"#,
            ),
        ),
        (
            tailing(broken),
            concat!(
                r#"{"phase":"tailing","tail":{"rules":2,"feed":"feed","cursor":{"passed":"50"},"floor":"0","delivered":0,"#,
                r#""claimed":{"broken":"CAPTURE_FILLING"},"mark":{"fence":4,"number":7},"sent":7,"#,
                r#""registered":{"counter":3,"passed":"40"},"registered_at":100000,"distrust":null,"repaired_at":null,"probe":null}}"#,
            ),
        ),
        (
            halted(None),
            r#"{"phase":"halted","code":"SINK_AHEAD","since":100000,"before":null,"suspect":null}"#,
        ),
        (
            halted(Some(full())),
            concat!(
                r#"{"phase":"halted","code":"SINK_AHEAD","since":100000,"before":{"rules":2,"#,
                r#""feed":"feed","cursor":{"passed":"50"},"floor":"30","delivered":0,"claimed":{"up_to":"50"},"mark":{"fence":4,"number":7},"sent":7,"#,
                r#""registered":{"counter":3,"passed":"40"},"registered_at":100000,"#,
                r#""distrust":null,"repaired_at":null,"probe":{"rows":8,"armed":true,"lone_deaths":1}},"suspect":null}"#,
            ),
        ),
    ];
    for (phase, text) in table {
        assert_eq!(serde_json::to_string(&phase).expect("a phase is JSON"), text);
        assert_eq!(serde_json::from_str::<Phase>(text).expect("a phase"), phase);
    }
}
