//! Rules of the audit: the feed held against the table.

use super::*;
use truekeep_core::ports::AuditPage;

async fn audited(source: &dyn SourceUnderTest, limit: u32) -> AuditPage {
    let (mut all, mut after) = (AuditPage::default(), None);
    for _ in 0..100 {
        let page = source.capture().audit(after, limit).await.expect("a page");
        all.missed.extend(page.missed);
        all.ghosts.extend(page.ghosts);
        all.seen += page.seen;
        after = page.next;
        if after.is_none() {
            all.missed.sort();
            all.ghosts.sort();
            return all;
        }
    }
    panic!("the audit does not end");
}

/// A feed that recorded everything differs from its table nowhere.
pub async fn a_sound_feed_audits_clean(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["a", "b", "c", "d"] {
        source.put(text, "1").await;
    }
    source.delete("b").await;
    source.put("c", "2").await;
    for limit in [1, 3, 100] {
        let found = audited(source, limit).await;
        assert_eq!((found.missed, found.ghosts), (Vec::new(), Vec::new()));
        assert!(found.seen >= 3);
    }
}

/// X7, X11: rows without a live feed row, also over a tombstone, and live feed rows without a row
/// are found; nothing is written.
pub async fn the_audit_finds_what_capture_missed(source: &dyn SourceUnderTest) {
    captured(source).await;
    for text in ["buried", "gone", "kept"] {
        source.put(text, "1").await;
    }
    source.delete("buried").await;
    source.break_capture().await;
    source.put("buried", "2").await;
    source.put("new", "2").await;
    source.delete("gone").await;
    let before = page(source, &Place::START, 10).await.changes;
    for limit in [1, 2, 100] {
        let found = audited(source, limit).await;
        assert_eq!(found.missed, [key("buried"), key("new")]);
        assert_eq!(found.ghosts, [key("gone")]);
    }
    assert_eq!(page(source, &Place::START, 10).await.changes, before);
}
