//! The comparison of source and mirror against a bare merge of two ordered scans, and the repair.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use truekeep::diff::{Means, compare};
use truekeep::reconcile::Wish;
use truekeep_core::compare::Owns;
use truekeep_core::ports::Sink;
use truekeep_core::reconcile::Terms;
use truekeep_core::{PipelineName, Place, RulesNumber, Version};
use truekeep_engine::{Comparison, Sides};

use crate::measure::{Bar, Figure, median, timed};
use crate::{database, load};

/// How often each is measured, in turn with the bare loops of the same round: the middle is told.
const ROUNDS: usize = 5;

/// Keys that are made to differ.
const DIFFERENCES: u64 = 1_000;

/// Compares equal sides, and sides with scattered differences; then repairs those.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, mirror, ledger] = database::files(folder.path());
    database::make(&source, rows)?;
    let runtime = database::runtime()?;
    let port = runtime.block_on(database::source(&source))?;
    runtime.block_on(database::capture(&port))?;
    runtime.block_on(load::follow(&port, &mirror, &ledger))?;
    let step = i64::try_from(rows / DIFFERENCES)?.max(1);
    let scattered = format!("id % {step} = 0 AND id / {step} <= {DIFFERENCES}");
    let (mut figures, mut merge_took) = (Vec::new(), Duration::ZERO);
    for differences in [false, true] {
        if differences {
            Connection::open(&mirror)?
                .execute(&format!("DELETE FROM product WHERE {scattered}"), [])?;
        }
        let (mut bare, mut took) = ([const { Vec::new() }; 2], [const { Vec::new() }; 3]);
        let mut found = 0;
        for _ in 0..ROUNDS {
            let (equal, merged) = timed(|| merge(&source, &mirror))?;
            let (same, looked) = timed(|| look_up(&source, &mirror))?;
            bare[0].push(merged);
            bare[1].push(looked);
            for (kind, took) in [Kind::Ranks, Kind::Audited, Kind::Documents].iter().zip(&mut took)
            {
                let mirror = runtime.block_on(database::mirror(&mirror))?;
                let whole = || runtime.block_on(whole(&port, mirror, &ledger, *kind));
                let compared;
                (found, compared) = timed(whole)?;
                took.push(compared);
                if equal + found != rows || same != equal {
                    return Err(format!("{equal} equal and {found} different of {rows}").into());
                }
            }
        }
        let [merged, looked] = bare.map(median);
        let [ranks, audited, documents] = took.map(median);
        for (what, ours, bare, bar) in [
            ("comparison", ranks, merged, Bar::AtMost(1.5)),
            ("diff with audit", audited, merged, Bar::AtMost(3.0)),
            ("comparison of documents", documents, looked, Bar::Stated),
        ] {
            let name = format!("{what}, {found} differences");
            figures.push(Figure::times(&name, rows, ours, bare, bar));
        }
        merge_took = merged;
    }
    let ((), repaired) = timed(|| runtime.block_on(reconcile(&port, &mirror, &ledger)))?;
    let equal = merge(&source, &mirror)?;
    if equal != rows {
        return Err(format!("{equal} equal of {rows} after the repair").into());
    }
    Connection::open(&source)?
        .execute(&format!("UPDATE product SET changed = changed + 1 WHERE {scattered}"), [])?;
    let (_, delivered) = timed(|| runtime.block_on(load::follow(&port, &mirror, &ledger)))?;
    let name = format!("reconcile of {DIFFERENCES} differences, without their delivery");
    let repaired = repaired.saturating_sub(delivered);
    figures.push(Figure::times(&name, rows, repaired, merge_took, Bar::AtMost(3.0)));
    Ok(figures)
}

/// A reconcile that an operator wishes for, to its end.
async fn reconcile(
    source: &truekeep_adapter_sqlite::SqliteSource,
    mirror: &Path,
    ledger: &Path,
) -> Result<(), Box<dyn Error>> {
    let ports = database::ports(ledger).await?;
    let (ledger_port, entropy) = (ports.ledger.as_ref(), ports.entropy.as_ref());
    let name = PipelineName::parse("product")?;
    let wish = Wish::make(ledger_port, entropy, &name, Terms::default()).await?;
    load::follow(source, mirror, ledger).await?;
    let standing = wish.standing(ledger_port, entropy).await?;
    if standing.active || standing.code.is_some() {
        return Err(format!("{standing:?}").into());
    }
    Ok(())
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keys and ranks.
    Ranks,
    /// Documents too.
    Documents,
    /// Keys and ranks, and the feed with its table.
    Audited,
}

/// A bare merge of (key, version) of both sides; returns how many are equal.
fn merge(source: &Path, mirror: &Path) -> Result<u64, Box<dyn Error>> {
    let (source, mirror) = (Connection::open(source)?, Connection::open(mirror)?);
    let feed: String = source.query_row(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'truekeep_feed_*'",
        [],
        |row| row.get(0),
    )?;
    let mut left = source.prepare(&format!("SELECT key, version FROM \"{feed}\" ORDER BY key"))?;
    let mut right = mirror.prepare("SELECT _key, _version FROM product ORDER BY _key")?;
    let (mut left, mut right) = (left.query([])?, right.query([])?);
    let pair = |row: Option<&rusqlite::Row<'_>>| -> rusqlite::Result<Option<(String, i64)>> {
        row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
    };
    let (mut a, mut b) = (pair(left.next()?)?, pair(right.next()?)?);
    let mut equal = 0;
    while let (Some(one), Some(other)) = (&a, &b) {
        equal += u64::from(one == other);
        let (step_left, step_right) = (one.0 <= other.0, other.0 <= one.0);
        if step_left {
            a = pair(left.next()?)?;
        }
        if step_right {
            b = pair(right.next()?)?;
        }
    }
    Ok(equal)
}

/// A bare look-up of the source's row for each record of the mirror, column by column; returns how
/// many are equal.
fn look_up(source: &Path, mirror: &Path) -> Result<u64, Box<dyn Error>> {
    let (source, mirror) = (Connection::open(source)?, Connection::open(mirror)?);
    let columns = database::COLUMNS.join(", ");
    let mut left = source.prepare(&format!("SELECT {columns} FROM product WHERE id = ?1"))?;
    let mut right =
        mirror.prepare(&format!("SELECT {columns}, _key FROM product ORDER BY _key"))?;
    let mut right = right.query([])?;
    let mut equal = 0;
    while let Some(held) = right.next()? {
        let id: String = held.get(database::COLUMNS.len())?;
        let mut rows = left.query([id.parse::<i64>()?])?;
        let Some(row) = rows.next()? else { continue };
        let mut same = true;
        for column in 0..database::COLUMNS.len() {
            same &= row.get_ref(column)? == held.get_ref(column)?;
        }
        equal += u64::from(same);
    }
    Ok(equal)
}

/// Compares both sides; returns how many differences there are.
pub async fn whole(
    source: &impl database::Source,
    sink: impl Sink + 'static,
    ledger: &Path,
    kind: Kind,
) -> Result<u64, Box<dyn Error>> {
    let pipeline = database::pipeline(source, sink)?;
    let ports = database::ports(ledger).await?;
    let sides = Sides {
        scope: pipeline.scope.clone(),
        rules: RulesNumber::new(1),
        cursor: Place::at(Version::new(u64::MAX - 1)),
        since: None,
        deep: kind == Kind::Documents,
        owns: Owns::All,
        feed: pipeline.feed.as_ref(),
        records: pipeline.records.as_ref(),
        sink: pipeline.sink.as_ref(),
        items: ports.items.as_ref(),
    };
    let means = Means { capture: source, spill: ports.spill.as_ref(), clock: ports.clock.as_ref() };
    Ok(if kind == Kind::Audited {
        compare(&sides, means, |_| {}).await?.drift()
    } else {
        let (mut comparison, mut drift) = (Comparison::begin(sides, None, 1_000), 0);
        while let Some(stretch) = comparison.advance_by(8).await? {
            drift += stretch.drifts.len() as u64;
        }
        drift
    })
}
