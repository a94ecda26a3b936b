//! The audit: the feed held against the table, first every live feed row, then every row. It only
//! reads.
//!
//! A row that was changed past the triggers carries another row version than its feed row (X7): it is
//! found although both are there.

use truekeep_core::Key;
use truekeep_core::ports::AuditPage;
use truekeep_postgres::Transaction;
use truekeep_postgres::sqlx::Row;

use super::Worked;
use super::meta::unless_missing;
use super::resolve::Resolved;

const AUDIT: &str = "audit the feed";

/// Where a page begins.
enum Place {
    Feed(Option<String>),
    Table(Option<String>),
}

impl Place {
    fn parse(after: Option<&Key>) -> Self {
        match after.map(Key::as_str).and_then(|text| text.split_at_checked(1)) {
            None => Self::Feed(None),
            Some(("f", key)) => Self::Feed(Some(key.into())),
            Some((_, "")) => Self::Table(None),
            Some((_, place)) => Self::Table(Some(place[1..].into())),
        }
    }

    fn key(self) -> Key {
        match self {
            Self::Feed(key) => Key::new(format!("f{}", key.unwrap_or_default())),
            Self::Table(None) => Key::new("t"),
            Self::Table(Some(place)) => Key::new(format!("t:{place}")),
        }
    }
}

/// A feed row, and what the table says.
pub(super) struct FeedRow {
    pub key: String,
    pub there: bool,
}

/// The next live feed rows, tombstones too if it is `all`, in the order of their keys.
pub(super) async fn feed_rows(
    transaction: &mut Transaction,
    relation: &Resolved,
    after: Option<&str>,
    limit: usize,
    all: bool,
) -> Worked<Vec<FeedRow>> {
    let query = Transaction::query(relation.statements.audit_feed.clone())
        .bind(after.map(str::to_owned))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(all);
    let rows = transaction.rows(query).await;
    let rows = rows.map_err(|error| unless_missing(AUDIT, relation, error))?;
    let read = |row: &truekeep_postgres::sqlx::postgres::PgRow| {
        Ok(FeedRow {
            key: row.try_get(0)?,
            there: row.try_get::<Option<bool>, _>(1)?.unwrap_or(false),
        })
    };
    rows.iter().map(read).collect()
}

/// One page.
pub(super) async fn page(
    reading: &mut Transaction,
    relation: &Resolved,
    after: Option<&Key>,
    limit: usize,
) -> Worked<AuditPage> {
    let mut page = AuditPage::default();
    match Place::parse(after) {
        Place::Feed(after) => {
            let rows = feed_rows(reading, relation, after.as_deref(), limit, false).await?;
            page.seen = rows.len() as u64;
            let last = rows.last().filter(|_| rows.len() == limit).map(|row| row.key.clone());
            page.next = Some(match last {
                Some(last) => Place::Feed(Some(last)).key(),
                None => Place::Table(None).key(),
            });
            page.ghosts =
                rows.into_iter().filter(|row| !row.there).map(|row| Key::new(row.key)).collect();
        }
        Place::Table(after) => {
            let [first, later] = &relation.statements.audit_table;
            let bound = i64::try_from(limit).unwrap_or(i64::MAX);
            let query = match after {
                None => Transaction::query(first.clone()).bind(bound),
                Some(place) => Transaction::query(later.clone()).bind(bound).bind(place),
            };
            let rows = reading.rows(query).await;
            let rows = rows.map_err(|error| unless_missing(AUDIT, relation, error))?;
            page.seen = rows.len() as u64;
            for (nth, row) in rows.iter().enumerate() {
                let key: String = row.try_get(0)?;
                if nth + 1 == limit {
                    page.next = Some(Place::Table(Some(key.clone())).key());
                }
                if !row.try_get::<bool, _>(1)? {
                    page.missed.push(Key::new(key));
                }
            }
        }
    }
    Ok(page)
}
