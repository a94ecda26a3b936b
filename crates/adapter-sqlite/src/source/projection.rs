//! What a row becomes: the columns or the SELECT that the user wrote, prepared once to learn names.

use std::sync::Arc;

use rusqlite::Connection;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::Failure;

use super::key::KeyShape;
use super::names::{FeedNames, quote};
use super::resolve::named;
use super::table::Table;
use super::tokens::{name, tokens};
use truekeep_core::relation::{Column, Projection, RelationSpec};

/// A document's values and where they come from.
#[derive(Debug)]
pub(super) struct Selection {
    pub columns: Vec<Column>,
    /// The names, shared by all documents.
    pub names: Arc<[Box<str>]>,
    /// Which values are JSON if they can be.
    pub json: Vec<bool>,
    pub source: Source,
}

/// Where values come from.
#[derive(Debug)]
pub(super) enum Source {
    /// Columns of the table, as a list in SQL.
    Columns(String),
    /// A SELECT; for each of its parameters the place of the key's column.
    Query { sql: String, parameters: Vec<usize> },
}

fn invalid(detail: String) -> Failure {
    PortError::new("prepare the document", FailureClass::Halted, Code::CONFIG_INVALID)
        .detail(detail)
        .into()
}

/// An error that a statement of the user's meets before its first row.
fn unusable(error: &rusqlite::Error, what: &str) -> Failure {
    let text = error.to_string();
    let gone = text.contains("no such column") || text.contains("no such table");
    let code = if gone { Code::RELATION_MISSING } else { Code::CONFIG_INVALID };
    PortError::new("prepare the document", FailureClass::Halted, code)
        .detail(format!("{what}: {text}"))
        .into()
}

impl Selection {
    pub fn of(
        connection: &Connection,
        table: &Table,
        key: &KeyShape,
        spec: &RelationSpec,
    ) -> Result<Self, Failure> {
        if let Some(condition) = &spec.live_when {
            let probe = format!("SELECT 1 FROM {} WHERE ({condition})", quote(&table.name));
            connection.prepare(&probe).map_err(|error| unusable(&error, "`live_when`"))?;
        }
        match &spec.document {
            Projection::Columns(names) => Self::of_columns(table, names),
            Projection::Sql { query, json } => Self::of_query(connection, key, query, json),
        }
    }

    fn of_columns(table: &Table, names: &[String]) -> Result<Self, Failure> {
        let columns = if names.is_empty() {
            table.columns.iter().filter(|column| !column.hidden).collect()
        } else {
            names.iter().map(|name| named(table, name)).collect::<Result<Vec<_>, _>>()?
        };
        let own = quote(&table.name);
        let list: Vec<String> =
            columns.iter().map(|column| format!("{own}.{}", quote(&column.name))).collect();
        let columns = columns.into_iter().map(|column| Column {
            name: column.name.clone(),
            declared_type: column.declared.clone(),
        });
        Self::made(columns.collect(), &[], Source::Columns(list.join(", ")))
    }

    fn of_query(
        connection: &Connection,
        key: &KeyShape,
        query: &str,
        json: &[String],
    ) -> Result<Self, Failure> {
        let statement =
            connection.prepare(query).map_err(|error| unusable(&error, "the document's SQL"))?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(invalid("the document's SQL is no SELECT".into()));
        }
        let mut parameters = Vec::new();
        for place in 1..=statement.parameter_count() {
            let name = statement.parameter_name(place).unwrap_or("?").to_owned();
            parameters.push(key_column(key, &name).ok_or_else(|| {
                invalid(format!(
                    "the document's SQL has the parameter {name}, which is no column of the key"
                ))
            })?);
        }
        if parameters.is_empty() {
            let detail = "the document's SQL does not ask for a key: bind a column of it by name, as in `:id`";
            return Err(invalid(detail.into()));
        }
        let columns = statement
            .columns()
            .iter()
            .map(|column| Column {
                name: column.name().to_owned(),
                declared_type: column.decl_type().unwrap_or_default().to_owned(),
            })
            .collect();
        Self::made(columns, json, Source::Query { sql: query.to_owned(), parameters })
    }

    fn made(columns: Vec<Column>, json: &[String], source: Source) -> Result<Self, Failure> {
        for (place, column) in columns.iter().enumerate() {
            if columns[..place].iter().any(|before| before.name == column.name) {
                return Err(invalid(format!(
                    "the document has two values named {}",
                    quote(&column.name)
                )));
            }
        }
        if let Some(strange) = json.iter().find(|name| !columns.iter().any(|c| c.name == **name)) {
            return Err(invalid(format!(
                "`json` names {}, which is no value of the document",
                quote(strange)
            )));
        }
        let is_json = |column: &Column| {
            json.contains(&column.name)
                || column.declared_type.to_ascii_uppercase().contains("JSON")
        };
        Ok(Self {
            names: columns.iter().map(|column| Box::from(column.name.as_str())).collect(),
            json: columns.iter().map(is_json).collect(),
            columns,
            source,
        })
    }

    /// Keeps the names that documents already share, if they are the same.
    pub fn share_names(&mut self, before: &Self) {
        if self.names == before.names {
            self.names = Arc::clone(&before.names);
        }
    }
}

/// The place of the key's column that a parameter names: `:id`, `@id`, `$id`, or `?1`.
fn key_column(key: &KeyShape, parameter: &str) -> Option<usize> {
    let name = parameter.get(1..)?;
    if parameter.starts_with('?') {
        let place: usize = name.parse().ok()?;
        return place.checked_sub(1).filter(|place| *place < key.columns.len());
    }
    let quoted = quote(name);
    key.columns.iter().position(|column| column.sql.eq_ignore_ascii_case(&quoted))
}

/// Everything that decides what documents look like, as text.
pub(super) fn fingerprint_parts(
    connection: &Connection,
    table: &Table,
    key: &KeyShape,
    selection: &Selection,
    spec: &RelationSpec,
) -> Result<Vec<String>, Failure> {
    let mut parts = vec![
        format!("table {}", FeedNames::of(&table.name).stem()),
        format!("key {}", key.describe()),
        format!("live_when {}", spec.live_when.as_deref().unwrap_or_default()),
    ];
    let values = selection.columns.iter().zip(&selection.json);
    parts.extend(values.map(|(column, json)| {
        format!("value {} {} {json}", quote(&column.name), column.declared_type)
    }));
    let mut texts: Vec<String> = spec.live_when.iter().cloned().collect();
    if let Source::Query { sql, .. } = &selection.source {
        parts.push(format!("query {sql}"));
        texts.push(sql.clone());
    }
    parts.extend(views(connection, texts)?);
    Ok(parts)
}

/// The definitions of all views that some SQL may read, also through other views: every view whose
/// name it holds as a word. One too many costs an announcement, one too few a wrong document.
fn views(connection: &Connection, mut texts: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name")?;
    let mut rest = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, String)>, _>>()?;
    let mut used = Vec::new();
    while let Some(text) = texts.pop() {
        let words: Vec<String> = tokens(&text).iter().filter_map(name).collect();
        let (named, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|(view, _)| words.iter().any(|word| word.eq_ignore_ascii_case(view)));
        rest = others;
        texts.extend(named.iter().map(|(_, sql)| sql.clone()));
        used.extend(named);
    }
    used.sort();
    Ok(used.into_iter().map(|(_, sql)| format!("view {sql}")).collect())
}
