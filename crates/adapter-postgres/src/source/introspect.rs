//! What a database holds, for someone who is about to follow it.

use std::time::Duration;

use truekeep_core::failure::PortError;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Access, Database, Failure, Options, Role, Transaction};

use super::READ_MAX;
use super::key::KeyShape;
use super::table::Table;
use truekeep_core::relation::Column;

/// A table, and whether it can be followed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// The name, with its schema where that is needed.
    pub name: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The primary key; empty if there is none.
    pub primary_key: Vec<String>,
    /// Why it cannot be followed without more being said; none if it can.
    pub refusal: Option<String>,
}

/// Lists the application's tables, by name.
///
/// # Errors
/// A [`PortError`] that names the place and what is wrong with it.
pub async fn introspect(address: &str, patience: Duration) -> Result<Vec<TableShape>, PortError> {
    let options = Options { patience, ..Options::of(Role::Source) };
    let database = Database::open(address, options).await?;
    let access = Access::Snapshot { of: &[], statement_max: READ_MAX };
    let mut reading = database.begin("list tables", access).await?;
    let found = shapes(&mut reading).await;
    reading.end(found).await
}

async fn shapes(reading: &mut Transaction) -> Result<Vec<TableShape>, Failure> {
    let query = Transaction::query(include_str!("../../sql/relation/names.sql"));
    let mut all = Vec::new();
    for row in reading.rows(query).await? {
        all.push(shape(reading, row.try_get(0)?).await?);
    }
    Ok(all)
}

fn told(failure: Failure) -> Result<String, Failure> {
    match failure {
        Failure::Port(error) => Ok(error.detail),
        failure @ Failure::Postgres(_) => Err(failure),
    }
}

async fn shape(reading: &mut Transaction, name: String) -> Result<TableShape, Failure> {
    match Table::describe(reading, &name).await {
        Ok(table) => {
            let refusal = KeyShape::of(&table, &[], false).err().map(told).transpose()?;
            let columns = table.columns.iter().map(|column| Column {
                name: column.name.clone(),
                declared_type: column.of.name.clone(),
            });
            let primary_key = table.primary_key().to_vec();
            Ok(TableShape { name, columns: columns.collect(), primary_key, refusal })
        }
        Err(failure) => {
            let refusal = Some(told(failure)?);
            Ok(TableShape { name, columns: Vec::new(), primary_key: Vec::new(), refusal })
        }
    }
}
