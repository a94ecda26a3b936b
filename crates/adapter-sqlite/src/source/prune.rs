//! What nobody needs any more is removed from the feed: tombstones that every consumer has passed, and
//! numbers that are outdated.
//!
//! What there is to remove is looked for in a snapshot; the write lock is taken only if there is
//! something, and not waited for: an application that hardly pauses is worth more than a short feed.
//! Numbers are swept in rounds over all of them; once a round has come to its end and
//! neither a number nor an acknowledgement has come since it began, nothing is left.

use std::time::Duration;

use rusqlite::{Connection, params};
use truekeep_core::failure::PortError;
use truekeep_core::limits::SOURCE_WRITE_ROWS_MAX;
use truekeep_core::ports::CaptureState;
use truekeep_sqlite::Failure;

use super::SqliteSource;
use super::key::{Stored, bytes};
use super::meta::{Meta, STAMPS_KEPT};
use super::records::has_row;
use super::resolve::Resolved;
use super::triggers::{LIVE, TOMBSTONE};

/// How many numbers one transaction looks at: some milliseconds of the write lock.
const SWEPT_AT_ONCE: i64 = 4_000;

/// How long the write lock is tried for: some pauses of an application that hardly pauses.
const BUSY_MAX: Duration = Duration::from_millis(20);

/// The newest number, and the sum of what consumers have acknowledged: what is outdated and not
/// kept changes with them only.
type Seen = (i64, i64);

/// A round over the numbers. It begins again with each process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sweep {
    /// Everything up to it was looked at in this round.
    place: i64,
    /// What was seen when the round began.
    began: Option<Seen>,
    /// What was seen when the last round began that nothing was left of.
    clean: Option<Seen>,
}

/// What there is to remove.
struct Waste {
    /// Every consumer has passed everything up to it; none without a consumer.
    passed: Option<i64>,
    /// Whether there are tombstones up to it, or rows in doubt.
    tombstones: bool,
    /// Numbers of which one is outdated: after the first, up to the last.
    numbers: Option<(i64, i64)>,
    /// About how many numbers were looked at.
    looked: u64,
    sweep: Sweep,
}

impl SqliteSource {
    /// Removes some of it, in one transaction, and says how much there was to look at.
    pub(super) async fn clear(&self) -> Result<u64, PortError> {
        // What cannot be removed now is looked at again.
        let sweep = *self.sweep();
        let look =
            move |connection: &Connection, relation: &Resolved| waste(connection, relation, sweep);
        let waste = self.glance("look for what to prune", look).await?;
        let (sweep, looked) = (waste.sweep, waste.looked);
        let mut removed = 0;
        if waste.tombstones || waste.numbers.is_some() {
            let remove = move |connection: &Connection, relation: &Resolved| {
                remove(connection, relation, &waste)
            };
            removed = self.write_within("prune the feed", BUSY_MAX, remove).await?;
        }
        *self.sweep() = sweep;
        Ok(removed + looked)
    }

    fn sweep(&self) -> std::sync::MutexGuard<'_, Sweep> {
        self.shared.sweep.lock().expect("no holder of the lock panics")
    }
}

fn waste(connection: &Connection, relation: &Resolved, mut sweep: Sweep) -> Result<Waste, Failure> {
    let meta = Meta::demand(connection, relation, "prune the feed")?;
    let stem = relation.names.stem();
    let mut passed = connection.prepare_cached(include_str!("sql/consumer/passed.sql"))?;
    let (passed, sum): (Option<i64>, i64) =
        passed.query_row([stem], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut doubtful = connection.prepare_cached(&relation.statements.pruning.doubtful)?;
    let mut tombstones = doubtful.exists([1])?;
    let (mut numbers, mut looked) = (None, 0);
    if let Some(passed) = passed {
        tombstones |= is_trusted(&meta, relation)
            && connection.prepare_cached(&relation.statements.pruning.passed)?.exists([passed])?;
        let mut head = connection.prepare_cached(&relation.statements.head)?;
        let newest = head.query_row([], |row| row.get(0))?;
        (numbers, looked) = sweep.find(connection, relation, (newest, sum))?;
    }
    Ok(Waste { passed, tombstones, numbers, looked, sweep })
}

impl Sweep {
    /// The next numbers, if one of them is outdated; and about how many were looked at, 0 if there
    /// is nothing to look at.
    fn find(
        &mut self,
        connection: &Connection,
        relation: &Resolved,
        seen: Seen,
    ) -> Result<(Option<(i64, i64)>, u64), Failure> {
        let mut span = connection.prepare_cached(&relation.statements.pruning.span)?;
        // A round that ends where it began saw everything there is.
        while self.clean != Some(seen) {
            let began = *self.began.get_or_insert(seen);
            let from = self.place;
            let to: Option<i64> = span.query_row([from, SWEPT_AT_ONCE], |row| row.get(0))?;
            let Some(to) = to else {
                *self = Self { clean: Some(began), ..Self::default() };
                continue;
            };
            self.place = to;
            let mut outdated = connection.prepare_cached(&relation.statements.pruning.outdated)?;
            let found = outdated.exists(params![from, to, relation.names.stem(), STAMPS_KEPT])?;
            return Ok((found.then_some((from, to)), SWEPT_AT_ONCE.unsigned_abs()));
        }
        Ok((None, 0))
    }
}

fn remove(connection: &Connection, relation: &Resolved, waste: &Waste) -> Result<u64, Failure> {
    let meta = Meta::demand(connection, relation, "prune the feed")?;
    let mut removed = settle_doubts(connection, relation)?;
    let stem = relation.names.stem();
    if let Some(passed) = waste.passed.filter(|_| is_trusted(&meta, relation)) {
        let mut prune = connection.prepare_cached(&relation.statements.pruning.prune)?;
        let versions = prune
            .query_map(params![passed, SOURCE_WRITE_ROWS_MAX], |row| row.get(0))?
            .collect::<Result<Vec<i64>, _>>()?;
        if let Some(floor) = versions.iter().max() {
            let mut raise =
                connection.prepare_cached(include_str!("sql/capture/raise_floor.sql"))?;
            raise.execute(params![stem, floor])?;
        }
        removed += versions.len();
    }
    if let Some((from, to)) = waste.numbers {
        let mut sweep = connection.prepare_cached(&relation.statements.pruning.sweep)?;
        removed += sweep.execute(params![from, to, stem, STAMPS_KEPT])?;
    }
    Ok(removed as u64)
}

/// Documents may be newer than a tombstone: what nothing recorded is told by it alone, so that it
/// stays until the feed is filled anew.
fn is_trusted(meta: &Meta, relation: &Resolved) -> bool {
    matches!(meta.judge(relation).state, CaptureState::Trusted(_))
}

/// Asks the table about some rows that a REPLACE may have removed. No number is drawn: they have
/// theirs, and were delivered by what the table said then.
fn settle_doubts(connection: &Connection, relation: &Resolved) -> Result<usize, Failure> {
    let mut doubtful = connection.prepare_cached(&relation.statements.pruning.doubtful)?;
    let keys = doubtful
        .query_map([SOURCE_WRITE_ROWS_MAX], |row| Ok(bytes(row, 0)?.to_vec()))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut settle = connection.prepare_cached(&relation.statements.pruning.settle)?;
    for key in &keys {
        let there = has_row(connection, relation, key)?;
        settle.execute(params![Stored(key), if there { LIVE } else { TOMBSTONE }])?;
    }
    Ok(keys.len())
}
