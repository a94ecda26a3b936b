//! Every value arrives as the source has it, and the mirror agrees with the reference sink.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use truekeep_core::ports::{Batch, Body, Delivery, Entry, Listing, Mark, Outcome, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_sink_memory::MemorySink;
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

fn batch(number: u64, deliveries: Vec<Delivery>) -> Batch {
    let mark = Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(1),
        number: MarkNumber::new(number),
        removed: false,
    };
    Batch { mark, follows: BatchName::default(), deliveries }
}

fn delivery(key: u64, version: u64, body: Body) -> Delivery {
    let rank = Rank { rules: RulesNumber::new(1), version: Version::new(version) };
    Delivery { key: Key::new(key.to_string()), rank, body }
}

fn upsert(key: u64, version: u64, names: &Arc<[Box<str>]>, values: Vec<Value>) -> Delivery {
    let document = Document::new(Arc::clone(names), values);
    delivery(key, version, Body::Upsert(Arc::new(document)))
}

fn names(names: &[&str]) -> Arc<[Box<str>]> {
    names.iter().map(|name| (*name).into()).collect()
}

/// Declares each column as the type that would convert most.
fn mapped(columns: &[&str]) -> MirrorSpec {
    let declared = ["INTEGER", "TEXT", "REAL", "NUMERIC"].into_iter().cycle();
    let columns = columns
        .iter()
        .zip(declared)
        .map(|(name, declared)| MirrorColumn { name: (*name).into(), declared: declared.into() });
    MirrorSpec { table: "mirror".into(), layout: Layout::Columns(columns.collect()) }
}

fn json(column: &str) -> MirrorSpec {
    MirrorSpec { table: "mirror".into(), layout: Layout::Json { column: column.into() } }
}

async fn prepared(path: &Path, spec: MirrorSpec) -> SqliteSink {
    let sink = SqliteSink::open(path, spec, Duration::from_secs(5)).await.expect("opened");
    sink.prepare().await.expect("prepared");
    sink
}

/// Values that a column's type, a C string, a double or JSON would change.
fn values() -> Vec<Value> {
    let text = |text: &str| Value::Text(text.into());
    let mut values = vec![
        Value::Null,
        text(""),
        text("007"),
        text("1.0"),
        text("1e3"),
        text(" 12 "),
        text("9007199254740993"),
        text("x'00'"),
        text("a\0b"),
        text("\0"),
        text("é"),
        text("e\u{301}"),
        text("\u{10ffff}"),
        Value::InvalidText([0xff, 0, 0xc3].into()),
        Value::Blob([].into()),
        Value::Blob([0, 1, 0xff].into()),
        Value::Blob((*b"text").into()),
        Value::Json(r#"{"a":1,"a":1.50, "b":[ ]}"#.into()),
    ];
    let integers = [0, -1, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN];
    values.extend(integers.map(Value::Integer));
    let reals = [
        0.0,
        -0.0,
        1.0,
        0.1,
        1e300,
        5e-324,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        2f64.powi(60),
    ];
    values.extend(reals.map(Value::Real));
    values
}

/// A stored value as a source would have it; JSON is stored as text.
fn stored(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::InvalidText(bytes.into()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.into()),
    }
}

fn as_stored(value: &Value) -> Value {
    match value {
        Value::Json(json) => Value::Text(json.clone()),
        other => other.clone(),
    }
}

#[tokio::test]
async fn mapped_values_are_stored_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let columns = ["a", "b", "c", "d"];
    let sink = prepared(&path, mapped(&columns)).await;
    let values = values();
    let deliveries = (0..)
        .zip(&values)
        .map(|(key, value)| upsert(key, 1, &names(&columns), vec![value.clone(); columns.len()]));
    let applied = sink.apply(batch(1, deliveries.collect())).await.expect("applied");
    assert!(applied.outcomes.iter().all(|outcome| *outcome == Outcome::Applied), "{applied:?}");
    let db = Connection::open(&path).expect("opened");
    let mut read = db.prepare("SELECT a, b, c, d FROM mirror WHERE _key = ?1").expect("prepared");
    for (key, value) in values.iter().enumerate() {
        for column in 0..columns.len() {
            let found = read
                .query_row([key.to_string()], |row| Ok(stored(row.get_ref(column)?)))
                .expect("read");
            assert_eq!(found, as_stored(value));
        }
    }
}

#[tokio::test]
async fn what_is_not_a_number_is_refused_and_not_stored_as_null() {
    let folder = tempfile::tempdir().expect("a folder");
    let sink = prepared(&folder.path().join("mirror.db"), mapped(&["a", "b"])).await;
    let values = vec![Value::Integer(1), Value::Real(f64::NAN)];
    let sent = vec![upsert(1, 1, &names(&["a", "b"]), values)];
    let outcomes = sink.apply(batch(1, sent)).await.expect("answered").outcomes;
    assert!(
        matches!(&outcomes[..], [Outcome::Refused(_, reason)] if reason == "`b` is not a number"),
        "{outcomes:?}"
    );
}

async fn documents(spec: MirrorSpec, sent: Vec<Delivery>) -> (Vec<Outcome>, BTreeMap<u64, String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let sink = prepared(&path, spec).await;
    let outcomes = sink.apply(batch(1, sent)).await.expect("answered").outcomes;
    let db = Connection::open(&path).expect("opened");
    let mut read =
        db.prepare("SELECT CAST(_key AS INTEGER), document FROM mirror").expect("prepared");
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    (outcomes, rows.collect::<Result<_, _>>().expect("read"))
}

#[tokio::test]
async fn document_is_an_object_in_the_order_of_the_projection() {
    let five = names(&["z", "a", "q\"uote", "", "json"]);
    let values = vec![
        Value::Integer(i64::MAX),
        Value::Null,
        Value::Text("\0é".into()),
        Value::Real(-0.0),
        Value::Json(r#"{"b":1,"b":2}"#.into()),
    ];
    let none = names(&[]);
    let sent = vec![upsert(1, 1, &five, values), upsert(2, 1, &none, vec![])];
    let (outcomes, found) = documents(json("document"), sent).await;
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Applied]);
    let object =
        r#"{"z":9223372036854775807,"a":null,"q\"uote":"\u0000é","":-0.0,"json":{"b":1,"b":2}}"#;
    assert_eq!(found, BTreeMap::from([(1, object.into()), (2, "{}".into())]));
}

#[tokio::test]
async fn document_that_is_json_already_is_the_document() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let whole = names(&["document"]);
    let sent = vec![
        upsert(1, 1, &whole, vec![Value::Json(deep.clone().into())]),
        upsert(2, 1, &whole, vec![Value::Text("no JSON".into())]),
        upsert(3, 1, &names(&["other"]), vec![Value::Json("[1]".into())]),
        upsert(4, 1, &names(&["other"]), vec![Value::Blob([1].into())]),
    ];
    let (_, found) = documents(json("document"), sent).await;
    let expected = [
        (1, deep),
        (2, r#"{"document":"no JSON"}"#.into()),
        (3, r#"{"other":[1]}"#.into()),
        (4, r#"{"other":"AQ=="}"#.into()),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}

#[tokio::test]
async fn value_that_json_cannot_say_is_refused_by_name() {
    let two = names(&["fine", "broken"]);
    let with = |key, value| upsert(key, 1, &two, vec![Value::Null, value]);
    let sent = vec![
        with(1, Value::InvalidText([0xff].into())),
        with(2, Value::Real(f64::NAN)),
        with(3, Value::Real(f64::INFINITY)),
    ];
    let (outcomes, found) = documents(json("document"), sent).await;
    let reasons: Vec<Option<&str>> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Refused(_, reason) => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    let text = Some("`broken` holds text that is not UTF-8");
    assert_eq!(reasons, [text, Some("`broken` is not a number"), None]);
    assert_eq!(found, BTreeMap::from([(3, r#"{"fine":null,"broken":9.0e+999}"#.into())]));
}

/// A document as large as the default bound, and its neighbours' ranks beside it.
#[tokio::test]
async fn large_document_is_whole() {
    let large = "x".repeat(16 << 20);
    let name = names(&["body"]);
    let sent = vec![upsert(1, 1, &name, vec![Value::Text(large.clone().into())])];
    let (outcomes, found) = documents(json("document"), sent).await;
    assert_eq!(outcomes, [Outcome::Applied]);
    assert!(found[&1] == format!("{{\"body\":\"{large}\"}}"));
}

/// The generator SplitMix64 (Steele, Lea, Flood, 2014).
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % bound
}

/// Batches with few keys and few versions, so that every verdict happens, also for one owner's
/// batch of an older fence, and for one that does not follow the last that is held; some keys
/// stand twice, which no caller should do.
fn random_batch(state: &mut u64, round: u64, held: u64, columns: &Arc<[Box<str>]>) -> Batch {
    let values = values();
    let mut sent = Vec::new();
    for key in (0..12).chain(0..4) {
        let version = 1 + draw(state, 9);
        match draw(state, 4) {
            0 => sent.push(delivery(key, version, Body::Delete)),
            1 | 2 => {
                let value =
                    || values[usize::try_from(draw(&mut *state, 34)).expect("an index")].clone();
                let values = std::iter::repeat_with(value).take(columns.len()).collect();
                sent.push(upsert(key, version, columns, values));
            }
            _ => {}
        }
    }
    let mut batch = batch(held + draw(state, 3), sent);
    batch.mark.fence = Fence::new(1 + round / 40 - draw(state, 2).min(round / 40));
    batch
}

async fn entries(sink: &dyn Sink) -> Vec<Entry> {
    let Listing { entries, end } = sink.list(None, 1_000).await.expect("listed");
    assert!(end);
    entries
}

#[tokio::test]
async fn mirror_equals_the_reference_after_every_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let columns = ["a", "b"];
    let (mirror, reference) = (prepared(&path, mapped(&columns)).await, MemorySink::new());
    let db = Connection::open(&path).expect("opened");
    let mut read = db.prepare("SELECT _key, a, b FROM mirror").expect("prepared");
    let mut buried = db
        .prepare("SELECT key, rules, version FROM mirror__truekeep_tombstones")
        .expect("prepared");
    let mut state = 1;
    let columns = names(&columns);
    for round in 1..200 {
        let held = reference.mark().await.expect("read").map_or(0, |mark| mark.number.get());
        let batch = random_batch(&mut state, round, held, &columns);
        let ours = mirror.apply(batch.clone()).await.map_err(|error| error.code);
        let theirs = reference.apply(batch).await.map_err(|error| error.code);
        assert_eq!(ours, theirs);
        assert_eq!(mirror.mark().await.expect("read"), reference.mark().await.expect("read"));
        assert_eq!(entries(&mirror).await, entries(&reference).await);
        let ours: BTreeMap<Key, Vec<Value>> = read
            .query_map([], |row| {
                let values = vec![stored(row.get_ref(1)?), stored(row.get_ref(2)?)];
                Ok((Key::new(row.get::<_, String>(0)?), values))
            })
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("read");
        let theirs: BTreeMap<Key, Vec<Value>> = reference
            .contents()
            .into_iter()
            .map(|(key, held)| (key, held.document.values().iter().map(as_stored).collect()))
            .collect();
        assert_eq!(ours, theirs);
        let ours: BTreeMap<Key, Rank> = buried
            .query_map([], |row| {
                let (rules, version) = (RulesNumber::new(row.get(1)?), Version::new(row.get(2)?));
                Ok((Key::new(row.get::<_, String>(0)?), Rank { rules, version }))
            })
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("read");
        assert_eq!(ours, reference.tombstones());
    }
}
