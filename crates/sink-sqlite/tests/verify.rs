//! Documents held against the mirror: what is stored verifies, whatever else stands there does not,
//! and none of it is an error.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use truekeep_core::ports::{Batch, Body, Delivery, Mark, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

fn delivery(key: usize, names: &Arc<[Box<str>]>, values: Vec<Value>) -> Delivery {
    let rank = Rank { rules: RulesNumber::new(1), version: Version::new(1) };
    let document = Document::new(Arc::clone(names), values);
    Delivery { key: Key::new(key.to_string()), rank, body: Body::Upsert(Arc::new(document)) }
}

fn names(names: &[&str]) -> Arc<[Box<str>]> {
    names.iter().map(|name| (*name).into()).collect()
}

fn columns(names: &[&str]) -> Layout {
    let column = |name: &&str| MirrorColumn { name: (*name).into(), declared: "INTEGER".into() };
    Layout::Columns(names.iter().map(column).collect())
}

async fn written(path: &Path, layout: Layout, deliveries: &[Delivery]) -> SqliteSink {
    let spec = MirrorSpec { table: "mirror".into(), layout };
    let sink = SqliteSink::open(path, spec, Duration::from_secs(5)).await.expect("opened");
    sink.prepare().await.expect("prepared");
    let mark = Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(1),
        number: MarkNumber::new(1),
        removed: false,
    };
    sink.apply(Batch { mark, follows: BatchName::default(), deliveries: deliveries.to_vec() })
        .await
        .expect("applied");
    sink
}

/// Values that are near each other: each is itself and none of the others.
fn values() -> Vec<Value> {
    let text = |text: &str| Value::Text(text.into());
    vec![
        Value::Null,
        text(""),
        text("0"),
        text("0.0"),
        text("\0"),
        text("é"),
        text("e\u{301}"),
        text("null"),
        text("[1, 2]"),
        Value::Blob([].into()),
        Value::Blob((*b"0").into()),
        Value::InvalidText([0xff].into()),
        Value::Integer(0),
        Value::Integer((1 << 53) + 1),
        Value::Integer(1 << 53),
        Value::Real(0.0),
        Value::Real(-0.0),
        Value::Real(9_007_199_254_740_992.0),
        Value::Real(f64::INFINITY),
        Value::Real(f64::NEG_INFINITY),
    ]
}

/// NULL, an empty text and zero are three things, in either layout.
#[tokio::test]
async fn every_value_verifies_as_itself_and_as_no_other() {
    let one = names(&["a"]);
    for layout in [columns(&["a"]), Layout::Json { column: "document".into() }] {
        let folder = tempfile::tempdir().expect("a folder");
        // What JSON cannot say, or says of another value too, is left out there.
        let said = |value: &Value| match value {
            Value::InvalidText(_) | Value::Blob(_) => matches!(layout, Layout::Columns(_)),
            _ => true,
        };
        let values: Vec<Value> = values().into_iter().filter(said).collect();
        let sent: Vec<Delivery> = (0..)
            .zip(&values)
            .map(|(key, value)| delivery(key, &one, vec![value.clone()]))
            .collect();
        let path = folder.path().join("mirror.db");
        let sink = written(&path, layout.clone(), &sent).await;
        for (at, value) in values.iter().enumerate() {
            let each: Vec<Delivery> =
                (0..sent.len()).map(|key| delivery(key, &one, vec![value.clone()])).collect();
            let answers = sink.verify(&each).await.expect("answered");
            let held: Vec<usize> =
                answers.iter().enumerate().filter(|(_, held)| **held).map(|(key, _)| key).collect();
            assert_eq!(held, [at], "{value:?} in {layout:?}");
        }
    }
}

/// The order of keys and whitespace are no drift; a key that is not there, or NULL, is.
#[tokio::test]
async fn json_is_compared_by_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let two = names(&["a", "b"]);
    let value = |json: &str| vec![Value::Integer(1), Value::Json(json.into())];
    let sent = [delivery(1, &two, value(r#"{"x":1.50,"y":[]}"#))];
    let sink = written(&path, Layout::Json { column: "document".into() }, &sent).await;
    let aside = Connection::open(&path).expect("opened");
    for (stored, holds) in [
        (r#"{"a":1,"b":{"x":1.50,"y":[]}}"#, true),
        (r#" { "b" : {"y":[ ], "x":1.50}, "a" : 1 }"#, true),
        (r#"{"a":1,"b":{"x":1.5,"y":[]}}"#, false),
        (r#"{"a":1,"b":{"y":[]}}"#, false),
        (r#"{"a":1,"b":{"x":null,"y":[]}}"#, false),
        (r#"{"a":"1","b":{"x":1.50,"y":[]}}"#, false),
        (r#"{"a":1,"b":{"x":1.50,"y":[]},"c":null}"#, false),
        ("{\"a\":1,\"b\":", false),
        ("", false),
    ] {
        aside.execute("UPDATE mirror SET document = ?1", [stored]).expect("written");
        assert_eq!(sink.verify(&sent).await.expect("answered"), [holds], "{stored}");
    }
    for other in ["NULL", "x'7b7d'", "7", "CAST(x'ff' AS TEXT)"] {
        let sql = format!("UPDATE mirror SET document = {other}");
        aside.execute(&sql, []).expect("written");
        assert_eq!(sink.verify(&sent).await.expect("answered"), [false], "{other}");
    }
}

#[tokio::test]
async fn mapped_columns_are_compared_each_with_what_would_be_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let two = names(&["b", "a"]);
    let sent = [delivery(1, &two, vec![Value::Json(r#"{"x":1,"y":2}"#.into()), Value::Integer(7)])];
    let sink = written(&path, columns(&["a", "b"]), &sent).await;
    let aside = Connection::open(&path).expect("opened");
    for (set, holds) in [
        ("a = 7", true),
        ("b = '{\"y\": 2, \"x\": 1}'", true),
        ("a = 7.0", false),
        ("a = '7'", false),
        ("a = NULL", false),
        ("a = 7, b = '{\"x\":1}'", false),
        ("b = x'00'", false),
        ("b = '{\"x\":1,\"y\":2}', _rules = 2", false),
        ("_rules = 1, _version = -1", false),
        ("_version = 1", true),
    ] {
        aside.execute(&format!("UPDATE mirror SET {set}"), []).expect("written");
        assert_eq!(sink.verify(&sent).await.expect("answered"), [holds], "{set}");
    }
    // Documents that a batch would refuse.
    let unfit = [
        delivery(1, &names(&["a"]), vec![Value::Integer(7)]),
        delivery(1, &two, vec![Value::Real(f64::NAN), Value::Integer(7)]),
    ];
    assert_eq!(sink.verify(&unfit).await.expect("answered"), [false, false]);
}
