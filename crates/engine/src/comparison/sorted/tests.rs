//! A listing without an order, through files.

use std::collections::BTreeMap;
use std::sync::Arc;

use truekeep_adapter_memory::MemorySpill;
use truekeep_core::ports::MockSink;
use truekeep_core::{Document, RulesNumber, Version};
use truekeep_sink_memory::{Held, Manner, MemorySink};

use super::*;

/// The generator SplitMix64 (Steele, Lea, Flood, 2014).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sink that lists so many drawn keys in no order; every seventh without a rank.
fn scattered(count: u64) -> (MemorySink, BTreeMap<Key, Option<Rank>>) {
    let sink = MemorySink::listing(Manner { scattered: true, ..Manner::default() });
    let (mut seed, mut expected) = (count, BTreeMap::new());
    for n in 0..count {
        let key = Key::new(format!("{:x}", draw(&mut seed) % 100_000));
        let rank = Rank { rules: RulesNumber::new(1), version: Version::new(n) };
        let rank = (n % 7 > 0).then_some(rank);
        let document = Arc::new(Document::new([].into(), Vec::new()));
        sink.plant(key.clone(), Held { rank, document });
        expected.insert(key, rank);
    }
    (sink, expected)
}

async fn read(sorted: &mut Sorted, limit: u32) -> Result<BTreeMap<Key, Option<Rank>>, PortError> {
    let (mut all, mut after) = (BTreeMap::new(), None);
    loop {
        let page = sorted.list(after.as_ref(), limit).await?;
        for entry in page.entries {
            assert!(after.as_ref().is_none_or(|after| entry.key > *after), "rising");
            after = Some(entry.key.clone());
            assert_eq!(all.insert(entry.key, entry.rank), None, "each once");
        }
        if page.end {
            return Ok(all);
        }
        sorted.release(after.as_ref().expect("a page that is not the last moves on"));
    }
}

#[tokio::test]
async fn a_listing_without_an_order_is_sorted_in_bounded_memory() {
    for (count, room) in [(0, 100), (1, 100), (500, 1 << 20), (3_000, 10_000), (3_000, 0)] {
        let (sink, expected) = scattered(count);
        let spill = MemorySpill::new(usize::MAX);
        let mut sorted = Sorted::of(&sink, &spill, room, 100).await.expect("sorted");
        assert_eq!(read(&mut sorted, 7).await.expect("read"), expected, "{count} in {room}");
        assert!(sorted.front.len() <= 16, "what was released is gone");
        assert!(sorted.merging.runs.len() <= (room / WINDOW_MIN).max(2));
        drop(sorted);
        assert_eq!(spill.left(), usize::MAX, "nothing is left of the file");
    }
}

#[tokio::test]
async fn what_is_not_released_is_listed_again() {
    let (sink, expected) = scattered(300);
    let mut sorted =
        Sorted::of(&sink, &MemorySpill::new(usize::MAX), 1_000, 50).await.expect("sorted");
    let keys: Vec<&Key> = expected.keys().collect();
    let first = sorted.list(None, 20).await.expect("listed");
    sorted.list(Some(keys[19]), 20).await.expect("listed");
    assert_eq!(sorted.list(None, 20).await.expect("listed"), first);
    sorted.release(keys[9]);
    let later = sorted.list(Some(keys[9]), 10).await.expect("listed");
    assert_eq!(later.entries, first.entries[10..]);
    let between = Key::new(format!("{}\0", keys[14]));
    let later = sorted.list(Some(&between), 1).await.expect("listed");
    assert_eq!(later.entries[0].key, *keys[15], "after a key that is not there");
}

/// A run that goes on lists again; what was compared is not kept twice.
#[tokio::test]
async fn what_was_compared_is_passed_over() {
    let (sink, mut expected) = scattered(300);
    let from = expected.keys().nth(200).expect("many").clone();
    let rest = expected.split_off(&from).into_iter().skip(1).collect();
    let spill = MemorySpill::new(usize::MAX);
    let mut sorting = Sorting::begin(&spill, 500, Some(from), 50).await.expect("begun");
    while !sorting.advance(&sink, 1).await.expect("listed") {}
    let mut sorted = sorting.sorted().await.expect("sorted");
    assert_eq!(read(&mut sorted, 7).await.expect("read"), rest);
}

/// Lists these pages in turn, each a text of keys, and begins again after the last; a dot ends it.
fn pages(pages: &'static [&'static str]) -> MockSink {
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let mut sink = MockSink::new();
    sink.expect_list().returning(move |_, _| {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = pages[turn % pages.len()];
        let entry = |letter: char| Entry { key: Key::new(letter.to_string()), rank: None };
        let entries = text.trim_end_matches('.').chars().map(entry).collect();
        Ok(Listing { entries, end: text.ends_with('.') })
    });
    sink
}

/// Rule 114: what is listed twice counts once, and a listing that goes round ends.
#[tokio::test]
async fn repeated_pages_count_once_and_a_circle_ends() {
    let spill = MemorySpill::new(usize::MAX);
    for repeated in [
        &["cb", "cb", "da", "da", "da", "", "f", "a."][..],
        &["f", "da", "cb", "f", "da", "cb", "."],
    ] {
        let mut sorted = Sorted::of(&pages(repeated), &spill, 60, 9).await.expect("sorted");
        let keys: String =
            read(&mut sorted, 2).await.expect("read").keys().map(Key::as_str).collect();
        assert_eq!(keys, "abcdf");
    }
    for circle in [&[""][..], &["a"], &["a", "b"], &["a", "b", "c", "d", "e", "f", "g"]] {
        let error = Sorted::of(&pages(circle), &spill, 60, 9).await.expect_err("it never ends");
        assert_eq!(error.code, Code::SINK_DISORDERED, "{circle:?}");
    }
}

/// A full disk is trouble with a code.
#[tokio::test]
async fn a_file_that_has_no_room_ends_the_sort() {
    let (sink, _) = scattered(300);
    let spill = MemorySpill::new(2_000);
    let error = Sorted::of(&sink, &spill, 500, 50).await.expect_err("no room");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SPILL_FAILED));
    assert_eq!(spill.left(), 2_000, "nothing is left of it");
}
