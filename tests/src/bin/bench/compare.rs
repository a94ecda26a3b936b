//! The comparison of source and mirror against a bare merge of two ordered scans.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use truekeep::diff::compare;
use truekeep_core::{Place, RulesNumber, Version};
use truekeep_engine::{Comparison, Sides};

use crate::measure::{Bar, Figure, timed};
use crate::{database, load};

/// Compares equal sides, and sides with a thousand scattered differences.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, mirror, ledger] = database::files(folder.path());
    database::make(&source, rows)?;
    let runtime = database::runtime()?;
    let port = runtime.block_on(database::source(&source))?;
    runtime.block_on(database::capture(&port))?;
    runtime.block_on(load::follow(&port, &mirror, &ledger))?;
    let mut figures = Vec::new();
    for differences in [0, 1_000] {
        if let Some(step) = rows.checked_div(differences) {
            let step = i64::try_from(step)?.max(1);
            Connection::open(&mirror)?
                .execute("DELETE FROM product WHERE id % ?1 = 0 AND id / ?1 <= 1000", [step])?;
        }
        let (equal, bare) = timed(|| merge(&source, &mirror))?;
        let (same, bare_deep) = timed(|| look_up(&source, &mirror))?;
        for (what, kind, bare, bar) in [
            ("comparison", Kind::Ranks, bare, Bar::AtMost(1.5)),
            ("diff with audit", Kind::Audited, bare, Bar::AtMost(3.0)),
            ("comparison of documents", Kind::Documents, bare_deep, Bar::Stated),
        ] {
            let whole = || runtime.block_on(whole(&port, &mirror, &ledger, kind));
            let (found, ours) = timed(whole)?;
            if equal + found != rows || same != equal {
                return Err(format!("{equal} equal and {found} different of {rows}").into());
            }
            figures.push(times(&format!("{what}, {found} differences"), rows, ours, bare, bar));
        }
    }
    Ok(figures)
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Keys and ranks.
    Ranks,
    /// Documents too.
    Documents,
    /// Keys and ranks, and the feed with its table.
    Audited,
}

/// A figure of "times as long as".
fn times(name: &str, rows: u64, ours: Duration, bare: Duration, bar: Bar) -> Figure {
    let mut figure = Figure::rates(name, rows, ours, bare, bar);
    figure.value = ours.as_secs_f64() / bare.as_secs_f64();
    figure
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

async fn whole(
    source: &truekeep_adapter_sqlite::SqliteSource,
    mirror: &Path,
    ledger: &Path,
    kind: Kind,
) -> Result<u64, Box<dyn Error>> {
    let pipeline = database::pipeline(source, database::mirror(mirror).await?)?;
    let ports = database::ports(ledger).await?;
    let sides = Sides {
        scope: pipeline.scope.clone(),
        rules: RulesNumber::new(1),
        cursor: Place::at(Version::new(u64::MAX - 1)),
        deep: kind == Kind::Documents,
        feed: pipeline.feed.as_ref(),
        records: pipeline.records.as_ref(),
        sink: pipeline.sink.as_ref(),
        items: ports.items.as_ref(),
    };
    Ok(if kind == Kind::Audited {
        compare(&sides, source, |_| {}).await?.drift()
    } else {
        let (mut comparison, mut drift) = (Comparison::begin(sides, None, 1_000), 0);
        while let Some(stretch) = comparison.advance().await? {
            drift += stretch.drifts.len() as u64;
        }
        drift
    })
}
