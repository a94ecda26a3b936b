//! The rules of every sink.
//!
//! A rule about something that a sink does not claim to be able to do says nothing about it.

pub(crate) mod batches;
mod fence;
mod headstone;
mod keys;
mod listing;
mod mark;
mod order;
mod rank;
mod refusal;
mod verify;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use truekeep_core::Key;
use truekeep_core::ports::Sink;

pub use fence::{
    equal_fence_is_admitted, fence_survives_a_restart, older_fence_is_refused_whole,
    other_owner_is_refused_whole,
};
pub use headstone::{
    headstone_gives_way_to_greater_rules, headstone_is_only_its_own_pipelines,
    headstone_keeps_former_writers_out,
};
pub use keys::unusual_keys_stay_distinct;
pub use listing::{
    deleted_records_are_not_listed, listing_is_ordered_complete_and_paged,
    record_without_a_rank_is_listed_and_gives_way,
};
pub use mark::{
    batch_after_a_lost_one_is_refused_whole, emptied_sink_is_not_taken_for_written,
    late_batch_does_not_stand_for_a_lost_one, mark_is_that_of_the_last_batch, mark_never_goes_back,
    mark_outlives_the_last_record, mark_survives_a_restart, preparing_again_changes_nothing,
    unwritten_sink_has_no_mark,
};
pub use order::every_order_of_deliveries_ends_the_same;
pub use rank::{
    deletion_is_remembered, deletion_of_an_unknown_record_is_remembered,
    equal_rank_is_repeated_and_replaces, late_delete_cannot_win, newer_upsert_revives,
    older_never_replaces_newer, repeated_batch_changes_nothing, rules_count_before_versions,
};
pub use refusal::refused_record_stops_no_other;
pub use verify::{
    a_document_altered_past_the_port_does_not_verify, exactly_what_was_delivered_verifies,
};

/// A sink as a test holds it: prepared, empty, and never written.
///
/// Documents have one value, the text `body`.
#[async_trait]
pub trait SinkUnderTest: Debug + Send + Sync {
    /// The sink.
    fn sink(&self) -> Arc<dyn Sink>;

    /// Ends the sink and opens it again, as a process that starts anew would. A sink that lives
    /// in this process does nothing.
    async fn reopen(&mut self);

    /// The live records and their `body`, read past the port.
    async fn contents(&self) -> BTreeMap<Key, String>;

    /// A `body` whose documents the sink refuses from now on; none if that cannot be arranged.
    async fn poison(&self) -> Option<String> {
        None
    }

    /// Puts a live record without a rank there, past the port; false if that cannot be arranged.
    async fn plant(&self, key: &Key, body: &str) -> bool {
        let _ = (key, body);
        false
    }

    /// Gives a live record another `body`, and leaves its rank, past the port; false if that cannot
    /// be arranged.
    async fn alter(&self, key: &Key, body: &str) -> bool {
        let _ = (key, body);
        false
    }

    /// Removes every live record past the port; false if that cannot be arranged.
    async fn empty(&self) -> bool {
        false
    }
}

/// Makes one test per rule; `$open` is a path to an async function without arguments that makes
/// a [`SinkUnderTest`], or a block that makes one, or returns where there is nothing to test with.
#[macro_export]
macro_rules! sink_rules {
    ($open:path) => {
        $crate::sink_rules!({ $open().await });
    };
    ($open:block) => {
        $crate::sink_rules! { $open:
            a_document_altered_past_the_port_does_not_verify,
            batch_after_a_lost_one_is_refused_whole,
            deleted_records_are_not_listed,
            deletion_is_remembered,
            deletion_of_an_unknown_record_is_remembered,
            emptied_sink_is_not_taken_for_written,
            equal_fence_is_admitted,
            equal_rank_is_repeated_and_replaces,
            every_order_of_deliveries_ends_the_same,
            exactly_what_was_delivered_verifies,
            fence_survives_a_restart,
            headstone_gives_way_to_greater_rules,
            headstone_is_only_its_own_pipelines,
            headstone_keeps_former_writers_out,
            late_delete_cannot_win,
            late_batch_does_not_stand_for_a_lost_one,
            listing_is_ordered_complete_and_paged,
            mark_is_that_of_the_last_batch,
            mark_never_goes_back,
            mark_outlives_the_last_record,
            mark_survives_a_restart,
            newer_upsert_revives,
            older_fence_is_refused_whole,
            older_never_replaces_newer,
            other_owner_is_refused_whole,
            preparing_again_changes_nothing,
            record_without_a_rank_is_listed_and_gives_way,
            refused_record_stops_no_other,
            repeated_batch_changes_nothing,
            rules_count_before_versions,
            unusual_keys_stay_distinct,
            unwritten_sink_has_no_mark,
        }
    };
    ($open:block: $($rule:ident,)*) => {$(
        #[tokio::test]
        async fn $rule() {
            let mut subject = $open;
            $crate::sink::$rule(&mut subject).await;
        }
    )*};
}
