//! Rules of installing capture and of recording the rows that were there before.

use super::*;
use truekeep_core::code::Code;

/// Rule 113: what is already equal is not touched: no number moves, trust stays.
pub async fn installing_twice_changes_nothing(source: &dyn SourceUnderTest) {
    source.put("a", "1").await;
    captured(source).await;
    let before = page(source, &Place::START, 10).await;
    assert!(matches!(before.view.capture, CaptureState::Trusted(_)));
    let report = source.capture().install().await.expect("installed");
    assert_eq!(report.state, before.view.capture);
    assert_eq!(report.differences, Vec::<String>::new());
    assert!(source.capture().fill().await.expect("filled").done);
    let again = page(source, &Place::START, 10).await;
    assert_eq!(again.changes, before.changes);
    assert_eq!(again.view.capture, before.view.capture);
    assert_eq!((report.feed_rows, report.tombstones), (1, 0));
}

/// A fill records a bounded page per call, tells how far it is, and goes on where it was.
pub async fn a_fill_is_bounded_and_resumes(source: &dyn SourceUnderTest) {
    let rows = u64::from(SOURCE_WRITE_ROWS_MAX) + 20;
    for n in 0..rows {
        source.put(&format!("k{n:05}"), "x").await;
    }
    source.capture().install().await.expect("installed");
    let mut known = 0;
    for _ in 0..20 {
        let view = page(source, &Place::START, 1).await.view;
        assert_eq!(view.capture, CaptureState::Filling);
        let progress = source.capture().fill().await.expect("filled");
        let now = everything(source, &Place::START).await.len() as u64;
        assert!(now - known <= u64::from(SOURCE_WRITE_ROWS_MAX), "one page at a time");
        assert!(progress.total >= progress.filled);
        known = now;
        if progress.done {
            assert_eq!(known, rows);
            let view = page(source, &Place::START, 1).await.view;
            assert!(matches!(view.capture, CaptureState::Trusted(_)));
            return;
        }
    }
    panic!("the fill does not end");
}

/// Writes between two pages of a fill are in the feed, each as it is.
pub async fn writes_during_a_fill_are_kept(source: &dyn SourceUnderTest) {
    let rows = SOURCE_WRITE_ROWS_MAX + 100;
    for n in 0..rows {
        source.put(&format!("k{n:05}"), "x").await;
    }
    source.capture().install().await.expect("installed");
    assert!(!source.capture().fill().await.expect("filled").done);
    let first = "k00000";
    let last = format!("k{:05}", rows - 1);
    source.delete(first).await;
    source.delete(&last).await;
    source.put("new", "x").await;
    let at = newest(source).await;
    filled(source).await;
    let feed = everything(source, &Place::START).await;
    assert_eq!(feed.len(), rows as usize + 1);
    assert!(feed[&key(first)].deleted && feed[&key(&last)].deleted);
    assert!(!feed[&key("new")].deleted && at.covers(feed[&key("new")].stamp));
}

/// Rule 113, X7: changes that nothing recorded are told by every page; installing and filling
/// anew deliver every row again and bury what went meanwhile.
pub async fn a_gap_is_told_and_mended_by_filling_anew(source: &dyn SourceUnderTest) {
    for text in ["same", "changed", "gone"] {
        source.put(text, "old").await;
    }
    captured(source).await;
    source.break_capture().await;
    source.put("changed", "new").await;
    source.put("added", "new").await;
    source.delete("gone").await;
    let seen = page(source, &Place::START, 10).await;
    assert_eq!(seen.view.capture, CaptureState::Broken(Code::CAPTURE_CHANGED));
    let report = source.capture().verify().await.expect("a report");
    assert_eq!(report.state, seen.view.capture);
    assert!(!report.differences.is_empty());

    source.capture().install().await.expect("installed");
    assert_eq!(page(source, &seen.next, 10).await.view.capture, CaptureState::Filling);
    filled(source).await;
    let again = everything(source, &after(seen.view.newest)).await;
    let deleted: BTreeMap<&str, bool> =
        again.iter().map(|(key, change)| (key.as_str(), change.deleted)).collect();
    let wanted = [("added", false), ("changed", false), ("gone", true), ("same", false)];
    assert_eq!(deleted, BTreeMap::from(wanted));
    let view = page(source, &seen.next, 10).await.view;
    assert!(matches!(view.capture, CaptureState::Trusted(_)));
    assert_eq!(view.incarnation, seen.view.incarnation, "a mended feed is the same one");
}

/// X11, X62: a numbered key is a change like any other: newest, and what the table says of it.
pub async fn numbered_keys_say_what_the_table_says(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b"] {
        source.put(text, "1").await;
    }
    let before = newest(source).await;
    let numbered = source.capture().number(&[key("b"), key("never")]).await.expect("numbered");
    let stamp = numbered.newest.expect("numbered");
    assert!(newest(source).await.covers(stamp) && !before.covers(stamp));
    let changes = everything(source, &after(before)).await;
    assert_eq!(changes.len(), 2);
    assert!(!changes[&key("b")].deleted && changes[&key("never")].deleted);
    let none = source.capture().number(&[]).await.expect("numbered");
    assert_eq!(none.newest, None);
}

/// X43: a feed that begins again gives every row a number above the one that was named, and every
/// tombstone too, as a sink may hold its key from a future that was lost; its counter never goes down.
pub async fn a_feed_begins_again_above_a_number(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b", "gone"] {
        source.put(text, "1").await;
    }
    source.delete("gone").await;
    let above = Version::new(1_000);
    source.capture().begin_again(above).await.expect("begun");
    assert_eq!(page(source, &Place::START, 1).await.view.capture, CaptureState::Filling);
    filled(source).await;
    let feed = everything(source, &Place::START).await;
    assert!(feed.len() == 3 && feed.values().all(|change| change.version > above));
    assert!(feed[&key("gone")].deleted && !feed[&key("a")].deleted);
    let at = newest(source).await;
    source.capture().begin_again(Version::new(5)).await.expect("begun");
    filled(source).await;
    assert_eq!(everything(source, &after(at)).await.len(), 3);
}
