//! The mirror's tables: made if they are not there, checked if they are, never taken over.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::Served;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use crate::mark::{Marked, StoredMark};
use crate::placed::{Mirror, Placed};
use crate::spec::OWN_COLUMNS;
use crate::statements::{ALONE, COLUMNS, SURVEY, marks_of, quoted, tombstones_of};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing, or what is left of a mirror that was dropped or emptied by somebody else.
    Nothing,
    /// The mirror.
    Mirror,
}

/// A schema, and relations in it by their names.
struct Survey {
    schema: bool,
    may_create: bool,
    user: String,
    relations: Vec<Option<Relation>>,
}

struct Relation {
    oid: i64,
    kind: String,
    unlogged: bool,
    guarded: bool,
    usable: bool,
}

impl Survey {
    async fn of(
        transaction: &mut Transaction,
        schema: &str,
        names: Vec<String>,
    ) -> Result<Self, Failure> {
        let query = Transaction::query(SURVEY).bind(schema.to_owned()).bind(names);
        let mut survey =
            Self { schema: false, may_create: false, user: String::new(), relations: Vec::new() };
        for row in &transaction.rows(query).await? {
            (survey.schema, survey.may_create) = (row.try_get(0)?, row.try_get(1)?);
            survey.user = row.try_get(7)?;
            survey.relations.push(match row.try_get::<Option<i64>, _>(2)? {
                None => None,
                Some(oid) => Some(Relation {
                    oid,
                    kind: row.try_get(3)?,
                    unlogged: row.try_get(4)?,
                    guarded: row.try_get(5)?,
                    usable: row.try_get(6)?,
                }),
            });
        }
        Ok(survey)
    }

    fn has(&self, place: usize) -> bool {
        self.relations.get(place).is_some_and(Option::is_some)
    }
}

/// The numbers of relations by their names; none for those that are not there.
pub(crate) async fn oids(
    transaction: &mut Transaction,
    schema: &str,
    names: Vec<String>,
) -> Result<Vec<Option<i64>>, Failure> {
    let survey = Survey::of(transaction, schema, names).await?;
    let oid = |relation: &Option<Relation>| relation.as_ref().map(|relation| relation.oid);
    Ok(survey.relations.iter().map(oid).collect())
}

impl Placed {
    /// Makes the tables unless they are there.
    pub(crate) async fn prepare(&self, transaction: &mut Transaction) -> Result<(), Failure> {
        if self.surveyed(transaction).await?.0 == Found::Mirror {
            return Ok(());
        }
        // Another process may make it, or swap it, meanwhile.
        let name = self.seen.told();
        transaction.row(Transaction::query(ALONE).bind(name)).await?;
        let (found, there, served) = self.surveyed(transaction).await?;
        if found == Found::Mirror {
            return Ok(());
        }
        let mirror = self.under(served);
        let sql = &mirror.sql;
        transaction.run(&*sql.create_marks).await?;
        transaction.run(&*sql.create_tombstones).await?;
        if !there {
            transaction.run(&*sql.create_mirror).await?;
        }
        // Companions of a mirror that was dropped or emptied say that it holds what it has lost.
        let number = self.number()?;
        transaction.rows(Transaction::query(&*sql.forget_tombstones).bind(number)).await?;
        transaction.rows(Transaction::query(&*sql.add_mark).bind(number)).await?;
        Ok(())
    }

    /// Whether the mirror is there, and fits.
    pub(crate) async fn inspect(&self, transaction: &mut Transaction) -> Result<bool, Failure> {
        Ok(self.surveyed(transaction).await?.0 == Found::Mirror)
    }

    /// The mark; none if the mirror was never written, or was dropped or emptied.
    pub(crate) async fn mark(
        &self,
        transaction: &mut Transaction,
    ) -> Result<Option<StoredMark>, Failure> {
        let table = &self.seen.spec.table;
        let companions = vec![marks_of(table), tombstones_of(table)];
        let survey = Survey::of(transaction, &self.seen.spec.schema, companions).await?;
        if !survey.has(0) || !survey.has(1) {
            return Ok(None);
        }
        let marked = self.marked(transaction).await?;
        let mirror = self.under(marked.served);
        let name = vec![mirror.spec.table.clone()];
        if !Survey::of(transaction, &mirror.spec.schema, name).await?.has(0) {
            return Ok(None);
        }
        match marked.stored {
            Some(stored) if stored.holds_records && !mirror.holds_any(transaction).await? => {
                Ok(None)
            }
            stored => Ok(stored),
        }
    }

    /// Names the right that is missing on a relation.
    fn permit(&self, survey: &Survey, place: usize, name: &str) -> Result<(), Failure> {
        match &survey.relations[place] {
            Some(relation) if !relation.usable => {
                let (schema, user) = (quoted(&self.seen.spec.schema), quoted(&survey.user));
                let name = quoted(name);
                let rights = "SELECT, INSERT, UPDATE, DELETE";
                Err(self.seen.forbidden(&format!("GRANT {rights} ON {schema}.{name} TO {user}")))
            }
            _ => Ok(()),
        }
    }

    /// What is there, whether the table itself is, and what readers see.
    async fn surveyed(
        &self,
        transaction: &mut Transaction,
    ) -> Result<(Found, bool, Served), Failure> {
        let table = &self.seen.spec.table;
        let (marks, tombstones) = (marks_of(table), tombstones_of(table));
        let names = vec![
            marks.clone(),
            tombstones.clone(),
            self.seen.spec.table.clone(),
            self.aside.spec.table.clone(),
        ];
        let survey = Survey::of(transaction, &self.seen.spec.schema, names).await?;
        if !survey.schema {
            let schema = &self.seen.spec.schema;
            let missing =
                format!("there is no schema `{schema}`: `CREATE SCHEMA {}`", quoted(schema));
            return Err(self.seen.mismatch(missing));
        }
        self.permit(&survey, 0, &marks)?;
        self.permit(&survey, 1, &tombstones)?;
        let marked = match survey.has(0) {
            true => self.marked(transaction).await?,
            false => Marked::read(&[])?,
        };
        let mirror = self.under(marked.served);
        let place = if marked.served.generation == self.generation { 2 } else { 3 };
        let Some(relation) = &survey.relations[place] else {
            if !survey.may_create {
                let schema = quoted(&self.seen.spec.schema);
                let grant =
                    format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO {}", quoted(&survey.user));
                return Err(mirror.forbidden(&grant));
            }
            return Ok((Found::Nothing, false, marked.served));
        };
        mirror.check(relation)?;
        for (name, there) in [(&marks, survey.has(0)), (&tombstones, survey.has(1))] {
            if !there {
                return Err(mirror.mismatch(format!("there is no `{name}` beside it")));
            }
        }
        if !marked.prepared {
            return Err(mirror.mismatch(format!("`{marks}` says nothing of it")));
        }
        self.permit(&survey, place, &mirror.spec.table)?;
        mirror.check_columns(transaction, relation.oid).await?;
        let emptied = match &marked.stored {
            Some(stored) => stored.holds_records && !mirror.holds_any(transaction).await?,
            None => false,
        };
        Ok((if emptied { Found::Nothing } else { Found::Mirror }, true, marked.served))
    }
}

impl Mirror {
    /// Whether it has a row.
    pub(crate) async fn holds_any(&self, transaction: &mut Transaction) -> Result<bool, Failure> {
        let row = transaction.row(Transaction::query(&*self.sql.any_record)).await?;
        Ok(row.try_get(0)?)
    }

    fn forbidden(&self, grant: &str) -> Failure {
        let error = PortError::new("use a mirror", FailureClass::Halted, Code::SINK_UNAVAILABLE);
        error.detail(format!("{}: a right is missing: `{grant}`", self.told())).into()
    }

    fn check(&self, relation: &Relation) -> Result<(), Failure> {
        let kind = match relation.kind.as_str() {
            "r" if relation.unlogged => "an unlogged table, which a crash empties",
            "r" if relation.guarded => "a table whose row security would hide rows from us",
            "r" => return Ok(()),
            "p" => "a partitioned table",
            "v" => "a view",
            "m" => "a materialized view",
            "f" => "a foreign table",
            "S" => "a sequence",
            "i" | "I" => "an index",
            _ => "no table",
        };
        Err(self.mismatch(format!("it is {kind}")))
    }

    async fn check_columns(&self, transaction: &mut Transaction, oid: i64) -> Result<(), Failure> {
        let own = OWN_COLUMNS.iter().map(|(name, kind)| Column::of(name, kind));
        let documents = self.spec.columns();
        let documents = documents.iter().map(|(name, kind)| Column::of(name, kind.name()));
        let expected: Vec<Column> = own.chain(documents).collect();
        let mut found = Vec::new();
        for row in &transaction.rows(Transaction::query(COLUMNS).bind(oid)).await? {
            let name: String = row.try_get(0)?;
            let is_key = name == OWN_COLUMNS[0].0;
            let collation: Option<String> = row.try_get(2)?;
            if is_key && collation.as_deref() != Some("C") {
                let told = collation.unwrap_or_default();
                return Err(self.mismatch(format!(
                    "column `{name}` is in the order of collation `{told}`, not of bytes: \
                     `{}`",
                    self.altered(&name, "text COLLATE \"C\"")
                )));
            }
            if is_key && !row.try_get::<bool, _>(3)? {
                return Err(self.mismatch(format!("column `{name}` is not unique")));
            }
            found.push(Column { name, kind: row.try_get(1)? });
        }
        for place in 0..expected.len().max(found.len()) {
            let difference = match (expected.get(place), found.get(place)) {
                (Some(expected), Some(found)) if expected == found => continue,
                (Some(expected), Some(found)) if expected.name == found.name => format!(
                    "column {} is not {}: `{}`",
                    found.told(),
                    expected.kind,
                    self.altered(&found.name, &expected.kind)
                ),
                (Some(expected), Some(found)) => {
                    format!("column {} is {}, not {}", place + 1, found.told(), expected.told())
                }
                (Some(expected), None) => format!("it lacks column {}", expected.told()),
                (None, found) => {
                    let found = found.map(Column::told).unwrap_or_default();
                    format!("it has column {found} too many")
                }
            };
            return Err(self.mismatch(difference));
        }
        Ok(())
    }

    /// The statement that gives a column another type.
    fn altered(&self, column: &str, kind: &str) -> String {
        let (schema, table) = (quoted(&self.spec.schema), quoted(&self.spec.table));
        let (name, bare) = (quoted(column), kind.split(" COLLATE ").next().unwrap_or(kind));
        format!("ALTER TABLE {schema}.{table} ALTER {name} TYPE {kind} USING {name}::text::{bare}")
    }
}

/// A column as the catalog tells it.
#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
}

impl Column {
    fn of(name: &str, kind: &str) -> Self {
        Self { name: name.into(), kind: kind.into() }
    }

    fn told(&self) -> String {
        format!("`{}` ({})", self.name, self.kind)
    }
}
