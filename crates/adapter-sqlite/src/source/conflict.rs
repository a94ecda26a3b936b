//! Which row a REPLACE would remove: conditions over a table and the row that is about to come.
//!
//! The table stands under its own name and the new row as `NEW`, so the text of an index's own
//! expressions can be used as it is: evaluated over the table, and over a one-row select of the
//! new row's columns that bears the table's name.

use super::names::quote;
use super::table::{Affinity, Table, TableColumn, Term, Unique};
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
                // Without it one row more is found at most: the index has no two.
                if !numbers_rows(table, condition) {
                    rows.push(over_new(table, &format!("({condition})")));
                }
            }
            rows.extend(loads(table, terms, condition.as_deref()));
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
            if column.is_some_and(|column| column.generated.is_some()) {
                let collate = format!(" COLLATE {}", quote(collation));
                let new = over_new(table, &quoted);
                return (format!("{own}.{quoted}{collate} = {new}"), None);
            }
            let collate = match column {
                Some(column) if column.collation == *collation => String::new(),
                _ => format!(" COLLATE {}", quote(collation)),
            };
            // A NULL in a NOT NULL column becomes its default after the trigger, under REPLACE.
            let new = match column.and_then(replacement) {
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

/// What REPLACE puts in the place of a NULL.
fn replacement(column: &TableColumn) -> Option<&String> {
    column.default.as_ref().filter(|_| column.not_null)
}

/// Whether a condition names the row's number, which a row to come may not have yet.
fn numbers_rows(table: &Table, condition: &str) -> bool {
    let words: Vec<String> = tokens(condition).iter().filter_map(name).collect();
    table.sources(condition).iter().any(|source| table.alias.as_ref() == Some(&source.name))
        || ["rowid", "_rowid_", "oid"]
            .iter()
            .any(|number| words.iter().any(|word| word.eq_ignore_ascii_case(number)))
}

/// True, and names what NEW's generated columns come from: before an update SQLite gives NEW only
/// what a trigger names, and makes the generated columns from NULL for the rest.
fn loads(table: &Table, terms: &[Term], condition: Option<&str>) -> Vec<String> {
    let texts = terms.iter().map(|term| match term {
        Term::Column { name, .. } => quote(name),
        Term::Expression { text, .. } => text.clone(),
    });
    let mut names = Vec::new();
    for text in texts.chain(condition.map(str::to_owned)) {
        if table.named_in(&text).iter().any(|column| column.generated.is_some()) {
            names.extend(table.sources(&text).iter().map(|source| quote(&source.name)));
        }
    }
    names.sort();
    names.dedup();
    names.iter().map(|name| format!("NEW.{name} IS NEW.{name}")).collect()
}

/// An expression over the new row's columns. A NULL that REPLACE makes a default is still a NULL in
/// NEW, and what is generated from it is not yet what it will be.
fn over_new(table: &Table, expression: &str) -> String {
    let nulls: Vec<String> = table
        .sources(expression)
        .into_iter()
        .filter(|source| replacement(source).is_some())
        .map(|source| format!("NEW.{} IS NULL", quote(&source.name)))
        .collect();
    let plain = |column: &TableColumn| format!("NEW.{}", quote(&column.name));
    let given = select(table, expression, &plain);
    if nulls.is_empty() {
        return given;
    }
    let replaced = select(table, expression, &|column| replaced(table, column, &[]));
    format!("CASE WHEN {} THEN {replaced} ELSE {given} END", nulls.join(" OR "))
}

/// The value of a column of the new row once defaults are in the places of NULLs. `above` are the
/// columns that are being made: a word that spells one of them is a type or a collation.
fn replaced(table: &Table, column: &TableColumn, above: &[&str]) -> String {
    let new = format!("NEW.{}", quote(&column.name));
    match (&column.generated, replacement(column)) {
        (Some(_), _) if above.contains(&column.name.as_str()) => "NULL".into(),
        (Some(text), _) => {
            let above = [above, &[column.name.as_str()]].concat();
            let value = select(table, text, &|column| replaced(table, column, &above));
            stored(column.affinity, &value)
        }
        (None, Some(default)) => stored(column.affinity, &format!("ifnull({new}, ({default}))")),
        (None, None) => new,
    }
}

/// A value as a column stores it.
fn stored(affinity: Affinity, value: &str) -> String {
    match affinity {
        Affinity::Blob => value.to_owned(),
        Affinity::Text => {
            format!(
                "CASE WHEN typeof({value}) = 'blob' THEN {value} ELSE CAST({value} AS TEXT) END"
            )
        }
        // A text stays one unless it is a number as a whole.
        Affinity::Integer | Affinity::Numeric => format!(
            "CASE WHEN typeof({value}) = 'text' AND CAST({value} AS NUMERIC) = {value} \
             THEN CAST({value} AS NUMERIC) ELSE {value} END"
        ),
        Affinity::Real => format!(
            "CASE WHEN typeof({value}) = 'integer' OR \
             (typeof({value}) = 'text' AND CAST({value} AS NUMERIC) = {value}) \
             THEN CAST({value} AS REAL) ELSE {value} END"
        ),
    }
}

/// An expression over a row of those columns that it names: any other column may be dropped, which
/// SQLite refuses while a trigger names it.
fn select(table: &Table, expression: &str, value: &dyn Fn(&TableColumn) -> String) -> String {
    let mut columns: Vec<String> = table
        .named_in(expression)
        .into_iter()
        .map(|column| format!("{} AS {}", value(column), quote(&column.name)))
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
