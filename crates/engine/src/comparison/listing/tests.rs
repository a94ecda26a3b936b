//! What a listing may do and what it may not.

use std::collections::VecDeque;
use std::sync::Mutex;

use truekeep_core::ports::{Entry, MockSink};
use truekeep_core::{RulesNumber, Version};

use super::*;

fn rank(version: u64) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version) }
}

/// A page: each letter is a key, with its place in the text as its version; a capital letter has no
/// rank of ours; a dot is the end.
fn listing(text: &str) -> Listing {
    let entry = |(place, letter): (usize, char)| Entry {
        key: Key::new(letter.to_lowercase().to_string()),
        rank: letter.is_lowercase().then(|| rank(place as u64)),
    };
    let letters = text.trim_end_matches('.').chars().enumerate();
    Listing { entries: letters.map(entry).collect(), end: text.ends_with('.') }
}

fn sink(pages: &[&str]) -> MockSink {
    let pages: Mutex<VecDeque<Listing>> = Mutex::new(pages.iter().map(|p| listing(p)).collect());
    let mut sink = MockSink::new();
    sink.expect_list().returning(move |_, _| {
        let mut pages = pages.lock().expect("sound");
        let next = pages.front().cloned().expect("no more is asked for than there is");
        // The last page comes again for ever.
        if pages.len() > 1 {
            pages.pop_front();
        }
        Ok(next)
    });
    sink
}

/// Everything that is listed, a space after each page.
async fn all(pages: &[&str], owns: Owns, mut after: Option<Key>) -> Result<String, PortError> {
    let sink = sink(pages);
    let mut listed = Listed::new(Origin::Sink(&sink), owns, 10);
    let mut text = String::new();
    loop {
        let page = listed.page(after.as_ref()).await?;
        for (key, rank) in &page.entries {
            let stale = if rank.rules == RulesNumber::new(0) { "?" } else { "" };
            text += &format!("{key}{stale}");
        }
        if page.unmarked > 0 {
            text += &format!("-{}", page.unmarked);
        }
        match page.bound {
            None => return Ok(text),
            bound => after = bound,
        }
        text.push(' ');
    }
}

/// Rule 114.
#[tokio::test]
async fn what_is_listed_twice_counts_once() {
    for (pages, expected) in [
        (&["aabbb", "c."][..], "ab c"),
        (&["ab", "ab", "cd."], "ab cd"),
        (&["ab", "ab", "ab", "cd."], "ab cd"),
        (&["ab", "bcc", "."], "ab c "),
        (&["ab", "", "cd."], "ab cd"),
        (&["ab", "b", "cd."], "ab cd"),
        (&["."], ""),
    ] {
        assert_eq!(all(pages, Owns::All, None).await.expect("listed"), expected, "{pages:?}");
    }
    let greatest = sink(&["aaA."]);
    let page =
        Listed::new(Origin::Sink(&greatest), Owns::All, 10).page(None).await.expect("listed");
    assert_eq!(page.entries, [(Key::new("a"), rank(1))], "of two answers the later one");
}

/// X34: a declared order is checked as it is read, within pages and between them.
#[tokio::test]
async fn a_listing_out_of_its_order_is_told_as_that() {
    for pages in [&["ba."][..], &["ac", "bd."], &["bc", "a."], &["ac", "acb."], &["ab", "aab."]] {
        let error = all(pages, Owns::All, None).await.expect_err("out of order");
        assert_eq!(error.class, FailureClass::Terminal);
        assert_eq!(error.code, Code::SINK_DISORDERED, "{pages:?}: {}", error.chain());
    }
    let resumed = all(&["ab."], Owns::All, Some(Key::new("b"))).await.expect_err("out of order");
    assert_eq!(resumed.code, Code::SINK_DISORDERED);
}

#[tokio::test]
async fn a_listing_that_stands_still_ends() {
    for pages in [&["ab"][..], &["ab", "b"], &["ab", ""], &[""]] {
        let error = all(pages, Owns::All, None).await.expect_err("it stands still");
        assert_eq!(error.code, Code::SINK_DISORDERED, "{pages:?}");
    }
}

/// Rule 37.
#[tokio::test]
async fn an_entry_without_a_rank_is_as_old_as_can_be_or_nobodys_business() {
    let pages = ["aBc", "DE", "f."];
    assert_eq!(all(&pages, Owns::All, None).await.expect("listed"), "ab?c d?e? f");
    assert_eq!(all(&pages, Owns::Marked, None).await.expect("listed"), "ac-1 -2 f");
    assert_eq!(all(&["AAB."], Owns::Marked, None).await.expect("listed"), "-2", "each once");
}
