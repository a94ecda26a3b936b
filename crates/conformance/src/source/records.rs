//! Rules of records and their listing.

use super::*;

/// Documents stop at the byte limit, but one is given always.
pub async fn documents_stop_at_the_byte_limit_but_one_is_given(source: &dyn SourceUnderTest) {
    captured(source).await;
    let keys: Vec<Key> = (0..10).map(|n| key(&format!("k{n}"))).collect();
    for key in &keys {
        source.put(key.as_str(), &"x".repeat(100)).await;
    }
    for (bytes_max, least, most) in [(1, 1, 1), (350, 3, 4), (100_000, 10, 10)] {
        let loaded = source.records().load(&keys, bytes_max).await.expect("loaded");
        assert!((least..=most).contains(&loaded.len()), "{bytes_max}: {}", loaded.len());
    }
    let absent = vec![key("none"); 3];
    let loaded = source.records().load(&absent, 1).await.expect("loaded");
    assert_eq!(loaded, vec![Loaded::Absent; 3]);
}

/// Rule 32: live keys come once each in byte order with the feed's versions, whatever the page.
pub async fn live_keys_are_listed_in_byte_order(source: &dyn SourceUnderTest) {
    captured(source).await;
    let texts = ["b", "a", "B", "ä", "a b", "10", "9", "é", "z", ""];
    for text in texts {
        source.put(text, "x").await;
    }
    source.delete("z").await;
    let mut wanted: Vec<&str> = texts.into_iter().filter(|text| *text != "z").collect();
    wanted.sort_unstable();
    for limit in [1, 2, 3, 100] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = source.records().keys(after.clone(), limit).await.expect("a page");
            assert!(page.keys.len() <= limit as usize);
            listed.extend(page.keys);
            let Some(next) = page.next else { break };
            assert!(after.as_ref() < Some(&next), "a page goes on");
            assert!(listed.last().is_none_or(|(key, _)| *key <= next), "after what was listed");
            after = Some(next);
        }
        let keys: Vec<&str> = listed.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, wanted, "limit {limit}");
        let feed = everything(source, &Place::START).await;
        for (key, version) in &listed {
            assert_eq!(*version, feed[key].version);
        }
    }
}

/// Any text is a key: composed and decomposed forms, trailing spaces, cases, quotes, the empty one.
pub async fn any_text_is_a_key(source: &dyn SourceUnderTest) {
    captured(source).await;
    let texts = [
        "",
        " ",
        "a",
        "a ",
        "A",
        "caf\u{e9}",
        "cafe\u{301}",
        "'",
        "\"",
        "\\",
        "%",
        "[\"a\"]",
        "t:a",
        "\u{1f600}",
        "\u{feff}",
        "\n",
        "NULL",
        "00",
        "1.0",
        "東京",
        "ﷺ",
    ];
    for text in texts {
        source.put(text, text).await;
    }
    let feed = everything(source, &Place::START).await;
    assert_eq!(feed.len(), texts.len());
    for text in texts {
        assert_eq!(load(source, text).await.as_deref(), Some(text));
    }
    let keys = texts.map(key);
    let canonical = source.records().canonical(&keys).await.expect("answered");
    assert_eq!(canonical, vec![true; keys.len()]);
    source.delete("a").await;
    let gone = source.records().canonical(&[key("a"), key("never")]).await.expect("answered");
    assert_eq!(gone, [true, true], "it is no question of what is there");
}
