//! A specification held against the schema as it is: everything later reads and writes by this.
//!
//! It is made anew whenever the schema's version moved, in the transaction that uses it, so no
//! statement meets a table that is not the one it was made for.

use std::sync::Arc;

use rusqlite::Connection;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::Failure;

use super::key::{KeyColumn, KeyShape};
use super::names::{FeedNames, quote};
use super::projection::{Selection, fingerprint_parts};
use super::signature::{Present, Use};
use super::statements::Statements;
use super::table::{Table, TableColumn, nearest, refused};
use super::tokens::tokens;
use super::triggers::{MARK_COLUMNS, Related, Relation, Trigger};
use truekeep_core::relation::{Projection, RelationSpec, Watch};

/// A relation as it is now.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The schema's version that all of this is of.
    pub schema_version: i64,
    pub table: Table,
    pub names: FeedNames,
    pub key: KeyShape,
    /// The order in which the table is walked: row numbers, or the primary key.
    pub walk: KeyShape,
    pub selection: Selection,
    /// The triggers as they should be.
    pub triggers: Vec<Trigger>,
    pub watches: Vec<Watched>,
    /// What stands there now.
    pub present: Present,
    pub statements: Statements,
    /// Whether a rule says which rows are live.
    pub ruled: bool,
    /// What decides how documents look, as text.
    pub fingerprint: Vec<String>,
}

/// A related table.
#[derive(Debug)]
pub(super) struct Watched {
    pub table: String,
    /// How its changes find rows, as a mark keeps it.
    pub comparison: String,
    /// Its columns by which documents find its rows; none if they find it by its own key.
    pub read_by: Vec<String>,
}

/// The version that SQLite counts schemas by; reading it fixes the transaction's snapshot.
pub(super) fn schema_version(connection: &Connection) -> Result<i64, Failure> {
    let mut pragma = connection.prepare_cached("PRAGMA main.schema_version")?;
    Ok(pragma.query_row([], |row| row.get(0))?)
}

impl Resolved {
    /// Holds a specification against the schema.
    ///
    /// # Errors
    /// `RELATION_MISSING`, `RELATION_REFUSED`, `KEY_REFUSED`, `CONFIG_INVALID`, each with what to do.
    pub fn of(connection: &Connection, spec: &RelationSpec) -> Result<Self, Failure> {
        let schema_version = schema_version(connection)?;
        let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
        if encoding != "UTF-8" {
            let detail =
                format!("the database holds text as {encoding}, whose order is not that of keys");
            return Err(refused(Code::RELATION_REFUSED, detail).into());
        }
        let table = Table::describe(connection, &spec.table)?;
        let names = FeedNames::of(&table.name);
        let key = key(&table, spec)?;
        let walk = walk(&table)?;
        let relation = Relation { table: &table, key: &key, names: &names };
        let mut triggers = relation.triggers();
        let mut watches = Vec::new();
        for watch in &spec.watch {
            let (watched, watching) = watched(connection, &relation, watch)?;
            watches.push(watched);
            triggers.extend(watching);
        }
        let uses = uses(&table, &key, spec);
        let present = Present::read(connection, &names, &triggers, uses)?;
        let selection = Selection::of(connection, &table, &key, spec)?;
        let statements = Statements::of(&table, &names, &key, &walk, spec, &selection);
        let fingerprint = fingerprint_parts(connection, &table, &key, &selection, spec)?;
        Ok(Self {
            schema_version,
            table,
            names,
            key,
            walk,
            selection,
            triggers,
            watches,
            present,
            statements,
            ruled: spec.live_when.is_some(),
            fingerprint,
        })
    }
}

fn config(detail: String) -> Failure {
    PortError::new("follow a table", FailureClass::Halted, Code::CONFIG_INVALID)
        .detail(detail)
        .into()
}

/// The column of a name that the rules give, or the error that says which is like it.
pub(super) fn named<'a>(table: &'a Table, name: &str) -> Result<&'a TableColumn, Failure> {
    table.column(name).filter(|column| !column.hidden).ok_or_else(|| {
        let near = nearest(name, table.columns.iter().map(|column| column.name.as_str()))
            .map_or(String::new(), |near| format!(", the nearest name is {}", quote(near)));
        let detail = format!("{} has no column {}{near}", quote(&table.name), quote(name));
        refused(Code::RELATION_MISSING, detail).into()
    })
}

pub(super) fn key(table: &Table, spec: &RelationSpec) -> Result<KeyShape, Failure> {
    let own = quote(&table.name);
    let names = if spec.key.is_empty() { table.primary_key() } else { spec.key.clone() };
    if names.is_empty() {
        let detail = format!(
            "{own} has no primary key, and row numbers do not stay: declare a `key` of columns \
             that a unique index covers"
        );
        return Err(refused(Code::RELATION_REFUSED, detail).into());
    }
    let columns: Vec<&TableColumn> =
        names.iter().map(|name| named(table, name)).collect::<Result<_, _>>()?;
    if !table.is_unique(&columns) {
        let detail = format!(
            "no unique index of {own} covers the key ({}), so two rows could have one key: \
             create one, or declare another `key`",
            names.join(", ")
        );
        return Err(refused(Code::KEY_REFUSED, detail).into());
    }
    let mut shape = KeyShape { columns: Vec::new() };
    for column in columns {
        let name = quote(&column.name);
        let alias = table.alias.as_deref() == Some(column.name.as_str());
        let part = KeyColumn::of(column, table.strict, alias).ok_or_else(|| {
            let collation = &column.collation;
            let detail =
                format!("{own}.{name} has the collation {collation}, which has no normal form");
            refused(Code::KEY_REFUSED, detail)
        })?;
        if part.folds() && !spec.normal_form {
            let detail = format!(
                "{own}.{name} has the collation {}: texts that differ count as one key; \
                 set `normal_form` to fold them",
                column.collation
            );
            return Err(refused(Code::KEY_REFUSED, detail).into());
        }
        shape.columns.push(part);
    }
    Ok(shape)
}

fn walk(table: &Table) -> Result<KeyShape, Failure> {
    if let Some(number) = &table.row_number {
        return Ok(KeyShape::row_number(number));
    }
    let primary = table.primary_key();
    let columns = primary.iter().map(|name| {
        let column = named(table, name)?;
        KeyColumn::of(column, table.strict, false).ok_or_else(|| {
            let detail = format!(
                "{} has a primary key with the collation {}, which only the application knows",
                quote(&table.name),
                column.collation
            );
            refused(Code::RELATION_REFUSED, detail).into()
        })
    });
    let columns = columns.collect::<Result<Vec<_>, Failure>>()?;
    if columns.is_empty() {
        let detail = format!("the rows of {} cannot be told apart", quote(&table.name));
        return Err(refused(Code::RELATION_REFUSED, detail).into());
    }
    Ok(KeyShape { columns })
}

/// What documents, keys and the rule of what is live read; all columns of all tables where SQL may
/// read more than is seen here.
fn uses(table: &Table, key: &KeyShape, spec: &RelationSpec) -> Vec<Use> {
    let all = |table: &str| Use { table: table.to_owned(), columns: None };
    let selects =
        |sql: &String| tokens(sql).iter().any(|token| token.text.eq_ignore_ascii_case("select"));
    let named = match &spec.document {
        Projection::Columns(names) if !spec.live_when.as_ref().is_some_and(selects) => names,
        Projection::Columns(_) | Projection::Sql { .. } => {
            let related = spec.watch.iter().map(|watch| match watch {
                Watch::Child { table, .. } | Watch::Parent { table, .. } => all(table),
            });
            return std::iter::once(all(&table.name)).chain(related).collect();
        }
    };
    if named.is_empty() {
        return vec![all(&table.name)];
    }
    let mut names = named.clone();
    let live = spec.live_when.iter().flat_map(|live| table.named_in(live));
    let keys = key.columns.iter().filter_map(|part| part.of_table(table));
    names.extend(live.chain(keys).map(|column| column.name.clone()));
    for watch in &spec.watch {
        if let Watch::Parent { via, .. } = watch {
            names.extend(via.iter().cloned());
        }
    }
    vec![Use { table: table.name.clone(), columns: Some(names) }]
}

/// A related table, and its triggers.
fn watched(
    connection: &Connection,
    relation: &Relation<'_>,
    watch: &Watch,
) -> Result<(Watched, Vec<Trigger>), Failure> {
    let own = relation.table;
    let (role, name, via, key) = match watch {
        Watch::Child { table, key } => ("child", table, None, key),
        Watch::Parent { table, via, key } => ("parent", table, Some(via), key),
    };
    let table = Table::describe(connection, name)?;
    let via: Vec<&TableColumn> = match via {
        Some(via) => via.iter().map(|name| named(own, name)).collect::<Result<_, _>>()?,
        None => relation.key.columns.iter().filter_map(|part| part.of_table(own)).collect(),
    };
    let primary = table.primary_key();
    let key = if role == "parent" && key.is_empty() { &primary } else { key };
    let key: Vec<&TableColumn> =
        key.iter().map(|name| named(&table, name)).collect::<Result<_, _>>()?;
    if key.len() != via.len() || !(1..=MARK_COLUMNS.len()).contains(&via.len()) {
        return Err(config(format!(
            "watch of {}: {} of its columns are to be compared with {} of {}; 1 to {} of each are wanted",
            quote(name),
            key.len(),
            via.len(),
            quote(&own.name),
            MARK_COLUMNS.len()
        )));
    }
    let read_by =
        key.iter().filter(|_| role == "child").map(|column| column.name.clone()).collect();
    let related = Related { role, table: &table, via, key };
    let comparison = related.comparison();
    let watched = Watched { table: table.name.clone(), comparison, read_by };
    Ok((watched, relation.related_triggers(&related)))
}

/// A relation that is kept between transactions of one connection.
pub(super) type Kept = std::sync::Mutex<Option<Arc<Resolved>>>;

/// The relation as it is in this transaction.
pub(super) fn resolved(
    connection: &Connection,
    spec: &RelationSpec,
    kept: &Kept,
) -> Result<Arc<Resolved>, Failure> {
    let version = schema_version(connection)?;
    let mut kept = kept.lock().expect("no holder of the lock panics");
    if let Some(known) = kept.as_ref().filter(|known| known.schema_version == version) {
        return Ok(Arc::clone(known));
    }
    // A cached statement of another schema would fail at its first row, which is where a record's
    // own failures are told from.
    connection.flush_prepared_statement_cache();
    let mut fresh = Resolved::of(connection, spec)?;
    if let Some(known) = kept.as_ref() {
        fresh.selection.share_names(&known.selection);
    }
    Ok(Arc::clone(kept.insert(Arc::new(fresh))))
}
