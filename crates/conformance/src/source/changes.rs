//! Rules of the feed's pages.

use super::*;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;

/// Rule 113: without capture every read of the feed is refused, and says what to do.
pub async fn without_capture_nothing_is_read(source: &dyn SourceUnderTest) {
    source.put("a", "1").await;
    let error = source
        .feed()
        .changes(&consumer("a"), &Place::START, 10)
        .await
        .expect_err("there is no feed");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::CAPTURE_MISSING));
    let report = source.capture().verify().await.expect("a report");
    assert_eq!(report.state, CaptureState::Broken(Code::CAPTURE_MISSING));
    assert!(!report.differences.is_empty());
}

/// Rules 25, 32 and 33: pages of 50 over 120 keys are 50, 50, 20, and only the last is the end.
pub async fn pages_rise_and_only_the_last_is_the_end(source: &dyn SourceUnderTest) {
    captured(source).await;
    for n in 0..120 {
        source.put(&format!("k{n:03}"), "x").await;
    }
    let (mut after, mut sizes, mut seen) = (Place::START, Vec::new(), Vec::<Change>::new());
    loop {
        let page = page(source, &after, 50).await;
        assert!(page.view.continues && page.changes.len() <= 50);
        assert!(page.changes.iter().all(|change| page.view.newest.covers(change.stamp)));
        sizes.push(page.changes.len());
        seen.extend(page.changes);
        after = page.next;
        if page.end {
            break;
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    assert!(seen.is_sorted_by(|one, next| one.version < next.version), "versions rise strictly");
    assert!(seen.iter().all(|change| after.covers(change.stamp)), "the place is after them all");
    let empty = page(source, &after, 50).await;
    assert!(empty.end && empty.changes.is_empty());
    assert_eq!(empty.next, after, "an empty page moves no place");
}

/// Rule 34 and S3: a key that changed again stands above its old place, and only there.
pub async fn a_key_stands_once_at_its_newest_version(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b", "a"] {
        source.put(text, "x").await;
    }
    let page = page(source, &Place::START, 10).await;
    let keys: Vec<&str> = page.changes.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["b", "a"]);
}

/// S3: a page that is not the end names no moment; the end names its snapshot's newest version.
pub async fn a_moment_comes_only_with_the_end(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b", "c"] {
        source.put(text, "x").await;
    }
    let part = page(source, &Place::START, 2).await;
    assert!(!part.end && part.moment.is_none());
    let rest = page(source, &part.next, 2).await;
    assert!(rest.end);
    assert_eq!(rest.moment, Some(rest.view.newest));
}

/// S3 and X1: a key below the cursor that changes between two pages comes in a later one.
pub async fn a_change_between_two_pages_is_not_skipped(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b", "c", "d"] {
        source.put(text, "old").await;
    }
    let first = page(source, &Place::START, 2).await;
    source.put("a", "new").await;
    source.delete("c").await;
    let rest = everything(source, &first.next).await;
    assert_eq!(rest.keys().map(Key::as_str).collect::<Vec<_>>(), ["a", "c", "d"]);
    assert!(rest[&key("c")].deleted);
}

/// Rule 58: a write that rolls back leaves neither a change nor a number in the feed's rows.
pub async fn a_rolled_back_write_leaves_nothing(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "1").await;
    let before = everything(source, &Place::START).await;
    source.put_and_roll_back("a", "2").await;
    source.put_and_roll_back("b", "2").await;
    assert_eq!(everything(source, &Place::START).await, before);
    assert_eq!(load(source, "a").await.as_deref(), Some("1"));
}

/// Rule 34: a key that was inserted and deleted within one page stands there once, deleted.
pub async fn a_key_that_came_and_went_is_a_tombstone(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "1").await;
    source.delete("a").await;
    let page = page(source, &Place::START, 10).await;
    assert_eq!(page.changes.len(), 1);
    assert!(page.changes[0].deleted);
    assert_eq!(load(source, "a").await, None);
    source.put("a", "2").await;
    let again = everything(source, &page.next).await;
    assert!(!again[&key("a")].deleted, "a key may come back");
}

/// S1: a document read after a page is at least as new as the version of the page.
pub async fn a_document_is_never_older_than_its_version(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "1").await;
    let page = page(source, &Place::START, 10).await;
    source.put("a", "2").await;
    assert_eq!(load(source, "a").await.as_deref(), Some("2"));
    let found = source.feed().find(&[key("a")]).await.expect("found");
    let found = found[0].as_ref().expect("in the feed");
    assert!(found.version > page.changes[0].version);
}

/// The feed's present row of each key, in the order asked for, and none for a strange key.
pub async fn the_feed_answers_for_single_keys(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "1").await;
    source.put("b", "1").await;
    source.delete("b").await;
    let found =
        source.feed().find(&[key("b"), key("none"), key("a"), key("b")]).await.expect("found");
    let deleted: Vec<Option<bool>> =
        found.iter().map(|change| change.as_ref().map(|change| change.deleted)).collect();
    assert_eq!(deleted, [Some(true), None, Some(false), Some(true)]);
}

/// The pulse of an idle source stays, and differs once somebody else has written.
pub async fn the_pulse_differs_after_a_write(source: &dyn SourceUnderTest) {
    captured(source).await;
    let before = source.feed().pulse().await.expect("a pulse");
    assert_eq!(source.feed().pulse().await.expect("a pulse"), before);
    source.put("a", "1").await;
    assert_ne!(source.feed().pulse().await.expect("a pulse"), before);
}
