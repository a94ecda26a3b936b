//! The rules of every source, over any key and one text per record.
//!
//! Each rule takes a source without capture and without rows, and panics where the rule is broken.
//! [`source_rules!`](crate::source_rules) makes a test of each. What is proven: rules 31 to 34, 58,
//! 113, 115, 120 and 121 as far as a source keeps them, and the invariants S1 and S3.

use std::collections::BTreeMap;
use std::fmt::Debug;

use async_trait::async_trait;
use truekeep_core::ports::{
    Capture, CaptureState, Change, ChangePage, Consumer, Feed, Loaded, Records, Registration,
};
use truekeep_core::{
    Incarnation, Key, LedgerId, Moment, Place, RegistrationCounter, Value, Version,
    limits::SOURCE_WRITE_ROWS_MAX,
};

mod audit;
mod changes;
mod consumers;
mod equality;
mod fill;
mod records;

pub use audit::*;
pub use changes::*;
pub use consumers::*;
pub use equality::*;
pub use fill::*;
pub use records::*;

/// A source whose table the rules can write as an application does.
#[async_trait]
pub trait SourceUnderTest: Debug + Send + Sync {
    /// Its feed.
    fn feed(&self) -> &dyn Feed;
    /// Its records, each a document of one text.
    fn records(&self) -> &dyn Records;
    /// Its capture.
    fn capture(&self) -> &dyn Capture;
    /// Inserts or updates the record with this key, and commits.
    async fn put(&self, key: &str, text: &str);
    /// Deletes the record, and commits.
    async fn delete(&self, key: &str);
    /// Inserts or updates the record and rolls back.
    async fn put_and_roll_back(&self, key: &str, text: &str);
    /// Makes capture miss what comes, as a tool does that rebuilds the table.
    async fn break_capture(&self);
}

/// Makes a `#[tokio::test]` of every rule; the argument makes a fresh source and may await.
#[macro_export]
macro_rules! source_rules {
    ($make:expr) => {
        $crate::source_rules! { @each $make;
            without_capture_nothing_is_read
            pages_rise_and_only_the_last_is_the_end
            a_key_stands_once_at_its_newest_version
            a_moment_comes_only_with_the_end
            a_change_between_two_pages_is_not_skipped
            a_rolled_back_write_leaves_nothing
            a_key_that_came_and_went_is_a_tombstone
            a_document_is_never_older_than_its_version
            the_feed_answers_for_single_keys
            the_pulse_differs_after_a_write
            documents_stop_at_the_byte_limit_but_one_is_given
            live_keys_are_listed_in_byte_order
            any_text_is_a_key
            a_registration_never_goes_back
            a_registration_is_the_one_after_the_one_that_is_held
            tombstones_wait_for_every_consumer
            tombstones_stay_while_capture_is_broken
            a_forgotten_consumer_holds_nothing_back
            another_feed_is_another_incarnation
            installing_twice_changes_nothing
            a_fill_is_bounded_and_resumes
            writes_during_a_fill_are_kept
            a_gap_is_told_and_mended_by_filling_anew
            numbered_keys_say_what_the_table_says
            a_feed_begins_again_above_a_number
            a_sound_feed_audits_clean
            the_audit_finds_what_capture_missed
        }
    };
    (@each $make:expr; $($rule:ident)*) => {
        $(
            #[tokio::test]
            async fn $rule() {
                let source = $make;
                $crate::source::$rule(&source).await;
            }
        )*
    };
}

fn consumer(name: &str) -> Consumer {
    Consumer {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse(name).expect("a token"),
    }
}

fn key(text: &str) -> Key {
    Key::new(text)
}

/// Installs capture and fills it; returns how many pages that took.
async fn captured(source: &dyn SourceUnderTest) -> u32 {
    source.capture().install().await.expect("installed");
    filled(source).await
}

/// Fills to the end, in at most as many pages as any of these rules needs.
async fn filled(source: &dyn SourceUnderTest) -> u32 {
    for pages in 1..100 {
        if source.capture().fill().await.expect("filled").done {
            return pages;
        }
    }
    panic!("the fill does not end");
}

async fn page(source: &dyn SourceUnderTest, after: &Place, limit: u32) -> ChangePage {
    source.feed().changes(&consumer("a"), after, limit).await.expect("a page")
}

/// Everything after a place, in pages of 50; each key at its last appearance.
async fn everything(source: &dyn SourceUnderTest, after: &Place) -> BTreeMap<Key, Change> {
    let (mut all, mut after) = (BTreeMap::new(), after.clone());
    loop {
        let page = page(source, &after, 50).await;
        after = page.next;
        all.extend(page.changes.into_iter().map(|change| (change.key.clone(), change)));
        if page.end {
            return all;
        }
    }
}

/// What the source is at now.
async fn newest(source: &dyn SourceUnderTest) -> Moment {
    let view = source.feed().view(&consumer("a"), &Place::START).await;
    view.expect("a view").newest
}

/// The place after a moment.
fn after(moment: Moment) -> Place {
    Place { passed: moment, ..Place::START }
}

async fn load(source: &dyn SourceUnderTest, text: &str) -> Option<String> {
    let loaded = source.records().load(&[key(text)], usize::MAX).await.expect("loaded");
    assert_eq!(loaded.len(), 1, "one answer for one key");
    loaded.into_iter().next().and_then(|loaded| body(&loaded))
}

fn body(loaded: &Loaded) -> Option<String> {
    match loaded {
        Loaded::Live(document) => match document.values() {
            [Value::Text(text)] => Some(text.to_string()),
            values => panic!("a document of one text, not {values:?}"),
        },
        Loaded::Absent => None,
        Loaded::Unloadable(code, reason) => panic!("unloadable: {code} {reason}"),
    }
}
