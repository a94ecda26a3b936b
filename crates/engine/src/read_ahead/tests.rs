//! The rules of reading ahead, over a feed and records that are told what to answer.

use std::sync::Mutex;

use truekeep_core::ports::{CaptureState, MockFeed, MockRecords, SourceView};
use truekeep_core::{Incarnation, LedgerId, Moment, Signature, Stamp, Version};

use super::*;

/// What was asked: "page AFTER LIMIT" and "load KEYS".
type Asked = Arc<Mutex<Vec<String>>>;

const NEWEST: u64 = 10;

fn at(version: u64) -> Place {
    Place::at(Version::new(version))
}

fn page(after: u64, limit: u32) -> ChangePage {
    let last = (after + u64::from(limit)).min(NEWEST);
    let change = |n: u64| Change {
        key: Key::new(n.to_string()),
        version: Version::new(n),
        stamp: Stamp::new(n),
        deleted: false,
    };
    let capture = CaptureState::Trusted(Signature::parse("trusted").expect("valid"));
    ChangePage {
        changes: (after + 1..=last).map(change).collect(),
        next: at(last),
        end: last == NEWEST,
        moment: (last == NEWEST).then(|| at(NEWEST).passed),
        view: SourceView {
            incarnation: Incarnation::parse("feed").expect("valid"),
            newest: at(NEWEST).passed,
            pruned: Moment::BEGINNING,
            continues: true,
            repairable: true,
            registration: None,
            capture,
        },
    }
}

fn trouble() -> PortError {
    PortError::new("read", FailureClass::Retry, Code::SOURCE_LOCKED)
}

/// Ten changes; a load answers for at most `documents` records, and never for the key "7" while
/// `locked`.
fn reading(documents: usize, locked: bool) -> (Reading, Asked) {
    let asked = Asked::default();
    let (pages, loads) = (Arc::clone(&asked), Arc::clone(&asked));
    let mut feed = MockFeed::new();
    feed.expect_changes().returning(move |_, after, limit| {
        pages.lock().expect("sound").push(format!("page {after} {limit}"));
        Ok(page(after.passed.newest().get(), limit))
    });
    let mut records = MockRecords::new();
    records.expect_load().returning(move |keys, _| {
        let names: Vec<_> = keys.iter().map(Key::as_str).collect();
        loads.lock().expect("sound").push(format!("load {}", names.join(",")));
        let first = &names[..names.len().min(documents)];
        if locked && first.contains(&"7") {
            return Err(trouble());
        }
        Ok(vec![Loaded::Absent; first.len()])
    });
    let consumer = Consumer {
        ledger: LedgerId::parse("ledger").expect("valid"),
        pipeline: Incarnation::parse("life").expect("valid"),
    };
    let (feed, records) = (Arc::new(feed), Arc::new(records));
    (Reading { feed, records, consumer, bytes_max: 100, ahead: true }, asked)
}

/// A part in words: "head 4", "rows 1,2", "whole", "end", "trouble".
async fn told(reader: &mut ReadAhead) -> String {
    match reader.part().await {
        Ok(Some(Part::Head(head))) => format!("head {}", head.next),
        Ok(Some(Part::Rows(rows))) => {
            let keys: Vec<_> = rows.iter().map(|(change, _)| change.key.to_string()).collect();
            format!("rows {}", keys.join(","))
        }
        Ok(Some(Part::Whole)) => "whole".into(),
        Ok(None) => "end".into(),
        Err(_) => "trouble".into(),
    }
}

async fn all_told(reader: &mut ReadAhead) -> Vec<String> {
    let mut parts = Vec::new();
    while parts.last().is_none_or(|last| last != "end") {
        parts.push(told(reader).await);
    }
    parts
}

/// Lets the reader go as far as it gets by itself.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pages_come_whole_and_in_the_order_of_the_feed_up_to_its_end() {
    let (reading, _) = reading(100, false);
    let mut reader = ReadAhead::begin(reading, at(0), 4);
    let parts = all_told(&mut reader).await;
    let whole = ["head 4", "rows 1,2,3,4", "whole", "head 8", "rows 5,6,7,8", "whole"];
    assert_eq!(parts[..6], whole);
    assert_eq!(parts[6..], ["head 10", "rows 9,10", "whole", "end"]);
}

#[tokio::test]
async fn documents_are_handed_out_as_many_as_fit_in_a_batch() {
    let (reading, asked) = reading(2, false);
    let mut reader = ReadAhead::begin(reading, at(5), 5);
    let parts = all_told(&mut reader).await;
    assert_eq!(parts, ["head 10", "rows 6,7", "rows 8,9", "rows 10", "whole", "end"]);
    let loads = ["page 5 5", "load 6,7,8,9,10", "load 8,9,10", "load 10"];
    assert_eq!(*asked.lock().expect("sound"), loads);
}

#[tokio::test]
async fn a_reader_is_a_page_ahead_and_no_further() {
    let (reading, asked) = reading(100, false);
    let mut reader = ReadAhead::begin(reading, at(0), 2);
    for part in ["head 2", "rows 1,2", "whole"] {
        assert_eq!(told(&mut reader).await, part);
    }
    settle().await;
    assert_eq!(
        *asked.lock().expect("sound"),
        ["page 0 2", "load 1,2", "page 2 2", "load 3,4"],
        "two of three pages that are left are not read yet"
    );
}

#[tokio::test]
async fn pages_that_are_not_read_yet_are_resized() {
    let (reading, _) = reading(100, false);
    let mut reader = ReadAhead::begin(reading, at(0), 2);
    reader.resize(7);
    let parts = all_told(&mut reader).await;
    assert_eq!(parts[..2], ["head 7", "rows 1,2,3,4,5,6,7"]);
}

#[tokio::test]
async fn a_reader_continues_where_the_page_that_was_taken_ends() {
    let (reading, _) = reading(100, false);
    let mut reader = ReadAhead::begin(reading, at(0), 4);
    assert!(reader.continues(&at(0)));
    settle().await;
    assert!(reader.continues(&at(0)), "what is read ahead is not taken");
    told(&mut reader).await;
    assert!(reader.continues(&at(4)) && !reader.continues(&at(0)));
}

#[tokio::test]
async fn trouble_comes_in_its_place_and_nothing_comes_after_it() {
    let (reading, asked) = reading(1, true);
    let mut reader = ReadAhead::begin(reading, at(4), 3);
    let parts = all_told(&mut reader).await;
    assert_eq!(parts, ["head 7", "rows 5", "rows 6", "trouble", "end"]);
    let asked = asked.lock().expect("sound").clone();
    assert_eq!(asked.last().map(String::as_str), Some("load 7"), "nothing is skipped");
}

#[tokio::test]
async fn a_source_that_answers_for_no_record_is_in_trouble() {
    let (reading, _) = reading(0, false);
    let error = reading.load(&[Key::new("1")]).await.expect_err("no answer");
    assert_eq!(error.class, FailureClass::Unknown);
    let mut reader = ReadAhead::begin(reading, at(0), 4);
    assert_eq!(all_told(&mut reader).await, ["head 4", "trouble", "end"]);
}

#[tokio::test]
async fn a_reader_that_is_dropped_reads_no_more() {
    let (reading, asked) = reading(100, false);
    let reader = ReadAhead::begin(reading, at(0), 1);
    settle().await;
    let before = asked.lock().expect("sound").len();
    drop(reader);
    settle().await;
    assert_eq!(asked.lock().expect("sound").len(), before);
    assert_eq!(Arc::strong_count(&asked), 1, "its task and what it reads from are gone");
}

/// F3.
#[tokio::test]
async fn one_page_is_read_and_no_other_where_a_killer_is_looked_for() {
    let (reading, asked) = reading(100, false);
    let alone = Reading { ahead: false, ..reading };
    let mut reader = ReadAhead::begin(alone, at(0), 2);
    assert_eq!(all_told(&mut reader).await, ["head 2", "rows 1,2", "whole", "end"]);
    assert_eq!(*asked.lock().expect("sound"), ["page 0 2", "load 1,2"]);
}
