//! Documents: which values a record has, in SQL that the database or the user wrote.

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_postgres::sqlx::{Column as _, Row};
use truekeep_postgres::{Failure, Transaction};

use super::key::KeyShape;
use super::names::quote;
use super::table::Table;
use super::tokens::{Part, parts};
use super::types::{Carrier, PgType, halted};
use truekeep_core::relation::{Column, Projection, RelationSpec};

const OPERATION: &str = "prepare the document";

/// A document's values and where they come from.
#[derive(Debug)]
pub(super) struct Selection {
    pub columns: Vec<Column>,
    /// The names, shared by all documents.
    pub names: Arc<[Box<str>]>,
    pub carriers: Vec<Carrier>,
    pub source: Source,
}

/// Where values come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Columns of the table, as SQL text.
    Columns(Vec<String>),
    /// A SELECT for the key `truekeep_key.c1`, ..
    Keyed(String),
    /// A SELECT of all rows; for each of the key's columns the place of it among its own, from 1.
    Joined(String, Vec<usize>),
}

fn invalid(detail: String) -> Failure {
    halted(OPERATION, Code::CONFIG_INVALID, detail)
}

/// An error that a statement of the user's meets before its first row.
fn unusable(failure: Failure, what: &str) -> Failure {
    let state = failure.state().unwrap_or_default();
    let gone = matches!(state.as_str(), "42P01" | "42703" | "3F000");
    let known =
        gone || state.starts_with("42") || state.starts_with("22") || state.starts_with("0A");
    match failure {
        Failure::Postgres(error) if known && state != "42501" => {
            let code = if gone { Code::RELATION_MISSING } else { Code::CONFIG_INVALID };
            let said = error
                .as_database_error()
                .map_or_else(String::new, |error| error.message().to_owned());
            halted(OPERATION, code, format!("{what}: {said}"))
        }
        failure => failure,
    }
}

impl Selection {
    pub async fn of(
        reading: &mut Transaction,
        table: &Table,
        key: &KeyShape,
        spec: &RelationSpec,
    ) -> Result<Self, Failure> {
        if let Some(condition) = &spec.live_when {
            let probe =
                format!("SELECT FROM {} WHERE ({condition}\n) LIMIT 0", table.name.quoted());
            let probed = reading.rows(Transaction::query(probe)).await;
            probed.map_err(|error| unusable(error.into(), "`live_when`"))?;
        }
        match &spec.document {
            Projection::Columns(names) => Self::of_columns(table, names),
            Projection::Sql { query, json } => Self::of_query(reading, key, query, json).await,
        }
    }

    fn of_columns(table: &Table, names: &[String]) -> Result<Self, Failure> {
        let columns = if names.is_empty() {
            table.columns.iter().collect()
        } else {
            names.iter().map(|name| table.named(name)).collect::<Result<Vec<_>, _>>()?
        };
        let source = columns.iter().map(|column| quote(&column.name)).collect();
        let described = columns.iter().map(|column| (column.name.clone(), column.of.clone()));
        Self::made(described.collect(), &[], Source::Columns(source))
    }

    async fn of_query(
        reading: &mut Transaction,
        key: &KeyShape,
        query: &str,
        json: &[String],
    ) -> Result<Self, Failure> {
        let query = query.trim_end().trim_end_matches(';');
        let keyed = keyed(key, query)?;
        let nulls = key.parse("NULL");
        let body = keyed.as_deref().unwrap_or(query);
        let probe = format!(
            "SELECT truekeep_document.* FROM (SELECT {nulls}) AS truekeep_key
             LEFT JOIN LATERAL ({body}\n) AS truekeep_document ON false"
        );
        let row = reading.row(Transaction::query(probe)).await;
        let row = row.map_err(|error| unusable(error.into(), "the document's SQL"))?;
        let oid = |column: &truekeep_postgres::sqlx::postgres::PgColumn| {
            column.type_info().oid().map_or(0, |oid| i64::from(oid.0))
        };
        let types: Vec<i64> = row.columns().iter().map(oid).collect();
        let types = PgType::describe(reading, &types).await?;
        let names = row.columns().iter().map(|column| column.name().to_owned());
        let described: Vec<(String, PgType)> = names.zip(types).collect();
        let source = match keyed {
            Some(keyed) => Source::Keyed(keyed),
            None => {
                let place = |column: &super::key::KeyColumn| {
                    described
                        .iter()
                        .position(|(name, _)| quote(name) == column.sql)
                        .map(|at| at + 1)
                };
                let places: Option<Vec<usize>> = key.columns.iter().map(place).collect();
                let places = places.ok_or_else(|| {
                    let detail = format!(
                        "the document's SQL neither asks for a key (bind a column of it by name, as in `:id`) nor \
                         has the key's columns ({})",
                        key.list("")
                    );
                    invalid(detail)
                })?;
                Source::Joined(query.to_owned(), places)
            }
        };
        Self::made(described, json, source)
    }

    fn made(
        described: Vec<(String, PgType)>,
        json: &[String],
        source: Source,
    ) -> Result<Self, Failure> {
        if described.is_empty() {
            return Err(invalid("the document has no value".into()));
        }
        for (place, (name, _)) in described.iter().enumerate() {
            if described[..place].iter().any(|(before, _)| before == name) {
                return Err(invalid(format!("the document has two values named {}", quote(name))));
            }
        }
        if let Some(strange) =
            json.iter().find(|name| !described.iter().any(|(own, _)| own == *name))
        {
            let detail =
                format!("`json` names {}, which is no value of the document", quote(strange));
            return Err(invalid(detail));
        }
        let carrier = |(name, of): &(String, PgType)| {
            if json.contains(name) { Carrier::Json } else { of.carrier() }
        };
        Ok(Self {
            names: described.iter().map(|(name, _)| Box::from(name.as_str())).collect(),
            carriers: described.iter().map(carrier).collect(),
            columns: described
                .into_iter()
                .map(|(name, of)| Column { name, declared_type: of.name })
                .collect(),
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

/// The SELECT with the key's columns in the place of its parameters; none if it has no parameters.
fn keyed(key: &KeyShape, query: &str) -> Result<Option<String>, Failure> {
    let (mut sql, mut from) = (String::new(), 0);
    for part in parts(query) {
        let Part::Parameter(name, at) = part else { continue };
        let place = key.columns.iter().position(|column| column.sql == quote(&name));
        let place = place.ok_or_else(|| {
            let list = key.list("");
            invalid(format!("the document's SQL has the parameter :{name}, which is no column of the key ({list})"))
        })?;
        sql.push_str(&query[from..at.start]);
        sql.push_str(&format!("truekeep_key.c{}", place + 1));
        from = at.end;
    }
    sql.push_str(&query[from..]);
    Ok((from > 0).then_some(sql))
}

/// Everything that decides what documents look like, as text.
pub(super) async fn fingerprint_parts(
    reading: &mut Transaction,
    table: &Table,
    key: &KeyShape,
    selection: &Selection,
    spec: &RelationSpec,
) -> Result<Vec<String>, Failure> {
    let mut parts = vec![
        format!("table {}", table.name.quoted()),
        format!("key {}", key.describe()),
        format!("live_when {}", spec.live_when.as_deref().unwrap_or_default()),
    ];
    let values = selection.columns.iter().zip(&selection.carriers);
    parts.extend(values.map(|(column, carrier)| {
        format!("value {} {} {carrier:?}", quote(&column.name), column.declared_type)
    }));
    let mut texts: Vec<String> = spec.live_when.iter().cloned().collect();
    if let Source::Keyed(sql) | Source::Joined(sql, _) = &selection.source {
        parts.push(format!("query {sql}"));
        texts.push(sql.clone());
    }
    if !texts.is_empty() {
        let path = Transaction::query("SELECT array_to_string(current_schemas(false), ',')");
        let path: String = reading.row(path).await?.try_get(0)?;
        parts.push(format!("path {path}"));
        parts.extend(definitions(reading, texts).await?);
    }
    Ok(parts)
}

/// The definitions of all views and functions that some SQL may use, also through others: every one
/// whose name it holds. One too many costs an announcement, one too few a wrong document.
async fn definitions(
    reading: &mut Transaction,
    mut texts: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let query = Transaction::query(include_str!("../../sql/document/definitions.sql"));
    let rows = reading.rows(query).await?;
    let mut rest = Vec::with_capacity(rows.len());
    for row in &rows {
        rest.push((row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?));
    }
    let mut used = Vec::new();
    while let Some(text) = texts.pop() {
        let named = parts_named(&text);
        let (found, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(name, _)| named.contains(name));
        rest = others;
        for (_, definition) in found {
            texts.push(body(&definition).to_owned());
            used.push(definition);
        }
    }
    used.sort();
    Ok(used)
}

fn parts_named(text: &str) -> std::collections::BTreeSet<String> {
    parts(text)
        .into_iter()
        .filter_map(|part| if let Part::Name(name) = part { Some(name) } else { None })
        .collect()
}

/// A function's body stands in a string, which holds no names for [`parts`].
fn body(definition: &str) -> &str {
    let inside = definition.split_once("$function$").map(|(_, rest)| rest);
    inside
        .or_else(|| definition.split_once("$procedure$").map(|(_, rest)| rest))
        .unwrap_or(definition)
}
