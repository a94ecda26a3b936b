//! In which order the two sides are read, and how much is held of them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use truekeep_core::Version;
use truekeep_core::compare::Owns;
use truekeep_core::ports::{
    Applied, Batch, Capabilities, Confirmation, Delivery, KeyPage, Listing, Loaded, Mark,
    MockRecords, Receipt, Sink,
};
use truekeep_sink_memory::MemorySink;

use super::super::listing::Origin;
use super::*;

const RULES: RulesNumber = RulesNumber::new(1);

fn listed(sink: &dyn Sink, limit: u32) -> Listed<'_> {
    Listed::new(Origin::Sink(sink), Owns::All, limit)
}

fn key(text: &str) -> Key {
    Key::new(text)
}

/// Tells which side was asked for what, in order.
#[derive(Debug, Default)]
struct Witness(Mutex<Vec<String>>);

impl Witness {
    fn saw(&self, what: String) {
        self.0.lock().expect("sound").push(what);
    }
}

/// Lists two keys at a time.
#[derive(Debug)]
struct Pages(Vec<&'static str>, Arc<Witness>);

#[async_trait]
impl Sink for Pages {
    fn capabilities(&self) -> Capabilities {
        unreachable!("a merge does not ask")
    }
    async fn prepare(&self) -> Result<(), PortError> {
        unreachable!("a merge writes nothing")
    }
    async fn mark(&self) -> Result<Option<Mark>, PortError> {
        unreachable!("a merge does not ask")
    }
    async fn apply(&self, _: Batch) -> Result<Applied, PortError> {
        unreachable!("a merge writes nothing")
    }
    async fn confirm(&self, _: &Receipt) -> Result<Confirmation, PortError> {
        unreachable!("a merge writes nothing")
    }
    async fn list(&self, after: Option<Key>, _: u32) -> Result<Listing, PortError> {
        let rest = self.0.iter().filter(|name| after.as_ref().is_none_or(|a| **name > a.as_str()));
        let names: Vec<_> = rest.clone().take(2).copied().collect();
        self.1.saw(format!("sink {}", names.join("")));
        let rank = Some(Rank { rules: RULES, version: Version::new(1) });
        let entry = |name: &&str| truekeep_core::ports::Entry { key: key(name), rank };
        Ok(Listing { entries: names.iter().map(entry).collect(), end: rest.count() <= 2 })
    }
    async fn verify(&self, _: &[Delivery]) -> Result<Vec<bool>, PortError> {
        unreachable!("a merge does not ask")
    }
}

fn records(names: &'static [&'static str], witness: &Arc<Witness>) -> MockRecords {
    let witness = Arc::clone(witness);
    let mut records = MockRecords::new();
    records.expect_load().returning(|_, _| Ok(vec![Loaded::Absent]));
    records.expect_keys().returning(move |after, _| {
        let rest = names.iter().filter(|name| after.as_ref().is_none_or(|a| **name > a.as_str()));
        let page: Vec<_> = rest.clone().take(3).copied().collect();
        witness.saw(format!("source {}", page.join("")));
        let keys = page.iter().map(|name| (key(name), Version::new(1))).collect();
        let next = page.last().filter(|_| rest.count() > 3).map(|name| key(name));
        Ok(KeyPage { keys, next })
    });
    records
}

#[tokio::test]
async fn each_range_is_listed_in_the_sink_before_it_is_read_in_the_source() {
    let witness = Arc::new(Witness::default());
    let sink = Pages(vec!["b", "c", "f"], Arc::clone(&witness));
    let records = records(&["a", "b", "c", "d", "e", "f", "g"], &witness);
    let mut merge = Merge::new(listed(&sink, 10), &records, RULES, false, None, 10);
    let (mut found, mut equal) = (Vec::new(), 0);
    while let Some(merged) = merge.advance().await.expect("ordered") {
        found.extend(merged.differences);
        equal += merged.equal;
    }
    let keys: String = found.iter().map(|difference| difference.key().as_str()).collect();
    assert_eq!(keys, "adeg");
    assert_eq!(equal, 3);
    let seen = witness.0.lock().expect("sound").join(", ");
    assert_eq!(seen, "sink bc, source abc, sink f, source def, source g");
}

#[tokio::test]
async fn memory_holds_a_page_of_differences_however_sparse_the_sink_is() {
    let witness = Arc::new(Witness::default());
    let sink = Pages(vec!["z"], Arc::clone(&witness));
    let records = records(&["a", "b", "c", "d", "e", "f", "g", "h"], &witness);
    let mut merge = Merge::new(listed(&sink, 2), &records, RULES, false, None, 2);
    let mut pages = Vec::new();
    while let Some(merged) = merge.advance().await.expect("ordered") {
        pages.push(merged.differences.len());
    }
    assert_eq!(pages.iter().sum::<usize>(), 9);
    assert!(pages.iter().all(|page| *page <= 2), "{pages:?}");
}

#[tokio::test]
async fn a_side_that_stands_still_or_goes_back_ends_the_comparison() {
    let sink = MemorySink::new();
    let backwards = vec![(key("b"), Version::new(1)), (key("a"), Version::new(1))];
    for (keys, next) in [(Vec::new(), Some(key("a"))), (backwards, None)] {
        let mut records = MockRecords::new();
        let page = KeyPage { keys, next };
        records.expect_keys().returning(move |_, _| Ok(page.clone()));
        let mut merge = Merge::new(listed(&sink, 10), &records, RULES, false, None, 10);
        let error = merge.advance().await.expect_err("neither is a listing");
        assert_eq!(error.code, Code::UNEXPECTED, "{}", error.chain());
    }
}

#[tokio::test]
async fn a_source_that_lists_a_key_twice_ends_the_comparison() {
    let witness = Arc::new(Witness::default());
    let sink = Pages(vec!["a", "b", "d"], witness);
    let mut records = MockRecords::new();
    records.expect_keys().returning(|after, _| {
        let keys = vec![(key("b"), Version::new(1)), (key("c"), Version::new(1))];
        let next = if after.is_some() { None } else { Some(key("c")) };
        Ok(KeyPage { keys, next })
    });
    let mut merge = Merge::new(listed(&sink, 10), &records, RULES, false, None, 10);
    merge.advance().await.expect("the first range is in order");
    let error = merge.advance().await.expect_err("b was listed before");
    assert!(error.chain().contains("byte order"), "{}", error.chain());
}

/// Pages of the source may be empty: what was looked at is passed, also beyond a range's end.
#[tokio::test]
async fn an_empty_page_of_the_source_goes_on_from_where_it_says() {
    let witness = Arc::new(Witness::default());
    let sink = Pages(vec!["b", "d", "f"], Arc::clone(&witness));
    let mut records = MockRecords::new();
    let asked = Arc::clone(&witness);
    records.expect_keys().returning(move |after, _| {
        let after = after.as_ref().map_or("", Key::as_str);
        asked.saw(format!("source {after}"));
        let (found, next) = match after {
            "" => (None, Some("a")),
            "a" => (Some("b"), Some("c")),
            "c" => (None, Some("e")),
            "d" => (Some("f"), Some("f")),
            _ => (None, None),
        };
        let keys = found.into_iter().map(|name| (key(name), Version::new(1))).collect();
        Ok(KeyPage { keys, next: next.map(key) })
    });
    let mut merge = Merge::new(listed(&sink, 10), &records, RULES, false, None, 10);
    let (mut found, mut equal) = (Vec::new(), 0);
    while let Some(merged) = merge.advance().await.expect("ordered") {
        found.extend(merged.differences);
        equal += merged.equal;
    }
    let keys: String = found.iter().map(|difference| difference.key().as_str()).collect();
    assert_eq!((keys.as_str(), equal), ("d", 2));
    let seen = witness.0.lock().expect("sound").join(", ");
    assert_eq!(seen, "sink bd, source , source a, source c, sink f, source d, source f");
}

/// A comparison that was stopped goes on after its place, and finds the rest and nothing twice.
#[tokio::test]
async fn a_comparison_goes_on_after_its_place() {
    let witness = Arc::new(Witness::default());
    let sink = Pages(vec!["b", "c", "f"], Arc::clone(&witness));
    let records = records(&["a", "b", "c", "d", "e", "f", "g"], &witness);
    let (mut place, mut keys) = (None, String::new());
    loop {
        let mut merge = Merge::new(listed(&sink, 2), &records, RULES, false, place, 2);
        let found = merge.advance().await.expect("ordered").expect("more").differences;
        keys.extend(found.iter().map(|difference| difference.key().as_str()));
        place = merge.place.clone();
        if merge.ended {
            break;
        }
    }
    assert_eq!(keys, "adeg");
}
