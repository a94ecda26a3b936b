//! The line of history that a server is on: whether it had, and still has, all that a place says was
//! handed out.
//!
//! Invariant: F2. A server tells where the timeline before its own ended only until it is started again,
//! and only if it streamed. Afterwards nobody knows, and what nobody knows is not believed.

use truekeep_postgres::Failure;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::sqlx::postgres::PgRow;

use super::snapshot::{Rest, Start, log_position};

/// Where a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    timeline: u32,
    /// How far its log was when this was read.
    log: u64,
    start: Start,
    /// The start under which the consumer was last given a page: the server's history was there.
    known: Option<Start>,
    /// Whether it was promoted after it had streamed, and not started since.
    promoted: bool,
}

impl Line {
    /// Reads it from the columns from `at` on.
    pub fn read(row: &PgRow, at: usize) -> Result<Self, Failure> {
        let known: Option<String> = row.try_get(at)?;
        let (timeline, log): (String, String) = (row.try_get(at + 1)?, row.try_get(at + 2)?);
        let start: String = row.try_get(at + 3)?;
        let started = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Ok(Self {
            timeline: u32::from_str_radix(&timeline, 16).unwrap_or(0),
            log: log_position(&log).unwrap_or(0),
            start: started(&start),
            known: known.as_deref().map(started),
            promoted: row.try_get(at + 4)?,
        })
    }

    /// The start to be noted before anything is handed out under it; none if it is.
    pub fn unnoted(&self) -> Option<String> {
        let noted = self.known.is_none_or(|known| known == self.start);
        (!noted).then(|| serde_json::to_string(&self.start).expect("numbers are JSON"))
    }

    /// What a place that is made now says of it.
    pub fn here(&self) -> Rest {
        Rest {
            timeline: Some(self.timeline),
            log: Some(self.log),
            start: Some(self.start),
            ..Rest::default()
        }
    }

    /// Whether the server had all that was there when a place was made, and lost nothing of it.
    pub fn goes_on(&self, place: &Rest) -> bool {
        let (Some(timeline), Some(log), Some(start)) = (place.timeline, place.log, place.start)
        else {
            return true;
        };
        if start == self.start {
            return timeline == self.timeline && log <= self.log;
        }
        if self.known == Some(self.start) {
            // It was looked at under this start already.
            return timeline <= self.timeline && log <= self.log;
        }
        // A server that was not there when the place was made never noted its start.
        if self.known != Some(start) {
            return false;
        }
        let replayed = self.start.1;
        if timeline == self.timeline {
            // What was handed out was on disk: whoever replays less has lost it.
            return log <= self.log && replayed.is_none_or(|replayed| log <= replayed);
        }
        // Only the very next timeline begins where this one ends: else another may be between them.
        let next = timeline.checked_add(1) == Some(self.timeline);
        next && self.promoted && replayed.is_some_and(|forked| log <= forked)
    }

    /// Whether it may be an earlier state of the server that made a place, restored or promoted in its
    /// stead: not one that runs on beside it, nor one of before (X54).
    pub fn is_earlier(&self, place: &Rest) -> bool {
        let (Some(timeline), Some(start)) = (place.timeline, place.start) else { return false };
        if timeline == self.timeline {
            return start != self.start;
        }
        timeline < self.timeline && self.known == Some(start)
    }
}

#[cfg(test)]
mod tests;
