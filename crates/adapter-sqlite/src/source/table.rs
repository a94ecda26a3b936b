//! A table as its schema describes it: columns, row identity, and everything that keeps rows unique.
//!
//! Every unique index is described or the table is refused: capture must foresee each row that a
//! REPLACE may remove.

use rusqlite::{Connection, OptionalExtension};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::Failure;

use super::names::quote;
use super::tokens::{generated, index_text, name, tokens};

/// What a column turns values into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    Text,
    Integer,
    Real,
    Numeric,
    Blob,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub name: String,
    /// The type as it was declared; may be empty.
    pub declared: String,
    pub not_null: bool,
    /// The default as SQL text.
    pub default: Option<String>,
    /// The place in the primary key, from 1; 0 outside it.
    pub primary: u32,
    /// Whether `SELECT *` leaves it out.
    pub hidden: bool,
    /// The collation, upper case.
    pub collation: String,
    pub affinity: Affinity,
    /// The expression of a generated column, in its parentheses.
    pub generated: Option<String>,
}

/// What a unique index compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    Column { name: String, collation: String },
    Expression { text: String, collation: String },
}

/// A unique index, or a row's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unique {
    /// The row's number, under the name that reaches it.
    RowNumber(String),
    /// An index: its name, its terms and the condition of a partial one.
    Index { name: String, terms: Vec<Term>, condition: Option<String> },
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub name: String,
    pub strict: bool,
    pub columns: Vec<TableColumn>,
    /// The INTEGER PRIMARY KEY that is the row's number.
    pub alias: Option<String>,
    /// A name that reaches the row's number; none WITHOUT ROWID.
    pub row_number: Option<String>,
    pub uniques: Vec<Unique>,
}

pub(super) fn refused(code: Code, detail: String) -> PortError {
    PortError::new("follow a table", FailureClass::Halted, code).detail(detail)
}

impl Table {
    /// Describes a table.
    ///
    /// # Errors
    /// `RELATION_MISSING` with the nearest name, `RELATION_REFUSED` with the reason.
    pub fn describe(connection: &Connection, name: &str) -> Result<Self, Failure> {
        let found: Option<(String, String, bool, bool)> = connection
            .prepare_cached(
                "SELECT name, type, wr, strict FROM pragma_table_list
                 WHERE schema = 'main' AND name = ?1 COLLATE NOCASE",
            )?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .optional()?;
        let Some((name, kind, without_rowid, strict)) = found else {
            return Err(missing(connection, name)?.into());
        };
        if let Some(reason) = unfit(&name, &kind) {
            return Err(
                refused(Code::RELATION_REFUSED, format!("{} {reason}", quote(&name))).into()
            );
        }
        let columns = columns(connection, &name)?;
        let indexes = indexes(connection, &name)?;
        let primary: Vec<&TableColumn> = columns.iter().filter(|c| c.primary > 0).collect();
        let indexed = indexes.iter().any(|(_, origin)| origin == "pk");
        let alias =
            (!without_rowid && !indexed && primary.len() == 1).then(|| primary[0].name.clone());
        let free = ["rowid", "_rowid_", "oid"]
            .into_iter()
            .find(|free| !columns.iter().any(|c| c.name.eq_ignore_ascii_case(free)));
        let row_number = if without_rowid {
            None
        } else {
            alias.as_deref().map(quote).or_else(|| free.map(str::to_owned))
        };
        let mut uniques: Vec<Unique> =
            row_number.clone().map(Unique::RowNumber).into_iter().collect();
        uniques.extend(indexes.into_iter().map(|(index, _)| index));
        let table = Self { name, strict, columns, alias, row_number, uniques };
        table.foreseeable()?;
        Ok(table)
    }

    /// Refuses a unique index over an expression of the row's number: that of a row to come is not
    /// known before it is there.
    fn foreseeable(&self) -> Result<(), PortError> {
        let Some(alias) = &self.alias else {
            return Ok(());
        };
        for unique in &self.uniques {
            let Unique::Index { name, terms, .. } = unique else {
                continue;
            };
            let made = |term: &Term| match term {
                Term::Column { name, .. } => self.column(name).is_some_and(|column| {
                    column.generated.is_some()
                        && self.sources(&quote(name)).iter().any(|source| source.name == *alias)
                }),
                Term::Expression { text, .. } => {
                    self.sources(text).iter().any(|source| source.name == *alias)
                }
            };
            if terms.iter().any(made) {
                let detail = format!(
                    "{}: the unique index {} is over an expression of {}, which is not known \
                     before the row is there, so rows that it replaces would be missed",
                    quote(&self.name),
                    quote(name),
                    quote(alias)
                );
                return Err(refused(Code::RELATION_REFUSED, detail));
            }
        }
        Ok(())
    }

    /// The columns that an expression names.
    pub fn named_in(&self, expression: &str) -> Vec<&TableColumn> {
        let cut = tokens(expression);
        let words: Vec<String> =
            cut.iter().filter(|token| !token.text.starts_with('\'')).filter_map(name).collect();
        let within = |column: &&TableColumn| {
            words.iter().any(|word| word.eq_ignore_ascii_case(&column.name))
        };
        self.columns.iter().filter(within).collect()
    }

    /// The ordinary columns that the value of an expression comes from, also through generated ones.
    pub fn sources(&self, expression: &str) -> Vec<&TableColumn> {
        let mut all = self.named_in(expression);
        let mut at = 0;
        while at < all.len() {
            let inner = all[at].generated.as_ref().map_or(Vec::new(), |text| self.named_in(text));
            for column in inner {
                if !all.contains(&column) {
                    all.push(column);
                }
            }
            at += 1;
        }
        all.retain(|column| column.generated.is_none());
        all
    }

    /// The column of this name, in any ASCII case.
    pub fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// The columns of the primary key, in its order.
    pub fn primary_key(&self) -> Vec<String> {
        let mut primary: Vec<&TableColumn> =
            self.columns.iter().filter(|c| c.primary > 0).collect();
        primary.sort_by_key(|column| column.primary);
        primary.into_iter().map(|column| column.name.clone()).collect()
    }

    /// Whether no two rows agree in these columns, each compared by its own collation.
    pub fn is_unique(&self, key: &[&TableColumn]) -> bool {
        let within = |term: &Term| match term {
            Term::Column { name, collation } => key.iter().any(|column| {
                column.name == *name
                    && (*collation == column.collation || column.collation == "BINARY")
            }),
            Term::Expression { .. } => false,
        };
        self.uniques.iter().any(|unique| match unique {
            Unique::RowNumber(_) => self.alias.iter().any(|a| key.iter().any(|c| c.name == *a)),
            Unique::Index { terms, condition: None, .. } => terms.iter().all(within),
            Unique::Index { .. } => false,
        })
    }
}

fn unfit(name: &str, kind: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("sqlite_") || lower.starts_with("truekeep_") {
        return Some("is no table of the application");
    }
    match kind {
        "table" => None,
        "view" => Some("is a view: follow the tables behind it"),
        "virtual" => Some("is a virtual table, which can have no triggers: follow what fills it"),
        _ => Some("belongs to a virtual table: follow what fills that"),
    }
}

/// The error for a table that is not there, with the name that is most like it.
fn missing(connection: &Connection, name: &str) -> Result<PortError, Failure> {
    let mut tables = connection.prepare_cached(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'truekeep\\_%' ESCAPE '\\'",
    )?;
    let names = tables.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let near = nearest(name, names.iter().map(String::as_str))
        .map_or(String::new(), |near| format!(", the nearest name is {}", quote(near)));
    let detail = format!("there is no table {}{near}", quote(name));
    Ok(PortError::new("find a table", FailureClass::Halted, Code::RELATION_MISSING).detail(detail))
}

/// The name with the fewest edits, if it is like the wanted one at all.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().collect();
    names
        .map(|name| (edits(&wanted, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(edits, _)| *edits <= wanted.len().div_ceil(2))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let edit = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], edit);
        }
    }
    row[b.len()]
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<TableColumn>, Failure> {
    let sql: String = connection
        .prepare_cached(
            "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
        )?
        .query_row([table], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1)",
    )?;
    let mut rows = statement.query([table])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let declared: String = row.get(1)?;
        let (_, collation, ..) = connection.column_metadata(Some("main"), table, name.as_str())?;
        let collation = collation
            .map_or_else(|| "BINARY".to_owned(), |c| c.to_string_lossy().to_ascii_uppercase());
        let hidden: i64 = row.get(5)?;
        let generated = if hidden > 1 {
            Some(generated(&sql, &name).ok_or_else(|| {
                let detail = format!(
                    "{}: the generated column {} cannot be read; write it anew in a plain form",
                    quote(table),
                    quote(&name)
                );
                refused(Code::RELATION_REFUSED, detail)
            })?)
        } else {
            None
        };
        columns.push(TableColumn {
            affinity: affinity(&declared),
            not_null: row.get(2)?,
            default: row.get(3)?,
            primary: row.get(4)?,
            hidden: hidden == 1,
            name,
            declared,
            collation,
            generated,
        });
    }
    Ok(columns)
}

/// SQLite's rules, in its order.
fn affinity(declared: &str) -> Affinity {
    let declared = declared.to_ascii_uppercase();
    let has = |part: &str| declared.contains(part);
    if has("INT") {
        Affinity::Integer
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Affinity::Text
    } else if has("BLOB") || declared.is_empty() || declared == "ANY" {
        Affinity::Blob
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        Affinity::Real
    } else {
        Affinity::Numeric
    }
}

/// The unique indexes, each with its origin: `pk`, `u` or `c`.
fn indexes(connection: &Connection, table: &str) -> Result<Vec<(Unique, String)>, Failure> {
    let mut list = connection.prepare_cached(
        "SELECT l.name, l.origin, l.partial, s.sql
         FROM pragma_index_list(?1) AS l LEFT JOIN sqlite_schema AS s ON s.name = l.name
         WHERE l.\"unique\" ORDER BY l.name",
    )?;
    let rows = list
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<Vec<(String, String, bool, Option<String>)>, _>>()?;
    let mut indexes = Vec::new();
    for (name, origin, partial, sql) in rows {
        let index = index(connection, &name, partial, sql.as_deref())?.ok_or_else(|| {
            let detail = format!(
                "{}: the unique index {} cannot be read, so rows that it replaces would be missed; \
                 write it anew in a plain form",
                quote(table),
                quote(&name)
            );
            refused(Code::RELATION_REFUSED, detail)
        })?;
        indexes.push((index, origin));
    }
    Ok(indexes)
}

fn index(
    connection: &Connection,
    name: &str,
    partial: bool,
    sql: Option<&str>,
) -> Result<Option<Unique>, Failure> {
    let mut info = connection.prepare_cached(
        "SELECT cid, name, coll FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno",
    )?;
    let found = info
        .query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(i64, Option<String>, String)>, _>>()?;
    let text = sql.and_then(index_text);
    let mut terms = Vec::new();
    for (place, (cid, column, collation)) in found.into_iter().enumerate() {
        let collation = collation.to_ascii_uppercase();
        let written = text.as_ref().and_then(|text| text.terms.get(place).cloned());
        terms.push(match (cid, column, written) {
            (_, Some(name), _) => Term::Column { name, collation },
            (-2, None, Some(text)) => Term::Expression { text, collation },
            _ => return Ok(None),
        });
    }
    let condition = text.and_then(|text| text.condition);
    if partial != condition.is_some() {
        return Ok(None);
    }
    Ok(Some(Unique::Index { name: name.to_owned(), terms, condition }))
}
