//! Names are injective, and ours are told from everybody else's.

use super::*;

#[test]
fn no_two_tables_share_a_feed() {
    let long = "a".repeat(90);
    let longer = "a".repeat(91);
    let tables = [
        "a",
        "a_b",
        "a.b",
        "a b",
        "a\"b",
        "a$b",
        "a$2eb",
        "ä",
        "a-b",
        "",
        "truekeep_feed_a",
        &long,
        &longer,
    ];
    let mut stems: Vec<String> =
        tables.iter().map(|table| FeedNames::of(table).stem().to_owned()).collect();
    assert!(stems.iter().all(|stem| stem.len() <= STEM_BYTES_MAX));
    stems.sort();
    stems.dedup();
    assert_eq!(stems.len(), tables.len());
    assert_eq!(FeedNames::of("Items"), FeedNames::of("iTEMS"));
}

#[test]
fn our_triggers_are_told_from_others() {
    let names = FeedNames::of("a");
    for kind in [
        "insert",
        "rekey",
        "replace0_insert",
        "child_01234567_update",
        "parent_01234567_replace1_update",
        "seal",
    ] {
        assert_eq!(names.kind(&names.trigger(kind)), Some(kind));
    }
    for other in
        ["truekeep_insert_b", "truekeep_insert_insert_a", "insert_a", "truekeep_insert_b_a"]
    {
        assert_eq!(names.kind(other), None, "{other}");
    }
    assert_eq!(FeedNames::of("insert_a").kind("truekeep_insert_insert_a"), Some("insert"));
}

#[test]
fn quotes_in_names_are_doubled() {
    assert_eq!(quote("a\"b"), "\"a\"\"b\"");
    assert_eq!(literal("it's"), "'it''s'");
    assert_eq!(from_hex(to_hex(&[0, 171, 255]).as_bytes()), Some(vec![0, 171, 255]));
    assert_eq!((from_hex(b"a0"), from_hex(b"0")), (None, None));
}
