//! A sink's own encoding of keys must keep different keys different.

use std::collections::BTreeMap;

use truekeep_core::Key;

use super::SinkUnderTest;
use super::batches::{delete, listed, rank, send, upsert};

/// Keys that collations, trimming, normal forms, numbers, escapes and C strings confuse.
fn unusual() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "a",
        "a ",
        " a",
        "a\0",
        "a\0b",
        "\0",
        "A",
        "ａ",
        "é",
        "e\u{301}",
        "ß",
        "ss",
        "SS",
        "ı",
        "i",
        "I",
        "İ",
        "1",
        "01",
        "1.0",
        "1e0",
        "+1",
        "-0",
        "0",
        "9007199254740993",
        "NULL",
        "null",
        "'",
        "\"",
        "\\",
        "%",
        "_",
        "*",
        "?",
        "/",
        "a/b",
        "a%2Fb",
        "..",
        "\n",
        "\r\n",
        "\t",
        "[1,\"11\"]",
        "[11,\"1\"]",
        "\u{7f}",
        "\u{200b}",
        "\u{feff}",
        "\u{fffd}",
        "\u{ffff}",
        "\u{e000}",
        "\u{10000}",
        "\u{10ffff}",
        "مرحبا",
        "漢字",
        "🏳\u{fe0f}\u{200d}🌈",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(2_000));
    texts.push("x".repeat(2_001));
    texts
}

/// X22: every Unicode text is a key of its own, and is listed in the order of its bytes.
pub async fn unusual_keys_stay_distinct(subject: &mut dyn SinkUnderTest) {
    let texts = unusual();
    let all = || texts.iter().map(|text| upsert(text, rank(1, 1), &format!("body of {text:?}")));
    send(subject, 1, all().collect()).await;
    let mut expected: BTreeMap<Key, String> =
        texts.iter().map(|text| (Key::new(text.as_str()), format!("body of {text:?}"))).collect();
    assert_eq!(expected.len(), texts.len());
    assert_eq!(subject.contents().await, expected);
    // Each can be found again, and none of the others goes with it.
    let (odd, even): (Vec<_>, Vec<_>) = texts.iter().enumerate().partition(|(i, _)| i % 2 == 1);
    let deletes = odd.iter().map(|(_, text)| delete(text, rank(1, 2))).collect();
    let updates =
        even.iter().map(|(_, text)| upsert(text, rank(1, 2), &format!("{text:?}"))).collect();
    send(subject, 2, deletes).await;
    send(subject, 3, updates).await;
    expected =
        even.iter().map(|(_, text)| (Key::new(text.as_str()), format!("{text:?}"))).collect();
    assert_eq!(subject.contents().await, expected);
    let keys: Vec<Key> =
        listed(&*subject.sink(), 4).await.into_iter().map(|entry| entry.key).collect();
    if subject.sink().capabilities().ordered_listing {
        assert!(keys.iter().eq(expected.keys()), "{keys:?}");
    }
}
