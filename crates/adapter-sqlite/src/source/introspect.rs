//! What a database holds, for someone who is about to follow it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use truekeep_core::failure::PortError;
use truekeep_sqlite::{Access, Database, Failure, Options, Role};

use super::resolve::key;
use super::table::Table;
use truekeep_core::relation::{Column, RelationSpec};

/// A table, and whether it can be followed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// The name.
    pub name: String,
    /// The columns that `SELECT *` shows.
    pub columns: Vec<Column>,
    /// The primary key; empty if there is none.
    pub primary_key: Vec<String>,
    /// Why it cannot be followed without more being said; none if it can.
    pub refusal: Option<String>,
}

/// Lists the application's tables and views, by name.
///
/// # Errors
/// A [`PortError`] that names the path and what is wrong with it.
pub async fn introspect(path: &Path, busy: Duration) -> Result<Vec<TableShape>, PortError> {
    let options = Options { role: Role::Source, access: Access::Guest, busy };
    let database = Database::open(path, options).await?;
    database.call("list tables", |connection| shapes(connection)).await
}

fn shapes(connection: &Connection) -> Result<Vec<TableShape>, Failure> {
    let mut list = connection.prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'truekeep\\_%' ESCAPE '\\'
         ORDER BY name",
    )?;
    let names = list.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    names.into_iter().map(|name| shape(connection, name)).collect()
}

fn shape(connection: &Connection, name: String) -> Result<TableShape, Failure> {
    let spec = RelationSpec::of(&name);
    let told = |failure: Failure| match failure {
        Failure::Port(error) => Ok(error.detail),
        failure @ Failure::Sqlite(_) => Err(failure),
    };
    match Table::describe(connection, &name) {
        Ok(table) => {
            let refusal = key(&table, &spec).err().map(told).transpose()?;
            let visible = table.columns.iter().filter(|column| !column.hidden);
            let columns = visible.map(|column| Column {
                name: column.name.clone(),
                declared_type: column.declared.clone(),
            });
            let primary_key = table.primary_key();
            Ok(TableShape { name, columns: columns.collect(), primary_key, refusal })
        }
        Err(failure) => {
            let refusal = Some(told(failure)?);
            Ok(TableShape { name, columns: Vec::new(), primary_key: Vec::new(), refusal })
        }
    }
}
