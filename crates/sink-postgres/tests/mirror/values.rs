//! Every value arrives as the source has it or not at all, and the mirror agrees with the reference
//! sink.

use std::collections::BTreeMap;

use truekeep_core::ports::{Body, Delivery, Outcome, Sink};
use truekeep_core::{Fence, Key, Value};
use truekeep_sink_memory::MemorySink;

use crate::fixture::{Home, batch, body, delete, json, mapped, sent, text, upsert};

fn raw(json: &str) -> Value {
    Value::Json(json.into())
}

fn refusals(outcomes: &[Outcome]) -> Vec<String> {
    let reason = |outcome: &Outcome| match outcome {
        Outcome::Refused(_, reason) => reason.clone(),
        _ => String::new(),
    };
    outcomes.iter().map(reason).collect()
}

/// A column of each type, with values that rounding, a session's settings, padding or a wider
/// equality would change; each is what Postgres itself writes.
fn typed() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("smallint", vec![Value::Integer(-32_768), Value::Integer(32_767)]),
        ("bigint", vec![Value::Integer(i64::MIN), Value::Integer((1 << 53) + 1)]),
        ("oid", vec![Value::Integer(4_294_967_295)]),
        ("real", [0.1, -0.0, f64::NAN, 3.4028235e38].map(Value::Real).into()),
        (
            "double precision",
            [0.1, -0.0, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
                .map(Value::Real)
                .into(),
        ),
        (
            "numeric",
            vec![
                raw("12345678901234567890123456789012345678.50"),
                raw("0.00"),
                raw("-1"),
                text("NaN"),
            ],
        ),
        ("boolean", vec![raw("true"), raw("false")]),
        ("text", ["", " ", "NULL", "\\N", "a\tb\r\nc\\", "e\u{301}", "é", "🏳"].map(text).into()),
        ("bytea", vec![Value::Blob([].into()), Value::Blob([0, 92, 255].into())]),
        (
            "json",
            vec![raw(r#"{"b":1, "a":1.50,"a":[ ]}"#), raw("null"), text("null"), raw("1e400")],
        ),
        ("jsonb", vec![raw(r#"{"a": 1.50, "b": [1, null]}"#), raw("null")]),
        ("date", ["2024-02-29", "infinity", "0044-03-15 BC"].map(text).into()),
        (
            "timestamp without time zone",
            ["2024-01-01T00:00:00.123456", "-infinity"].map(text).into(),
        ),
        ("timestamp with time zone", vec![text("2024-01-01T00:00:00.123456+00:00")]),
        ("time with time zone", vec![text("12:00:00.000001+05:30")]),
        ("interval", vec![text("1 mon -3 days +04:05:06.789")]),
        ("uuid", vec![text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
        ("inet", vec![text("10.0.0.1/8"), text("::1/128")]),
        ("int4range", vec![text("[1,5)"), text("empty")]),
        ("mood", vec![text("sad"), Value::Integer(1), raw("[1]"), Value::Blob([1].into())]),
        ("integer[]", vec![raw("[1,null,3]")]),
    ]
}

/// X22: what is written reads back as itself in each type: new, over another one, and by COPY.
#[tokio::test]
async fn values_of_each_type_are_held_exactly() {
    for (declared, mut values) in typed() {
        let Some(home) = Home::new().await else { return };
        let sink = home.mirror(mapped(&[("value", declared)])).await;
        values.push(Value::Null);
        for number in 1..=3 {
            let deliveries: Vec<Delivery> = values
                .iter()
                .enumerate()
                .map(|(key, value)| upsert(&key.to_string(), number, &[("value", value.clone())]))
                .collect();
            let outcomes = sent(&sink, number, deliveries.clone()).await.expect("answered");
            assert_eq!(outcomes, vec![Outcome::Applied; values.len()], "{declared}");
            let held = sink.verify(&deliveries).await.expect("answered");
            assert_eq!(held, vec![true; values.len()], "{declared} {number}");
            // Every other value of the type is told from it.
            for (key, value) in values.iter().enumerate() {
                for (other, different) in values.iter().enumerate().filter(|(at, _)| *at != key) {
                    let asked = [upsert(&key.to_string(), number, &[("value", different.clone())])];
                    let same = sink.verify(&asked).await.expect("answered");
                    assert_eq!(same, [false], "{declared}: {value:?} is not {other} {different:?}");
                }
            }
        }
    }
}

/// What a type would round, cut, pad or read as something else is refused, and stops no other.
#[tokio::test]
async fn what_a_column_cannot_hold_is_refused_alone() {
    let Some(home) = Home::new().await else { return };
    let columns =
        [("a", "smallint"), ("b", "numeric"), ("c", "text"), ("d", "uuid"), ("e", "json")];
    let sink = home.mirror(mapped(&columns)).await;
    let fits = [
        ("a", Value::Integer(1)),
        ("b", raw("1.5")),
        ("c", text("c")),
        ("d", text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("e", raw("{}")),
    ];
    let with = |key: &str, at: usize, value: Value| {
        let mut fields = fits.clone();
        fields[at].1 = value;
        upsert(key, 1, &fields)
    };
    let deep = raw(&"[".repeat(200_000));
    let bad = [
        with("1", 0, Value::Integer(40_000)),
        with("2", 0, Value::Real(1.5)),
        with("3", 1, raw("1e3")),
        with("4", 2, text("a\0b")),
        with("5", 2, Value::InvalidText([0xff].into())),
        with("6", 3, text("no uuid")),
        with("7", 4, raw("{no json}")),
        with("8", 4, deep),
        with(&"k".repeat(3_000).replace('k', "\u{e000}k"), 2, text("c")),
    ];
    // Random characters, so that no key is packed below what an index takes.
    let mut state = 1_u64;
    let long: String = (0..4_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 33) % 26).expect("a letter"))
        })
        .collect();
    let mut deliveries = vec![with("good", 0, Value::Integer(1))];
    deliveries.extend(bad);
    deliveries.push(with(&long, 2, text("c")));
    deliveries.push(with("fine", 0, Value::Integer(2)));
    let outcomes = sent(&sink, 1, deliveries.clone()).await.expect("answered");
    let reasons = refusals(&outcomes);
    let expected = [
        "",
        "`a` is no smallint",
        "`a` is no smallint",
        "`b` is no numeric",
        "`c` holds a NUL character, which Postgres cannot",
        "`c` holds text that is not UTF-8",
        "invalid input syntax for type uuid: \"no uuid\"",
        "invalid input syntax for type json",
        "stack depth limit exceeded",
    ];
    for (place, expected) in expected.iter().enumerate() {
        assert!(reasons[place].starts_with(expected), "{place}: {:?}", reasons[place]);
    }
    assert!(reasons[10].contains("exceeds btree version 4 maximum"), "{:?}", reasons[10]);
    assert_eq!((&outcomes[0], &outcomes[11]), (&Outcome::Applied, &Outcome::Applied));
    let held = sink.verify(&deliveries).await.expect("answered");
    let places: Vec<usize> = (0..held.len()).filter(|place| held[*place]).collect();
    assert_eq!(places[0], 0);
    assert_eq!(places.last(), Some(&11));
    assert!((1..9).all(|place| !held[place]), "{held:?}");
}

/// A document that is an object keeps what JSON can say; what it cannot is refused.
#[tokio::test]
async fn document_is_json_as_it_is() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(json("mirror")).await;
    let deliveries = vec![
        upsert("1", 1, &[("z", Value::Integer(i64::MAX)), ("a", Value::Null), ("é", text("\0\\"))]),
        upsert(
            "2",
            1,
            &[("n", raw("1.50")), ("r", Value::Real(-0.0)), ("o", raw(r#"{"b":1,"b":2}"#))],
        ),
        upsert("3", 1, &[("document", raw(" [1, 2]"))]),
        upsert("4", 1, &[("r", Value::Real(f64::NAN))]),
        upsert("5", 1, &[("i", Value::Real(f64::INFINITY))]),
    ];
    let outcomes = sent(&sink, 1, deliveries.clone()).await.expect("answered");
    assert_eq!(refusals(&outcomes), ["", "", "", "`r` is not a number", ""]);
    let held = home.texts("SELECT document::text FROM mirror ORDER BY _key").await;
    let held: Vec<_> = held.iter().map(|text| text.as_deref().expect("a document")).collect();
    assert_eq!(
        held,
        [
            r#"{"z":9223372036854775807,"a":null,"é":"\u0000\\"}"#,
            r#"{"n":1.50,"r":-0.0,"o":{"b":1,"b":2}}"#,
            " [1, 2]",
            r#"{"i":9.0e+999}"#,
        ]
    );
    let verified = sink.verify(&deliveries).await.expect("answered");
    assert_eq!(verified, [true, true, true, false, true]);
}

/// Whoever opens the mirror with settings of their own changes nothing that is written or read.
#[tokio::test]
async fn odd_settings_of_the_role_change_nothing() {
    let Some(home) = Home::new().await else { return };
    home.sql(&format!(
        "ALTER DATABASE {name} SET timezone = 'Asia/Kathmandu'; ALTER DATABASE {name} SET datestyle = 'German';
         ALTER DATABASE {name} SET intervalstyle = 'iso_8601'; ALTER DATABASE {name} SET bytea_output = 'escape';
         ALTER DATABASE {name} SET extra_float_digits = -5; ALTER DATABASE {name} SET synchronous_commit = off;
         ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'",
        name = home.database.name
    ))
    .await;
    let columns = [
        ("a", "timestamp with time zone"),
        ("b", "interval"),
        ("c", "bytea"),
        ("d", "double precision"),
    ];
    let sink = home.mirror(mapped(&columns)).await;
    let sent_now = vec![upsert(
        "k",
        1,
        &[
            ("a", text("2024-03-04T05:06:07+00:00")),
            ("b", text("1 day 02:00:00")),
            ("c", Value::Blob([0, 200].into())),
            ("d", Value::Real(0.1)),
        ],
    )];
    assert_eq!(sent(&sink, 1, sent_now.clone()).await.expect("answered"), [Outcome::Applied]);
    assert_eq!(sink.verify(&sent_now).await.expect("answered"), [true]);
    let held = home
        .texts("SELECT (a = '2024-03-04 05:06:07+00' AND d = 0.1::float8)::text FROM mirror")
        .await;
    assert_eq!(held, [Some("true".to_owned())]);
}

fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// Random batches leave the mirror as the reference sink is: outcomes, mark, listing, documents.
#[tokio::test]
async fn mirror_equals_the_reference_after_every_batch() {
    let Some(home) = Home::new().await else { return };
    let (mirror, reference) = (home.mirror(json("mirror")).await, MemorySink::new());
    let mut state = 7;
    for round in 1..150 {
        let held = reference.mark().await.expect("read").map_or(0, |mark| mark.number.get());
        let mut deliveries: BTreeMap<u64, Delivery> = BTreeMap::new();
        for _ in 0..draw(&mut state, 12) {
            let (key, version) = (draw(&mut state, 30), draw(&mut state, 40));
            let made = match draw(&mut state, 3) {
                0 => delete(&key.to_string(), version),
                _ => body(&key.to_string(), version, &version.to_string()),
            };
            deliveries.insert(key, made);
        }
        let mut batch = batch(held + draw(&mut state, 3), deliveries.into_values().collect());
        batch.mark.fence = Fence::new(1 + round / 40 - draw(&mut state, 2).min(round / 40));
        let ours = mirror.apply(batch.clone()).await.map_err(|error| error.code);
        let theirs = reference.apply(batch).await.map_err(|error| error.code);
        assert_eq!(ours, theirs);
        assert_eq!(mirror.mark().await.expect("read"), reference.mark().await.expect("read"));
        let limit = 1_000;
        let ours = mirror.list(None, limit).await.expect("listed");
        assert_eq!(ours, reference.list(None, limit).await.expect("listed"));
        let contents = reference.contents();
        let expected: Vec<Delivery> = contents
            .iter()
            .map(|(key, held)| Delivery {
                key: Key::new(key.as_str()),
                rank: held.rank.expect("nobody else writes"),
                body: Body::Upsert(std::sync::Arc::clone(&held.document)),
            })
            .collect();
        let same = mirror.verify(&expected).await.expect("answered");
        assert!(same.iter().all(|same| *same), "{round}");
    }
}
