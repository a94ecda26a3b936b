//! A relation as the catalogs describe it: what it is, its columns, its unique keys, its partitions.

use truekeep_core::code::Code;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use super::names::{TableName, quote};
use super::types::{PgType, halted, nearest};

const OPERATION: &str = "look at the table";

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub name: String,
    pub of: PgType,
    pub not_null: bool,
    /// Its collation, as SQL text, if its type has one.
    pub collation: Option<String>,
    /// Whether texts that differ are different to it.
    pub deterministic: bool,
}

/// A table that triggers stand on: the relation, or a partition of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub name: TableName,
    /// Whether it holds rows of its own, and no partitions.
    pub leaf: bool,
}

/// A relation that can be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub name: TableName,
    pub columns: Vec<TableColumn>,
    /// Its columns that hold for every row together, the primary key first.
    pub unique: Vec<Vec<String>>,
    pub primary: bool,
    /// Itself and its partitions.
    pub members: Vec<Member>,
    /// Whether rows come into it past statements on it: through a parent, or by a subscription.
    pub by_row: bool,
}

impl Table {
    /// Describes a table.
    ///
    /// # Errors
    /// `RELATION_MISSING`, or `RELATION_REFUSED` with the reason.
    pub async fn describe(reading: &mut Transaction, name: &str) -> Result<Self, Failure> {
        let (schema, rest) = name.split_once('.').unwrap_or(("", name));
        let find = Transaction::query(include_str!("../../sql/relation/find.sql"));
        let found = reading
            .rows(find.bind(name.to_owned()).bind(schema.to_owned()).bind(rest.to_owned()))
            .await?;
        let Some(row) = found.first() else { return Err(missing(reading, name).await?) };
        let oid: i64 = row.try_get(0)?;
        let name = TableName { schema: row.try_get(1)?, name: row.try_get(2)? };
        let (kind, persistence): (String, String) = (row.try_get(3)?, row.try_get(4)?);
        let (partition, policed, inherits): (bool, bool, bool) =
            (row.try_get(5)?, row.try_get(6)?, row.try_get(7)?);
        let refused = |why: &str| {
            halted(OPERATION, Code::RELATION_REFUSED, format!("{} {why}", name.quoted()))
        };
        let why = match (kind.as_str(), persistence.as_str()) {
            _ if name.schema == "truekeep" || name.schema.starts_with("pg_") => {
                "is no table of the application"
            }
            ("v" | "m", _) => "is a view: follow the tables behind it",
            ("f", _) => "is a foreign table: follow it where it is",
            ("r" | "p", "u") => "is unlogged: a crash empties it, and no trigger sees that",
            ("r" | "p", "t") => "is temporary",
            _ if inherits => "inherits or is inherited from: its rows stand in other tables",
            ("r" | "p", _) if policed => {
                "has row security for this role: some rows would be hidden; use its owner, or a role with BYPASSRLS"
            }
            ("r" | "p", _) => "",
            _ => "is no table",
        };
        if !why.is_empty() {
            return Err(refused(why));
        }
        let (members, subscribed) = members(reading, oid).await?;
        let columns = columns(reading, oid).await?;
        let (unique, primary) = unique(reading, oid).await?;
        Ok(Self { name, columns, unique, primary, members, by_row: partition || subscribed })
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// A column that must be there.
    ///
    /// # Errors
    /// `RELATION_MISSING`, with the nearest name.
    pub fn named(&self, name: &str) -> Result<&TableColumn, Failure> {
        self.column(name).ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            let near = nearest(name, names);
            let detail = format!("{} has no column {}{near}", self.name.quoted(), quote(name));
            halted(OPERATION, Code::RELATION_MISSING, detail)
        })
    }

    /// The columns of the primary key; empty if there is none.
    pub fn primary_key(&self) -> &[String] {
        if self.primary { &self.unique[0] } else { &[] }
    }
}

async fn missing(reading: &mut Transaction, name: &str) -> Result<Failure, Failure> {
    let rows =
        reading.rows(Transaction::query(include_str!("../../sql/relation/names.sql"))).await?;
    let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    let near = nearest(name, names.iter().map(String::as_str));
    Ok(halted(
        OPERATION,
        Code::RELATION_MISSING,
        format!("there is no table {}{near}", quote(name)),
    ))
}

async fn columns(reading: &mut Transaction, oid: i64) -> Result<Vec<TableColumn>, Failure> {
    let query = Transaction::query(include_str!("../../sql/relation/columns.sql"));
    let rows = reading.rows(query.bind(oid)).await?;
    let types = rows.iter().map(|row| row.try_get(1)).collect::<Result<Vec<i64>, _>>()?;
    let types = PgType::describe(reading, &types).await?;
    let made = rows.iter().zip(types).map(|(row, of)| {
        Ok(TableColumn {
            name: row.try_get(0)?,
            of,
            not_null: row.try_get(2)?,
            collation: row.try_get(3)?,
            deterministic: row.try_get(4)?,
        })
    });
    made.collect()
}

async fn unique(reading: &mut Transaction, oid: i64) -> Result<(Vec<Vec<String>>, bool), Failure> {
    let query = Transaction::query(include_str!("../../sql/relation/keys.sql"));
    let rows = reading.rows(query.bind(oid)).await?;
    let primary = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    let all = rows.iter().map(|row| row.try_get(1)).collect::<Result<Vec<_>, _>>()?;
    Ok((all, primary))
}

/// The relation with its partitions, and whether a subscription writes any of them.
async fn members(reading: &mut Transaction, oid: i64) -> Result<(Vec<Member>, bool), Failure> {
    let query = Transaction::query(include_str!("../../sql/relation/tree.sql"));
    let mut all = Vec::new();
    let mut subscribed = false;
    for row in reading.rows(query.bind(oid)).await? {
        let name = TableName { schema: row.try_get(1)?, name: row.try_get(2)? };
        let (kind, persistence): (String, String) = (row.try_get(3)?, row.try_get(4)?);
        let why = match (kind.as_str(), persistence.as_str()) {
            ("f", _) => "is a foreign table: no trigger sees what changes there",
            ("r", "u") => "is unlogged: a crash empties it, and no trigger sees that",
            _ => "",
        };
        if !why.is_empty() {
            let detail = format!("the partition {} {why}", name.quoted());
            return Err(halted(OPERATION, Code::RELATION_REFUSED, detail));
        }
        subscribed |= row.try_get::<bool, _>(5)?;
        all.push(Member { name, leaf: kind == "r" });
    }
    Ok((all, subscribed))
}
