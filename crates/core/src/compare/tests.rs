//! The merge against a plain set difference.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{RulesNumber, Version};

fn rank(version: u64) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version) }
}

fn by_map(source: &BTreeMap<String, u64>, sink: &BTreeMap<String, u64>) -> Vec<Difference> {
    let mut keys: Vec<&String> = source.keys().chain(sink.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter_map(|text| {
            let key = Key::new(text.as_str());
            match (source.get(text), sink.get(text)) {
                (Some(a), None) => Some(Difference::Missing(key, rank(*a))),
                (None, Some(b)) => Some(Difference::Orphan(key, rank(*b))),
                (Some(a), Some(b)) if b < a => Some(Difference::Stale(key, rank(*a), rank(*b))),
                (Some(a), Some(b)) if b > a => Some(Difference::Ahead(key, rank(*a), rank(*b))),
                _ => None,
            }
        })
        .collect()
}

fn by_merge(
    source: &BTreeMap<String, u64>,
    sink: &BTreeMap<String, u64>,
    page: usize,
) -> Vec<Difference> {
    let pages = |side: &BTreeMap<String, u64>| {
        let all: Vec<_> = side.iter().map(|(k, v)| (Key::new(k.as_str()), rank(*v))).collect();
        let mut pages: Vec<Vec<(Key, Rank)>> = all.chunks(page).map(<[_]>::to_vec).collect();
        pages.push(Vec::new());
        pages.into_iter()
    };
    let (mut sources, mut sinks) = (pages(source), pages(sink));
    let (mut compare, mut found) = (Compare::keeping_equal(), Vec::new());
    loop {
        match compare.advance() {
            Next::Done => {
                let same = |(key, version): (&String, &u64)| {
                    let kept = (Key::new(key.as_str()), rank(*version));
                    (sink.get(key) == Some(version)).then_some(kept)
                };
                let equal: Vec<_> = source.iter().filter_map(same).collect();
                assert_eq!(equal.len() as u64, compare.equal());
                assert_eq!(compare.take_equal(), equal);
                return found;
            }
            Next::Found(difference) => found.push(difference),
            Next::Need(side) => {
                let pages = if side == Side::Sink { &mut sinks } else { &mut sources };
                let page = pages.next().expect("asked for no more than there is");
                let end = page.is_empty();
                compare.feed(side, page, end).expect("in order");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_merge_finds_what_a_map_finds(
        source in prop::collection::btree_map(".{0,3}", 1..4u64, 0..40),
        sink in prop::collection::btree_map(".{0,3}", 1..4u64, 0..40),
        page in 1..9usize,
    ) {
        prop_assert_eq!(by_merge(&source, &sink, page), by_map(&source, &sink));
    }
}

#[test]
fn a_listing_out_of_order_is_refused() {
    let mut compare = Compare::default();
    let entry = |text: &str| (Key::new(text), rank(1));
    for pair in [["b", "a"], ["a", "a"]] {
        let mut fresh = Compare::default();
        assert!(fresh.feed(Side::Sink, pair.map(entry), false).is_err());
    }
    compare.feed(Side::Sink, [entry("b")], false).expect("in order");
    assert!(compare.feed(Side::Sink, [entry("a")], true).is_err(), "across pages too");
}
