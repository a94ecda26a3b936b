//! Every value arrives exactly, or its record is refused by the field's name and no other with it.

use std::path::Path;

use serde_json::{Value as Json, json};
use truekeep_core::Value;
use truekeep_core::code::Code;
use truekeep_core::ports::{Outcome, Sink};
use truekeep_sink_tantivy::{
    DateUnit, FieldKind, FieldSpec, SearchIndex, SearchRequest, TantivySink,
};

use crate::fixture::{WORDS, batch, field, spec, text, upsert};

/// What became of each value in a field, and what a search shows of those that are there.
async fn stored(field: FieldSpec, values: &[Value]) -> Vec<Result<Json, String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let sink = TantivySink::new(folder.path(), &spec(vec![field.clone()])).expect("named");
    sink.prepare().await.expect("prepared");
    let sent = values
        .iter()
        .enumerate()
        .map(|(key, value)| upsert(&key.to_string(), 1, &[(&field.name, value.clone())]));
    let sent: Vec<_> = sent.collect();
    let outcomes = sink.apply(batch(1, sent.clone())).await.expect("answered").outcomes;
    let held = sink.verify(&sent).await.expect("answered");
    let shown = shown(folder.path());
    let answer = |(key, outcome): (usize, Outcome)| match outcome {
        Outcome::Applied => {
            assert!(held[key], "{:?} is held as it was sent", values[key]);
            let (_, fields) =
                shown.iter().find(|(found, _)| *found == key.to_string()).expect("found");
            Ok(fields.get(&field.name).cloned().unwrap_or(Json::Null))
        }
        Outcome::Refused(code, reason) => {
            assert_eq!(code, Code::SINK_REFUSED);
            assert!(!held[key] && !shown.iter().any(|(found, _)| *found == key.to_string()));
            Err(reason)
        }
        other => panic!("{other:?}"),
    };
    outcomes.into_iter().enumerate().map(answer).collect()
}

fn shown(folder: &Path) -> Vec<(String, serde_json::Map<String, Json>)> {
    let index = SearchIndex::open(folder).expect("opened").expect("it is there");
    let all = SearchRequest { query: "*", fields: &[], limit: 1_000 };
    let found = index.search(&all).expect("searched");
    found.hits.into_iter().map(|hit| (hit.key.to_string(), hit.fields)).collect()
}

fn json_of(text: &str) -> Value {
    Value::Json(text.into())
}

fn refused(reason: &str) -> Result<Json, String> {
    Err(format!("`f` {reason}"))
}

async fn assert_stored(kind: FieldKind, cases: Vec<(Value, Result<Json, String>)>) {
    let values: Vec<Value> = cases.iter().map(|(value, _)| value.clone()).collect();
    let found = stored(field("f", kind), &values).await;
    for ((value, expected), found) in cases.into_iter().zip(found) {
        assert_eq!(found, expected, "{kind:?}: {value:?}");
    }
}

/// What no kind of field takes.
fn never() -> Vec<(Value, Result<Json, String>)> {
    vec![
        (Value::Null, Ok(Json::Null)),
        (Value::InvalidText([0xff].into()), refused("holds text that is not UTF-8")),
        (Value::Blob([1].into()), refused("holds a blob, and no kind of field takes one")),
        (
            json_of("{"),
            refused(
                "holds JSON that cannot be read: EOF while parsing an object at line 1 column 1",
            ),
        ),
        (
            json_of(&("[".repeat(200) + &"]".repeat(200))),
            refused(
                "holds JSON that cannot be read: recursion limit exceeded at line 1 column 128",
            ),
        ),
    ]
}

#[tokio::test]
async fn text_is_kept_as_it_is() {
    for kind in [FieldKind::Text(WORDS), FieldKind::Keyword] {
        let mut cases = never();
        let texts = [
            "",
            " ",
            "007",
            "a\0b",
            "\0",
            "é",
            "e\u{301}",
            "\u{10ffff}",
            "漢字 مرحبا",
            "🏳\u{fe0f}\u{200d}🌈",
            "\u{feff}",
        ];
        cases.extend(texts.map(|it| (text(it), Ok(json!(it)))));
        cases.extend([
            (Value::Integer(7), refused("is an integer, not text")),
            (Value::Real(0.5), refused("is a real number, not text")),
            (json_of("true"), refused("is a boolean, not text")),
            (json_of(r#"["a","b"]"#), Ok(json!(["a", "b"]))),
            (json_of(r#"[null,"a"]"#), Ok(json!("a"))),
            (json_of("[]"), Ok(Json::Null)),
            (json_of(r#""\ud83c\udff3""#), Ok(json!("🏳"))),
            (json_of(r#"["a",1]"#), refused("is an integer, not text")),
            (json_of(r#"[["a"]]"#), refused("holds a list in a list")),
            (json_of(r#"{"a":1}"#), refused("holds a JSON object")),
        ]);
        assert_stored(kind, cases).await;
    }
}

#[tokio::test]
async fn keyword_and_facet_over_the_limit_of_a_term_are_refused() {
    let (fits, over) = ("x".repeat(65_530), "x".repeat(65_531));
    let reason = || refused("has 65531 bytes, and a term holds 65530");
    let cases = vec![(text(&fits), Ok(json!(fits))), (text(&over), reason())];
    assert_stored(FieldKind::Keyword, cases).await;
    let (fits, over) = (format!("/{}", "x".repeat(65_529)), format!("/{}", "x".repeat(65_530)));
    let cases = vec![(text(&fits), Ok(json!(fits))), (text(&over), reason())];
    assert_stored(FieldKind::Facet, cases).await;
    // Of text the words count, and one that is too long is left out of the dictionary.
    assert_stored(FieldKind::Text(WORDS), vec![(text(&over), Ok(json!(over)))]).await;
}

#[tokio::test]
async fn facet_is_a_path() {
    let mut cases = never();
    let absolute = || refused("is no facet: it begins with `/`");
    cases.extend([
        (text("/animal/cat"), Ok(json!("/animal/cat"))),
        (text("/Ä/漢"), Ok(json!("/Ä/漢"))),
        (text("/"), Ok(json!("/"))),
        (json_of(r#"["/a","/b/c"]"#), Ok(json!(["/a", "/b/c"]))),
        (text(""), absolute()),
        (text("animal"), absolute()),
        (text("/a\0b"), refused("holds a NUL, which separates the steps of a facet")),
        (Value::Integer(1), refused("is an integer, not text")),
    ]);
    assert_stored(FieldKind::Facet, cases).await;
}

#[tokio::test]
async fn moment_is_kept_to_the_microsecond() {
    let mut cases = never();
    let range = || refused("is a date before 1677-09-21 or after 2262-04-11");
    cases.extend([
        (text("2026-11-30"), Ok(json!("2026-11-30T00:00:00Z"))),
        (text("2026-11-30 19:06:08.123456"), Ok(json!("2026-11-30T19:06:08.123456Z"))),
        (text("2026-11-30T19:06:08+01:00"), Ok(json!("2026-11-30T18:06:08Z"))),
        (text("1969-12-31T23:59:59.999999Z"), Ok(json!("1969-12-31T23:59:59.999999Z"))),
        (text("infinity"), refused("is not a date in ISO 8601")),
        (text("9999-12-31"), range()),
        (Value::Integer(0), refused("is a number, and the field has no `unit`")),
        (Value::Real(0.5), refused("is a real number, not a date")),
    ]);
    assert_stored(FieldKind::Date(DateUnit::Text), cases).await;
    let cases = vec![
        (Value::Integer(-1), Ok(json!("1969-12-31T23:59:59.999Z"))),
        (Value::Integer(i64::MAX), range()),
        (text("1970-01-01"), Ok(json!("1970-01-01T00:00:00Z"))),
    ];
    assert_stored(FieldKind::Date(DateUnit::Milliseconds), cases).await;
}

#[tokio::test]
async fn integers_keep_all_their_digits() {
    let mut cases = never();
    for number in [0, -1, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN] {
        cases.push((Value::Integer(number), Ok(json!(number))));
    }
    cases.extend([
        (json_of("9223372036854775807"), Ok(json!(i64::MAX))),
        (json_of("[3,1,3]"), Ok(json!([3, 1, 3]))),
        (
            json_of("9223372036854775808"),
            refused("is 9223372036854775808, over the greatest signed integer"),
        ),
        (json_of("99999999999999999999"), refused("is a real number, not an integer")),
        (Value::Real(1.0), refused("is a real number, not an integer")),
        (text("1"), refused("is text, not an integer")),
    ]);
    assert_stored(FieldKind::Signed, cases).await;
    let cases = vec![
        (Value::Integer(i64::MAX), Ok(json!(i64::MAX))),
        (json_of("18446744073709551615"), Ok(json!(u64::MAX))),
        (Value::Integer(-1), refused("is -1, under the least unsigned integer")),
    ];
    assert_stored(FieldKind::Unsigned, cases).await;
}

#[tokio::test]
async fn real_number_is_the_same_double_or_refused() {
    let mut cases = never();
    for number in [0.0, -0.0, 0.1, 1e300, 5e-324, f64::MAX, 2f64.powi(60)] {
        cases.push((Value::Real(number), Ok(json!(number))));
    }
    cases.extend([
        (Value::Real(f64::INFINITY), Ok(json!("Infinity"))),
        (Value::Real(f64::NEG_INFINITY), Ok(json!("-Infinity"))),
        (Value::Real(f64::NAN), refused("is not a number")),
        (Value::Integer(1 << 53), Ok(json!(9_007_199_254_740_992.0))),
        (Value::Integer((1 << 53) + 1), refused("is 9007199254740993, which no double is")),
        (json_of("0.1"), Ok(json!(0.1))),
        (
            json_of("1e400"),
            refused("holds JSON that cannot be read: number out of range at line 1 column 5"),
        ),
        (text("0.5"), refused("is text, not a number")),
    ]);
    assert_stored(FieldKind::Real, cases).await;
}

#[tokio::test]
async fn truth_is_one_of_two() {
    let mut cases = never();
    cases.extend([
        (json_of("true"), Ok(json!(true))),
        (Value::Integer(0), Ok(json!(false))),
        (Value::Integer(1), Ok(json!(true))),
        (Value::Integer(2), refused("is 2, not true or false")),
        (text("true"), refused("is text, not true or false")),
    ]);
    assert_stored(FieldKind::Boolean, cases).await;
}

#[tokio::test]
async fn json_is_kept_whole() {
    let mut cases = never();
    let texts = [
        r#"{"a":{"b":[1,"x",null,true,0.5]},"":"","date":"2026-11-30T19:06:08+01:00"}"#,
        "[1,2]",
        "7",
        r#""text""#,
        "18446744073709551615",
        r#"{"a.b":1,"ä\u0000":"\u0000"}"#,
    ];
    for text in texts {
        let same: Json = serde_json::from_str(text).expect("JSON");
        cases.push((json_of(text), Ok(same)));
    }
    cases.extend([
        (text("no JSON"), refused("is text, not JSON")),
        (Value::Integer(1), refused("is an integer, not JSON")),
    ]);
    // A list in a field of its own is shown as its items are.
    cases.retain(|(value, _)| *value != json_of("[1,2]"));
    assert_stored(FieldKind::Json(WORDS), cases).await;
}

#[tokio::test]
async fn record_without_a_required_value_is_refused() {
    let required = FieldSpec { required: true, ..field("f", FieldKind::Signed) };
    let values =
        [Value::Integer(0), Value::Null, json_of("null"), json_of("[]"), json_of("[null]")];
    let missing = || refused("is missing, and required");
    let expected = [Ok(json!(0)), missing(), missing(), missing(), missing()];
    assert_eq!(stored(required, &values).await, expected);
}

#[tokio::test]
async fn field_that_is_not_stored_is_not_shown_and_verified_all_the_same() {
    let hidden = FieldSpec { stored: false, ..field("f", FieldKind::Keyword) };
    assert_eq!(stored(hidden.clone(), &[text("secret")]).await, [Ok(Json::Null)]);
    let folder = tempfile::tempdir().expect("a folder");
    let sink = TantivySink::new(folder.path(), &spec(vec![hidden])).expect("named");
    sink.prepare().await.expect("prepared");
    sink.apply(batch(1, vec![upsert("k", 1, &[("f", text("one"))])])).await.expect("applied");
    let held = sink.verify(&[upsert("k", 1, &[("f", text("other"))])]).await;
    assert_eq!(held.expect("answered"), [false]);
}

#[tokio::test]
async fn key_over_the_limit_of_a_term_is_refused_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let fields = spec(vec![field("f", FieldKind::Signed)]);
    let sink = TantivySink::new(folder.path(), &fields).expect("named");
    sink.prepare().await.expect("prepared");
    let (fits, over) = ("k".repeat(65_530), "k".repeat(65_531));
    let one = [("f", Value::Integer(1))];
    let sent = vec![
        upsert(&fits, 1, &one),
        upsert(&over, 1, &one),
        crate::fixture::delete(&over, 2),
        upsert("k", 1, &one),
    ];
    let outcomes = sink.apply(batch(1, sent)).await.expect("answered").outcomes;
    let reason = "the key has 65531 bytes, and an index holds 65530";
    let refused = || Outcome::Refused(Code::SINK_REFUSED, reason.into());
    assert_eq!(outcomes, [Outcome::Applied, refused(), refused(), Outcome::Applied]);
    let listed = sink.list(None, 10).await.expect("listed").entries;
    let keys: Vec<&str> = listed.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["k", &fits]);
}

/// A document as large as the default bound.
#[tokio::test]
async fn large_document_is_whole() {
    let large = "word ".repeat((16 << 20) / 5);
    let found = stored(field("f", FieldKind::Text(WORDS)), &[text(&large), text("small")]).await;
    assert!(found[0] == Ok(json!(large)));
    assert_eq!(found[1], Ok(json!("small")));
}
