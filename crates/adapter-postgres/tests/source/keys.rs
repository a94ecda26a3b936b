//! Keys of every type: one text per equality class, whatever the session, and back.

use truekeep_adapter_postgres::{PostgresSource, Projection, RelationSpec};
use truekeep_core::ports::{Capture, Feed, Loaded};
use truekeep_core::{Key, Place};

use crate::fixture::{App, Asked, consumer};

/// Types, with literals of values that are equal to none of the others, and their texts.
const TYPES: &[(&str, &[(&str, &str)])] = &[
    ("int2", &[("-32768", "-32768"), ("0", "0"), ("7", "7")]),
    (
        "int8",
        &[
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740993", "9007199254740993"),
        ],
    ),
    (
        "numeric",
        &[
            ("1.50", "1.5"),
            ("100", "100"),
            ("0.00", "0"),
            ("-0.0001000", "-0.0001"),
            ("NaN", "NaN"),
            (
                "12345678901234567890123456789012345678.5",
                "12345678901234567890123456789012345678.5",
            ),
            ("1e3", "1000"),
        ],
    ),
    ("numeric(10, 2)", &[("1.5", "1.5"), ("2.25", "2.25")]),
    (
        "float8",
        &[
            ("-0", "0"),
            ("0.1", "0.1"),
            ("1e300", "1e+300"),
            ("NaN", "NaN"),
            ("Infinity", "Infinity"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("5e-324", "5e-324"),
        ],
    ),
    ("float4", &[("0.1", "0.1"), ("-0", "0")]),
    (
        "text",
        &[
            ("", ""),
            (" ", " "),
            ("NULL", "NULL"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("cafe\u{301}", "cafe\u{301}"),
            ("A", "A"),
            ("a", "a"),
            ("a ", "a "),
        ],
    ),
    (
        "text COLLATE \"en-x-icu\"",
        &[
            ("ä", "ä"),
            ("a", "a"),
            ("Z", "Z"),
            ("\u{1f600}", "\u{1f600}"),
            ("\\", "\\"),
            ("\"", "\""),
        ],
    ),
    ("varchar(5)", &[("ab", "ab"), ("ab ", "ab ")]),
    ("char(5)", &[("ab", "ab"), ("", ""), (" a", " a")]),
    ("name", &[("n", "n")]),
    ("\"char\"", &[("c", "c")]),
    ("bool", &[("t", "true"), ("f", "false")]),
    ("uuid", &[("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    ("bytea", &[("\\x", ""), ("\\xDEAD00", "dead00")]),
    (
        "date",
        &[
            ("2026-01-02", "2026-01-02"),
            ("0044-03-15 BC", "0044-03-15 BC"),
            ("infinity", "infinity"),
            ("12026-01-02", "12026-01-02"),
        ],
    ),
    ("time", &[("01:02:03.5", "01:02:03.5"), ("24:00", "24:00:00")]),
    ("timetz", &[("01:02:03+02", "01:02:03+02"), ("00:02:03+01", "00:02:03+01")]),
    (
        "timestamp",
        &[
            ("2026-01-02 03:04:05.1", "2026-01-02T03:04:05.100000"),
            ("-infinity", "-infinity"),
            ("0044-03-15 01:00 BC", "0044-03-15T01:00:00.000000 BC"),
        ],
    ),
    (
        "timestamptz",
        &[
            ("2026-01-02 03:04:05.000006+02", "2026-01-02T01:04:05.000006Z"),
            ("0044-03-15 01:00+00 BC", "0044-03-15T01:00:00.000000Z BC"),
            ("infinity", "infinity"),
        ],
    ),
    (
        "interval",
        &[
            ("1 day", "86400000000"),
            ("-1 mon +3 days", "-2332800000000"),
            ("0.000001 s", "1"),
            ("0", "0"),
            ("100000 years", "3110400000000000000"),
        ],
    ),
    ("inet", &[("1.2.3.4", "1.2.3.4/32"), ("1.2.3.4/8", "1.2.3.4/8"), ("::1", "::1/128")]),
    ("cidr", &[("10.0.0.0/8", "10.0.0.0/8")]),
    ("macaddr", &[("08002B:010203", "08:00:2b:01:02:03")]),
    ("bit(3)", &[("101", "101")]),
    ("varbit", &[("10", "10"), ("100", "100")]),
    ("oid", &[("4294967295", "4294967295")]),
    ("mood", &[("sad", "sad"), ("Happy's", "Happy's")]),
    ("posint", &[("5", "5")]),
    ("posposint", &[("6", "6")]),
];

const MADE: &str =
    "CREATE TYPE mood AS ENUM ('sad', 'Happy''s'); CREATE DOMAIN posint AS int8 CHECK (value > 0);
    CREATE DOMAIN posposint AS posint";

async fn texts(source: &PostgresSource) -> Vec<String> {
    source
        .everything(&Place::START)
        .await
        .into_iter()
        .filter(|(_, c)| !c.deleted)
        .map(|(key, _)| key)
        .collect()
}

/// X22: each type has its text, by triggers and by the fill, in odd sessions; and the text finds its row.
#[tokio::test]
async fn every_type_has_one_text_per_value() {
    let Some(mut app) = App::new(MADE).await else { return };
    for odd in [
        "TimeZone = 'Asia/Kathmandu'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'sql_standard'",
        "bytea_output = 'escape'",
        "extra_float_digits = -5",
    ] {
        app.run(&format!("SET {odd}")).await;
    }
    for (nth, (of, values)) in TYPES.iter().enumerate() {
        let composite = nth % 2 == 1;
        let key = if composite { "PRIMARY KEY (n, id)" } else { "PRIMARY KEY (id)" };
        app.run(&format!(
            "CREATE TABLE t (n int NOT NULL DEFAULT 1, id {of} NOT NULL, v text, {key})"
        ))
        .await;
        let half = values.len() / 2;
        let insert = |values: &[(&str, &str)]| {
            let rows: Vec<String> = values
                .iter()
                .map(|(v, _)| {
                    format!("('{}', 'of {}')", v.replace('\'', "''"), v.replace('\'', "''"))
                })
                .collect();
            if rows.is_empty() {
                "SELECT 1".into()
            } else {
                format!("INSERT INTO t (id, v) VALUES {}", rows.join(", "))
            }
        };
        // Half by the fill, half by the triggers.
        app.run(&insert(&values[..half])).await;
        let document = Projection::Columns(vec!["v".into()]);
        let source = app.source(RelationSpec { document, ..RelationSpec::of("t") }).await;
        app.run(&insert(&values[half..])).await;
        let bare = ["int2", "int8", "oid", "posint", "posposint"].contains(of);
        let text = |text: &str| match (composite, bare) {
            (false, _) => text.to_owned(),
            (true, true) => format!("[1,{text}]"),
            (true, false) => format!("[1,{}]", serde_json::to_string(text).expect("json")),
        };
        let mut wanted: Vec<String> = values.iter().map(|(_, wanted)| text(wanted)).collect();
        wanted.sort();
        assert_eq!(texts(&source).await, wanted, "{of}");
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{of}");
        for (value, wanted) in *values {
            let Loaded::Live(document) = source.one(&text(wanted)).await else {
                panic!("{of}: {wanted} is not found")
            };
            assert_eq!(
                format!("{:?}", document.values()[0]),
                format!("Text({:?})", format!("of {value}")),
                "{of}"
            );
        }
        // A repair finds them too, and a deletion buries them.
        let keys: Vec<Key> = wanted.iter().map(|key| Key::new(key.as_str())).collect();
        let numbered = source.number(&keys).await.expect("numbered");
        assert!(numbered.foreign.is_empty() && numbered.newest.is_some(), "{of}");
        app.run("DELETE FROM t").await;
        assert_eq!(texts(&source).await, Vec::<String>::new(), "{of}");
        source.remove().await.expect("removed");
        app.run("DROP TABLE t").await;
    }
}

/// X22: a key that is only spelt anew is the same key, and has one document.
#[tokio::test]
async fn equal_keys_have_one_text() {
    let Some(mut app) = App::new("CREATE EXTENSION IF NOT EXISTS citext").await else { return };
    for (of, one, other, text) in [
        ("numeric", "1.0", "1.00", "1"),
        ("float8", "0", "-0", "0"),
        ("interval", "1 day", "24:00:00", "86400000000"),
        ("interval", "1 mon", "30 days", "2592000000000"),
        ("char(4)", "a", "a   ", "a"),
        ("citext", "ABC", "abc", "abc"),
    ] {
        app.run(&format!("CREATE TABLE t (id {of} PRIMARY KEY, v int)")).await;
        let source = app.source(RelationSpec { normal_form: true, ..RelationSpec::of("t") }).await;
        app.run(&format!("INSERT INTO t VALUES ('{one}', 1)")).await;
        let before = source.everything(&Place::START).await[text].version;
        app.run(&format!("UPDATE t SET id = '{other}', v = 2")).await;
        assert_eq!(texts(&source).await, [text], "{of}");
        assert!(source.everything(&Place::START).await[text].version > before);
        assert!(matches!(source.one(text).await, Loaded::Live(_)), "{of}");
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{of}");
        source.remove().await.expect("removed");
        app.run("DROP TABLE t").await;
    }
}

/// X62: what is of another type, or another text of a value, is nobody's key: nothing fails, nothing
/// is buried.
#[tokio::test]
async fn foreign_keys_are_told_from_ours() {
    let Some(mut app) = App::new("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE c (a int, b text, PRIMARY KEY (a, b))").await else { return };
    app.run("INSERT INTO t VALUES (7, 'x'), (8, 'y')").await;
    let source = app.source(RelationSpec::of("t")).await;
    let keys: Vec<Key> =
        ["7", "007", "abc", "99999999999", "", "8", " 7", "9"].into_iter().map(Key::new).collect();
    let before = source.everything(&Place::START).await;
    let numbered = source.number(&keys).await.expect("numbered");
    let mut foreign: Vec<&str> = numbered.foreign.iter().map(Key::as_str).collect();
    foreign.sort_unstable();
    assert_eq!(foreign, ["", " 7", "007", "99999999999", "abc"]);
    let after = source.everything(&Place::START).await;
    assert_eq!(after.len(), 3);
    assert!(after["9"].deleted && after["7"].version > before["7"].version);
    for (key, live) in [("7", true), ("007", false), ("abc", false), ("9", false)] {
        assert_eq!(matches!(source.one(key).await, Loaded::Live(_)), live, "{key}");
    }
    let loaded =
        truekeep_core::ports::Records::load(&source, &keys, usize::MAX).await.expect("loaded");
    let live: Vec<bool> = loaded.iter().map(|one| matches!(one, Loaded::Live(_))).collect();
    assert_eq!(live, [true, false, false, false, false, true, false, false]);

    let source = app.source(RelationSpec::of("c")).await;
    app.run("INSERT INTO c VALUES (1, '11'), (11, '1'), (1, 'q\"\\ü' || chr(10))").await;
    assert_eq!(texts(&source).await, ["[1,\"11\"]", "[1,\"q\\\"\\\\ü\\n\"]", "[11,\"1\"]"]);
    for key in ["[1,\"11\"]", "[1,\"q\\\"\\\\ü\\n\"]"] {
        assert!(matches!(source.one(key).await, Loaded::Live(_)), "{key}");
    }
    for key in ["[1, \"11\"]", "[\"1\",\"11\"]", "[1,\"11\",2]", "[1]", "{}", "[1,null]"] {
        assert_eq!(source.one(key).await, Loaded::Absent, "{key}");
        assert_eq!(
            source.number(&[Key::new(key)]).await.expect("numbered").foreign.len(),
            1,
            "{key}"
        );
    }
}

/// A column that may become NULL later never makes the application's write fail, and is told.
#[tokio::test]
async fn a_key_that_may_be_null_later_is_told_and_does_no_harm() {
    let Some(mut app) = App::new("CREATE TABLE t (id int NOT NULL UNIQUE, v text)").await else {
        return;
    };
    let source = app.source(RelationSpec { key: vec!["id".into()], ..RelationSpec::of("t") }).await;
    app.run("ALTER TABLE t ALTER id DROP NOT NULL; INSERT INTO t VALUES (NULL, 'x'), (1, 'y')")
        .await;
    let told = source.changes(&consumer("a"), &Place::START, 10).await.expect_err("told");
    assert_eq!(told.code.as_str(), "KEY_REFUSED");
}
