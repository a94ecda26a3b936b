//! What an operator can do for a source that is right but slow: indexes that are missing, and
//! transactions that are open for long.

use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_core::relation::{Cause, Unindexed, Watch};
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Access, Failure, Transaction};

use super::names::quote;
use super::projection::Source;
use super::resolve::Resolved;
use super::table::Table;
use super::{PostgresSource, READ_MAX};

/// A transaction that is open for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Its process or its name, whose it is, and in which database.
    pub who: String,
    /// For how long it is open.
    pub age: Duration,
}

impl PostgresSource {
    /// The tables that are looked through as a whole because of what is watched, and what helps.
    ///
    /// # Errors
    /// The source's.
    pub async fn unindexed(&self) -> Result<Vec<Unindexed>, PortError> {
        let (mut reading, relation) = self.reading("look for indexes").await?;
        let found = unindexed(&mut reading, &relation, &self.spec.watch).await;
        reading.end(found).await
    }

    /// Transactions of the whole server, prepared ones too, that are open for longer than this, the
    /// oldest first. No moment waits for them; what is removed of a feed takes room until they end.
    ///
    /// # Errors
    /// The source's.
    pub async fn open_transactions(
        &self,
        longer_than: Duration,
    ) -> Result<Vec<OpenTransaction>, PortError> {
        let access = Access::Snapshot { of: &[], statement_max: READ_MAX };
        let mut reading = self.database.begin("look for open transactions", access).await?;
        let query = Transaction::query(include_str!("../../sql/server/open.sql"))
            .bind(i64::try_from(longer_than.as_secs()).unwrap_or(i64::MAX));
        let rows = reading.rows(query).await.map_err(Failure::from);
        let read = |row: &truekeep_postgres::sqlx::postgres::PgRow| {
            let age = row.try_get::<i64, _>(1)?.unsigned_abs();
            Ok(OpenTransaction { who: row.try_get(0)?, age: Duration::from_secs(age) })
        };
        let found = rows.and_then(|rows| rows.iter().map(read).collect());
        reading.end(found).await
    }
}

async fn unindexed(
    reading: &mut Transaction,
    relation: &Resolved,
    watches: &[Watch],
) -> Result<Vec<Unindexed>, Failure> {
    let by_columns = matches!(relation.selection.source, Source::Columns(_));
    let mut all = Vec::new();
    for watch in watches {
        let (table, columns, cause) = match watch {
            Watch::Parent { table, via, .. } => {
                (relation.table.clone(), via, Cause::Change(table.clone()))
            }
            // Documents of columns read no other table.
            Watch::Child { .. } if by_columns => continue,
            Watch::Child { table, key } => {
                (Table::describe(reading, table).await?, key, Cause::Document)
            }
        };
        let query = Transaction::query(include_str!("../../sql/relation/leading.sql"))
            .bind(table.name.quoted())
            .bind(columns.clone());
        if reading.row(query).await?.try_get(0)? {
            continue;
        }
        let names: Vec<String> = columns.iter().map(|name| quote(name)).collect();
        // One that several tables have is made of each alone, and locks them.
        let calmly = if table.members.len() > 1 { "" } else { "CONCURRENTLY " };
        let (name, names) = (table.name.quoted(), names.join(", "));
        let indexes = vec![format!("CREATE INDEX {calmly}ON {name} ({names})")];
        all.push(Unindexed { table: table.name.name, cause, indexes });
    }
    Ok(all)
}
