//! A relation as it is now: everything that is known before a page is read.

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use super::key::KeyShape;
use super::names::{FeedNames, TableName, digest};
use super::projection::{Selection, fingerprint_parts};
use super::statements::Statements;
use super::table::Table;
use super::triggers::Wanted;
use super::types::halted;
use truekeep_core::relation::{RelationSpec, Watch};

/// A watched table whose rows the relation's rows refer to.
#[derive(Debug)]
pub(super) struct Referred {
    /// What its marks carry.
    pub identity: String,
    /// The columns that are referred to.
    pub theirs: KeyShape,
    /// The relation's columns that refer, as SQL text.
    pub via: Vec<String>,
}

/// A relation.
#[derive(Debug)]
pub(super) struct Resolved {
    pub table: Table,
    pub key: KeyShape,
    pub names: FeedNames,
    pub selection: Selection,
    pub statements: Statements,
    /// What should stand.
    pub wanted: Wanted,
    pub referred: Vec<Referred>,
    /// The relation and every watched table, each once.
    pub relations: Vec<TableName>,
    /// The same as SQL text: locked against being rewritten.
    pub locked: Vec<String>,
    pub fingerprint: Vec<String>,
    /// What the statements were made for.
    pub shape: String,
}

impl Resolved {
    /// Looks at everything that a specification names.
    ///
    /// # Errors
    /// Why it cannot be followed, or what of the specification cannot be.
    pub async fn of(reading: &mut Transaction, spec: &RelationSpec) -> Result<Self, Failure> {
        let table = Table::describe(reading, &spec.table).await?;
        let key = KeyShape::of(&table, &spec.key, spec.normal_form)?;
        let names = FeedNames::of(&table.name);
        let selection = Selection::of(reading, &table, &key, spec).await?;
        let fingerprint = fingerprint_parts(reading, &table, &key, &selection, spec).await?;
        let mut wanted = Wanted::own(&names, &table, &key);
        let mut relations = vec![table.name.clone()];
        let mut referred = Vec::new();
        for watch in &spec.watch {
            let (name, marks) =
                watched(reading, watch, &table, &key, &names, &mut referred).await?;
            wanted.join(marks);
            if !relations.contains(&name) {
                relations.push(name);
            }
        }
        let statements = Statements::of(&table, &relations, &names, &key, spec, &selection);
        let shape = reading.row(Transaction::query(statements.shape.clone())).await?;
        Ok(Self {
            locked: relations.iter().map(TableName::quoted).collect(),
            shape: shape.try_get::<Option<String>, _>(0)?.unwrap_or_default(),
            table,
            key,
            names,
            selection,
            statements,
            wanted,
            referred,
            relations,
            fingerprint,
        })
    }
}

/// What is to stand on a watched table.
async fn watched(
    reading: &mut Transaction,
    watch: &Watch,
    table: &Table,
    key: &KeyShape,
    names: &FeedNames,
    referred: &mut Vec<Referred>,
) -> Result<(TableName, Wanted), Failure> {
    match watch {
        Watch::Child { table: name, key: columns } => {
            let child = Table::describe(reading, name).await?;
            // Told here, before a trigger is made of it.
            key.canonical_from(&child, columns, "t.")?;
            let identity = format!("child {} {columns:?}", child.name.quoted());
            let text =
                |prefix: &str| key.canonical_from(&child, columns, prefix).unwrap_or_default();
            let marks = Wanted::marks(names, &child, None, &identity, &text);
            Ok((child.name.clone(), marks))
        }
        Watch::Parent { table: name, via, key: columns } => {
            let parent = Table::describe(reading, name).await?;
            let columns = if columns.is_empty() { parent.primary_key() } else { columns };
            if columns.is_empty() || columns.len() != via.len() {
                let detail = format!(
                    "`via` names {} columns, and {} is referred to by {}",
                    via.len(),
                    parent.name.quoted(),
                    columns.len()
                );
                return Err(halted("look at a watched table", Code::CONFIG_INVALID, detail));
            }
            let theirs = KeyShape::loose(&parent, columns)?;
            let identity = format!("parent {} {columns:?} {via:?}", parent.name.quoted());
            let identity = digest([identity.as_str()], 16);
            let mut own = Vec::new();
            for name in via {
                own.push(super::names::quote(&table.named(name)?.name));
            }
            comparable(reading, table, &own, &theirs).await?;
            let text = |prefix: &str| theirs.canonical(prefix);
            let marks = Wanted::marks(names, &parent, Some(&identity), &identity, &text);
            let name = parent.name.clone();
            referred.push(Referred { identity, theirs, via: own });
            Ok((name, marks))
        }
    }
}

/// Makes sure that what refers can be compared with what is referred to.
async fn comparable(
    reading: &mut Transaction,
    table: &Table,
    via: &[String],
    theirs: &KeyShape,
) -> Result<(), Failure> {
    let same: Vec<String> = via
        .iter()
        .zip(theirs.values("NULL"))
        .map(|(own, value)| format!("t.{own} = {value}"))
        .collect();
    let probe =
        format!("SELECT FROM {} AS t WHERE {} LIMIT 0", table.name.quoted(), same.join(" AND "));
    match reading.rows(Transaction::query(probe)).await {
        Ok(_) => Ok(()),
        Err(error) => match error.as_database_error() {
            Some(said)
                if said.code().is_some_and(|code| code.starts_with("42") && code != "42501") =>
            {
                let detail = format!("`via` cannot be compared: {}", said.message());
                Err(halted("look at a watched table", Code::CONFIG_INVALID, detail))
            }
            _ => Err(error.into()),
        },
    }
}

/// Where a relation is kept between transactions.
pub(super) type Kept = std::sync::Mutex<Arc<Resolved>>;
