//! What stands of capture, against what should.

use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use super::names::{FeedNames, TableName, literal, quote};
use super::statements::{arrays, template};
use super::triggers::{Function, SETTINGS, Trigger, Wanted};

/// What differs from what `install` would make.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Functions that are not there, or are others.
    pub functions: Vec<Function>,
    /// Triggers that are not there, or are others.
    pub triggers: Vec<Trigger>,
    /// Triggers of ours that nobody wants any more: the table and the name.
    pub strays: Vec<(TableName, String)>,
    /// All of it, one line each.
    pub lines: Vec<String>,
}

struct Standing {
    table: TableName,
    name: String,
    kind: i16,
    always: bool,
    rows: String,
    function: (String, String),
}

impl Differences {
    pub async fn find(
        reading: &mut Transaction,
        names: &FeedNames,
        relations: &[TableName],
        wanted: &Wanted,
    ) -> Result<Self, Failure> {
        let standing = triggers(reading, names, relations).await?;
        let functions = functions(reading, names).await?;
        let mut found = Self::default();
        let settings: Vec<String> =
            SETTINGS.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for function in &wanted.functions {
            let same = functions.iter().find(|(name, ..)| *name == function.name);
            let line = match same {
                None => "is missing",
                Some((_, body, definer, own)) => {
                    let fits =
                        own.len() == settings.len() && settings.iter().all(|one| own.contains(one));
                    if *body == function.body && *definer && fits {
                        continue;
                    }
                    "is another"
                }
            };
            found.lines.push(format!("the function truekeep.{} {line}", quote(&function.name)));
            found.functions.push(function.clone());
        }
        for trigger in &wanted.triggers {
            let same = |own: &&Standing| own.table == trigger.table && own.name == trigger.name;
            let line = match standing.iter().find(same) {
                None => "is missing",
                Some(own) if !own.always => "does not always fire",
                Some(own)
                    if own.kind != trigger.kind
                        || own.rows != trigger.rows
                        || own.function != (trigger.function.clone(), "truekeep".into()) =>
                {
                    "is another"
                }
                Some(_) => continue,
            };
            let (name, table) = (quote(&trigger.name), trigger.table.quoted());
            found.lines.push(format!("the trigger {name} on {table} {line}"));
            found.triggers.push(trigger.clone());
        }
        for own in standing {
            let known = |wanted: &Trigger| wanted.table == own.table && wanted.name == own.name;
            if !wanted.triggers.iter().any(known) {
                let (name, table) = (quote(&own.name), own.table.quoted());
                found.lines.push(format!("the trigger {name} on {table} is of other rules"));
                found.strays.push((own.table, own.name));
            }
        }
        Ok(found)
    }
}

/// All triggers of a feed that stand, on whichever of the tables.
async fn triggers(
    reading: &mut Transaction,
    names: &FeedNames,
    relations: &[TableName],
) -> Result<Vec<Standing>, Failure> {
    let (schemas, tables) = arrays(relations);
    let sql = template(
        include_str!("../../sql/signature/triggers.sql"),
        &[
            ("schemas", &schemas),
            ("tables", &tables),
            ("triggers", &literal(&names.triggers_like())),
        ],
    );
    let rows = reading.rows(Transaction::query(sql)).await?;
    let read = |row: &truekeep_postgres::sqlx::postgres::PgRow| {
        Ok(Standing {
            table: TableName { schema: row.try_get(0)?, name: row.try_get(1)? },
            name: row.try_get(2)?,
            kind: row.try_get(3)?,
            always: row.try_get(4)?,
            rows: row.try_get(5)?,
            function: (row.try_get(6)?, row.try_get(7)?),
        })
    };
    rows.iter().map(read).collect()
}

type Held = (String, String, bool, Vec<String>);

/// All functions of a feed that stand.
async fn functions(reading: &mut Transaction, names: &FeedNames) -> Result<Vec<Held>, Failure> {
    let query = Transaction::query(include_str!("../../sql/signature/functions.sql"));
    let rows = reading.rows(query.bind(names.functions_like())).await?;
    let read = |row: &truekeep_postgres::sqlx::postgres::PgRow| {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
    };
    rows.iter().map(read).collect()
}
