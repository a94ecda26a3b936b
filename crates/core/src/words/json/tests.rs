//! What is a difference in JSON, and what is none.

use proptest::prelude::*;

use super::same_json;

fn same(one: &str, other: &str) -> bool {
    let answer = same_json(one.as_bytes(), other.as_bytes());
    assert_eq!(answer, same_json(other.as_bytes(), one.as_bytes()), "{one} {other}");
    answer
}

#[test]
fn order_of_keys_and_whitespace_are_no_difference() {
    for (one, other) in [
        (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true , null ] ,\n\t\"a\" : 1 } "),
        (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
        (r#""é/\n\ud83d\ude00""#, "\"\\u00e9\\/\\u000a\u{1f600}\""),
        (r#"{"a":1,"b":0,"a":2}"#, r#"{"b":0,"a":1,"a":2}"#),
        (r#"["\ud800"]"#, r#"[ "\uD800" ]"#),
        ("[]", "[ ]"),
        ("{}", "{\r\n}"),
    ] {
        assert!(same(one, other), "{one} {other}");
    }
}

#[test]
fn everything_else_is_a_difference() {
    for (one, other) in [
        (r#"{"a":null}"#, r#"{"a":""}"#),
        (r#"{"a":null}"#, "{}"),
        (r#"{"a":""}"#, "{}"),
        ("9007199254740993", "9007199254740992"),
        ("1.0", "1.00"),
        ("1", "1.0"),
        ("0.0", "-0.0"),
        ("[1,2]", "[2,1]"),
        (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
        (r#"{"a":1,"a":1}"#, r#"{"a":1}"#),
        (r#""é""#, "\"e\u{301}\""),
        (r#""\ud800""#, r#""\udc00""#),
        (r#""\ud800""#, r#""\ufffd""#),
        (r#""1""#, "1"),
        ("[]", "{}"),
        ("[1]", "[[1]]"),
    ] {
        assert!(!same(one, other), "{one} {other}");
    }
}

#[test]
fn what_is_no_json_is_the_same_only_as_itself() {
    let broken = [
        "",
        " ",
        "{",
        "[1",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "nul",
        "1 2",
        "[1] x",
        "'a'",
        "{\"a\":1,}",
        "[,]",
        "\"\\u12g4\"",
    ];
    for text in broken {
        assert!(same(text, text));
        assert!(!same(text, &format!("{text} ")), "{text}");
        assert!(!same(text, "null"), "{text}");
    }
    assert!(!same_json(b"\xff", b" \xff"));
}

/// What is nested deeper than one would write is compared by its bytes, and nothing overflows.
#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(same(&nested(100), &format!(" {}", nested(100))));
    let deep = nested(100_000);
    assert!(same(&deep, &deep.clone()));
    assert!(!same(&deep, &format!(" {deep}")));
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[0-9]{1,3}(\\.[0-9])?",
        "\"[a-b]{0,2}\"",
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec(("[a-c]", inner), 0..4).prop_map(|all| {
                let entries: Vec<_> = all.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

proptest! {
    /// Spaces between tokens never count; two texts that a strict reader takes for different ones
    /// are.
    #[test]
    fn spaces_never_count(text in json(), other in json()) {
        let mut spaced = String::new();
        let mut quoted = false;
        for character in text.chars() {
            quoted ^= character == '"';
            spaced.push(character);
            if !quoted && !character.is_ascii_alphanumeric() && character != '-' && character != '.' {
                spaced.push(' ');
            }
        }
        prop_assert!(same(&text, &spaced));
        if text.len() != other.len() {
            prop_assert!(!same(&text, &other));
        }
    }
}
