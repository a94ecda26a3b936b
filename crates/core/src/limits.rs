//! All defaults and bounds, each with its reason.

use std::time::Duration;

use crate::code::Code;
use crate::failure::{FailureClass, PortError};

/// Records of a page: round trips vanish, and what a crash repeats stays small.
pub const PAGE_ROWS: u32 = 1_000;
/// A page never holds more records: what a crash repeats stays bounded.
pub const PAGE_ROWS_MAX: u32 = 10_000;
/// Bytes of the documents of a batch: memory is bounded by the page, not by the table.
pub const PAGE_BYTES: usize = 4 << 20;
/// A document over this is parked: one record must not exhaust a worker's memory.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
/// A lease's length: longer than a slow page and a pause, shorter than a human notices.
pub const LEASE_TTL: Duration = Duration::from_secs(30);
/// No duration in a configuration is longer: what is longer is a slip.
pub const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);
/// Scopes of one worker: each holds a page in memory.
pub const SCOPES_PER_WORKER: usize = 16;
/// Items of one claim: a claim fits in a batch.
pub const ITEMS_PER_CLAIM: u32 = 100;
/// Ledger statements of one turn, counted by a test: a turn's cost is known.
pub const STATEMENTS_PER_TURN_MAX: u32 = 20;
/// Bytes of a stored error text: lists stay readable and rows small.
pub const ERROR_TEXT_BYTES_MAX: usize = 4 << 10;
/// How long history is kept: a month of questions can be answered.
pub const HISTORY_KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Old events that one new event removes: history shrinks faster than it grows, and no write waits
/// for a long clean-up.
pub const HISTORY_PRUNED_MAX: u32 = 100;
/// Memory of the sort of a listing that comes in no order: ten million keys are some sixty runs, and
/// a worker's memory stays a few pages.
pub const SORT_BYTES: usize = 8 << 20;
/// Listings that one run begins: two rounds and a purge need three, and each restart of a worker in
/// the middle of one needs another.
pub const LISTINGS_MAX: u32 = 20;
/// Changes of rules that one run begins anew for: somebody announces them faster than they can be
/// followed, and has to decide.
pub const RESTARTS_MAX: u32 = 10;
/// How long a run beside follow goes on before follow has its turn: the tail is delayed by no more than
/// this and one page.
pub const BESIDE_STEP: Duration = Duration::from_millis(50);
/// How long a page of a rebuild may take before the next one is smaller: the tail waits for one page, and
/// a tenth of a second is not noticed.
pub const SCAN_STEP: Duration = Duration::from_millis(80);
/// Rows of the smallest page of a rebuild: smaller ones are no faster where a sink's answer takes its time
/// whatever the batch holds.
pub const SCAN_ROWS_MIN: u32 = 200;
/// Rows that one of our transactions writes in the source: the application waits for no more.
pub const SOURCE_WRITE_ROWS_MAX: u32 = 500;
/// How often a moving position is written into the source: a restored source is told from the
/// real one to within this.
pub const REGISTER_EVERY: Duration = Duration::from_secs(1);
/// By how much the numbers of a source that went back are raised: more than a page that was sent and
/// never committed can have gone on.
pub const REPAIR_GAP: u64 = 1 << 20;

/// How long after a repair of a source the next one waits for an operator.
pub const REPAIR_AGAIN_AFTER: Duration = Duration::from_secs(3_600);

/// How often a halted scope looks again whether its cause is gone: an operator's fix is noticed
/// without a restart.
pub const HALTED_RECHECK: Duration = Duration::from_secs(30);
/// How often an idle scope looks at the source's change counter.
pub const POLL_EVERY: Duration = Duration::from_millis(50);
/// How soon it looks again right after a change. It then waits no longer than the source has been
/// still: of a busy source the wait for a look is no more than the pause between two changes, and an
/// idle one is looked at five times more.
pub const POLL_SOONEST: Duration = Duration::from_millis(5);
/// Records that were delivered for each call that prunes: each outdates one number of the feed at
/// most, and a call looks at ten times as many.
pub const PRUNED_PER_CALL: u64 = 400;
/// Calls that prune after one acknowledgement: no delivery waits long for what nobody needs.
pub const PRUNE_CALLS_MAX: u64 = 20;
/// How often an idle scope reads its ledger row and the feed whatever the counter says: a lost
/// wake-up costs no more.
pub const IDLE_EVERY: Duration = Duration::from_secs(1);
/// How long a request may be under way after whoever sent it has stopped: longer than any wait for
/// a lock, and than the transaction that follows. A removal waits this long before it trusts what
/// it sees.
pub const REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a turn may take before its scope is left out of the renewal, so that another worker
/// can take over from a hung sink.
pub const TURN_MAX: Duration = Duration::from_secs(300);

/// Checks how many rows a caller asks for.
///
/// # Errors
/// Terminal, unless it is 1 to [`PAGE_ROWS_MAX`].
pub fn rows(operation: &'static str, wanted: u32) -> Result<u32, PortError> {
    if (1..=PAGE_ROWS_MAX).contains(&wanted) {
        return Ok(wanted);
    }
    Err(PortError::new(operation, FailureClass::Terminal, Code::CONFIG_INVALID)
        .detail(format!("{wanted} rows were asked for, 1 to {PAGE_ROWS_MAX} are possible")))
}

/// Cuts a text to [`ERROR_TEXT_BYTES_MAX`] at a character's end.
pub fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(ERROR_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_is_cut_at_a_characters_end() {
        let long = "é".repeat(ERROR_TEXT_BYTES_MAX);
        assert!(bounded(&long).len() <= ERROR_TEXT_BYTES_MAX);
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded(""), "");
    }

    #[test]
    fn a_number_of_rows_is_neither_nothing_nor_without_bound() {
        for wanted in [1, PAGE_ROWS_MAX] {
            assert_eq!(rows("list", wanted).ok(), Some(wanted));
        }
        for wanted in [0, PAGE_ROWS_MAX + 1, u32::MAX] {
            assert_eq!(rows("list", wanted).expect_err("refused").class, FailureClass::Terminal);
        }
    }
}
