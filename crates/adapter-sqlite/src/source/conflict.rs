//! Which row a REPLACE would remove: conditions over a table and the row that is about to come.
//!
//! The table stands under its own name and the new row as `NEW`, so the text of an index's own
//! expressions can be used as it is: evaluated over the table, and over a one-row select of the
//! new row's columns that bears the table's name.

use super::names::quote;
use super::table::{Table, Term, Unique};
use super::tokens::{name, tokens};

/// The event that a BEFORE trigger stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Insert,
    Update,
}

impl Event {
    pub fn sql(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
        }
    }
}

/// How rows collide over one unique index.
#[derive(Debug)]
pub(super) struct Conflict {
    /// True of the row that would be removed, over the table's own name.
    pub rows: String,
    /// False if there surely is none, without looking into the table.
    pub guard: Option<String>,
}

/// The collision of the row `NEW` with another one over a unique index.
pub(super) fn conflict(table: &Table, unique: &Unique, event: Event) -> Conflict {
    let own = quote(&table.name);
    let mut rows = Vec::new();
    let mut changes = Vec::new();
    let mut plain = true;
    match unique {
        Unique::RowNumber(name) => {
            rows.push(format!("{own}.{name} = NEW.{name}"));
            changes.push(format!("OLD.{name} IS NOT NEW.{name}"));
        }
        Unique::Index { terms, condition, .. } => {
            for term in terms {
                let (row, change) = equal(table, &own, term);
                rows.push(row);
                plain &= change.is_some();
                changes.extend(change);
            }
            if let Some(condition) = condition {
                plain = false;
                rows.push(format!("({condition})"));
                rows.push(over_new(table, &format!("({condition})")));
            }
        }
    }
    if event == Event::Update {
        rows.push(format!("NOT ({})", same_row(table, &own)));
    }
    let guard = (event == Event::Update && plain).then(|| format!("({})", changes.join(" OR ")));
    Conflict { rows: rows.join(" AND "), guard }
}

/// That a term is equal in the row and in NEW; that it changed, if that is told without a look.
fn equal(table: &Table, own: &str, term: &Term) -> (String, Option<String>) {
    match term {
        Term::Column { name, collation } => {
            let column = table.column(name);
            let quoted = quote(name);
            let collate = match column {
                Some(column) if column.collation == *collation => String::new(),
                _ => format!(" COLLATE {}", quote(collation)),
            };
            // A NULL in a NOT NULL column becomes its default after the trigger, under REPLACE.
            let new = match column.and_then(|c| c.default.as_ref().filter(|_| c.not_null)) {
                Some(default) => format!("ifnull(NEW.{quoted}, ({default}))"),
                None => format!("NEW.{quoted}"),
            };
            let row = format!("{own}.{quoted}{collate} = {new}");
            (row, Some(format!("OLD.{quoted}{collate} IS NOT NEW.{quoted}")))
        }
        Term::Expression { text, collation } => {
            let collate = match collation.as_str() {
                "BINARY" => String::new(),
                other => format!(" COLLATE {}", quote(other)),
            };
            (format!("({text}){collate} = {}", over_new(table, &format!("({text})"))), None)
        }
    }
}

/// An expression over the new row's columns, of those that it names: any other column may be
/// dropped, which SQLite refuses while a trigger names it.
fn over_new(table: &Table, expression: &str) -> String {
    let words: Vec<String> = tokens(expression).iter().filter_map(name).collect();
    let mut columns: Vec<String> = table
        .columns
        .iter()
        .filter(|column| words.iter().any(|word| word.eq_ignore_ascii_case(&column.name)))
        .map(|column| format!("NEW.{0} AS {0}", quote(&column.name)))
        .collect();
    if columns.is_empty() {
        columns.push("NULL".into());
    }
    format!("(SELECT {expression} FROM (SELECT {}) AS {})", columns.join(", "), quote(&table.name))
}

/// That a row is the one that is being updated.
fn same_row(table: &Table, own: &str) -> String {
    match &table.row_number {
        Some(number) => format!("{own}.{number} = OLD.{number}"),
        None => {
            let same = |name: &String| format!("{own}.{0} = OLD.{0}", quote(name));
            table.primary_key().iter().map(same).collect::<Vec<_>>().join(" AND ")
        }
    }
}
