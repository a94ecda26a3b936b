//! Generations of a mirror: the one that readers see has the plain name, each other one a name of
//! its own beside it.
//!
//! A swap renames tables in one transaction. What others made on the table that readers see (its
//! indexes and triggers) is made anew on the one that they see then; their views go by the name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Generations, Served, Sink, Survey, Swap, Swapped, generations};
use truekeep_core::{Generation, SwapNumber};
use truekeep_sqlite::Failure;

use crate::connections::MirrorFile;
use crate::sink::SqliteSink;
use crate::spec::MirrorSpec;
use crate::statements::{Statements, companions_of, generation_of, quoted, served_of};
use crate::structure::Mirror;

/// One generation of a mirror: where its tables are depends on whether readers see it.
#[derive(Debug)]
pub(crate) struct Placed {
    generation: Generation,
    seen: Mirror,
    aside: Mirror,
}

impl Placed {
    pub(crate) fn new(spec: MirrorSpec, generation: Generation) -> Self {
        let table = generation_of(&spec.table, generation);
        let aside = Mirror::new(MirrorSpec { table, ..spec.clone() });
        Self { generation, seen: Mirror::new(spec), aside }
    }

    /// The mirror as it is named in this snapshot.
    pub(crate) fn mirror(&self, db: &Connection) -> Result<&Mirror, Failure> {
        let served = self.served(db)?;
        Ok(if served.generation == self.generation { &self.seen } else { &self.aside })
    }

    /// What readers see.
    fn served(&self, db: &Connection) -> Result<Served, Failure> {
        let sql = &self.seen.sql;
        let table = served_of(&self.seen.spec.table);
        let mut any = db.prepare_cached(&sql.any_served)?;
        if !any.query_row([table], |row| row.get(0))? {
            return Ok(Served::FIRST);
        }
        let read = db.prepare_cached(&sql.read_served);
        let mut read = read.map_err(|error| self.seen.broken(error))?;
        let served = read.query_row([], |row| {
            let generation = Generation::new(row.get(0)?);
            Ok(Served { generation, swap: SwapNumber::new(row.get(1)?) })
        });
        let served = served.optional().map_err(|error| self.seen.broken(error))?;
        Ok(served.unwrap_or(Served::FIRST))
    }

    /// The numbers of the generations that stand aside, rising.
    fn aside(&self, db: &Connection) -> Result<Vec<Generation>, Failure> {
        let prefix = generation_of(&self.seen.spec.table, "");
        let mut list = db.prepare_cached(&self.seen.sql.list_generations)?;
        let names = list.query_map([prefix], |row| row.get::<_, String>(0))?;
        // A companion's name goes on after the number, and is none.
        let numbers = names.filter_map(|name| name.map(|name| name.parse().ok()).transpose());
        let mut numbers = numbers.collect::<rusqlite::Result<Vec<u64>>>()?;
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(Generation::new).collect())
    }

    fn survey(&self, db: &Connection) -> Result<Survey, Failure> {
        let served = self.served(db)?;
        let mut held = self.aside(db)?;
        if self.seen.is_there(db)? {
            held.push(served.generation);
            held.sort_unstable();
        }
        Ok(Survey { served, held })
    }

    fn swap(&self, db: &mut Connection, swap: &Swap) -> Result<Swapped, Failure> {
        // Else views and triggers of others would follow the table that is renamed. It cannot be
        // told inside a transaction.
        db.pragma_update(None, "legacy_alter_table", true)?;
        let swapped = self.swap_named(db, swap);
        db.pragma_update(None, "legacy_alter_table", false)?;
        swapped
    }

    fn swap_named(&self, db: &mut Connection, swap: &Swap) -> Result<Swapped, Failure> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match swap.judge(self.served(&transaction)?) {
            Err(served) => return Ok(Swapped::Conflict(served)),
            Ok(false) => return Ok(Swapped::Done),
            Ok(true) => {}
        }
        if !self.aside(&transaction)?.contains(&swap.to) {
            return Err(generations::missing(swap.to).into());
        }
        for step in self.steps(&transaction, swap)? {
            transaction.execute_batch(&step).map_err(|error| self.seen.broken(error))?;
        }
        transaction.commit()?;
        Ok(Swapped::Done)
    }

    /// The statements of a swap, in order, within one transaction.
    fn steps(&self, db: &Connection, swap: &Swap) -> Result<Vec<String>, Failure> {
        let plain = &self.seen.spec.table;
        self.refuse_computed(db, plain, swap.to)?;
        let mut steps = Vec::new();
        let belongings = self.belongings(db, plain)?;
        for (kind, name, _) in &belongings {
            steps.push(format!("DROP {kind} {}", quoted(name)));
        }
        let rename = |from: &str, to: &str| {
            let both = companions_of(from).into_iter().zip(companions_of(to));
            both.map(|(from, to)| {
                format!("ALTER TABLE {} RENAME TO {}", quoted(&from), quoted(&to))
            })
            .collect::<Vec<_>>()
        };
        if self.seen.is_there(db)? {
            steps.extend(rename(plain, &generation_of(plain, swap.from)));
        }
        steps.extend(rename(&generation_of(plain, swap.to), plain));
        steps.extend(belongings.into_iter().map(|(_, _, sql)| sql));
        steps.push(self.seen.sql.create_served.clone());
        let write = &self.seen.sql.write_served;
        let numbers = (swap.to.to_string(), swap.number.to_string());
        steps.push(write.replace("?1", &numbers.0).replace("?2", &numbers.1));
        Ok(steps)
    }

    /// Indexes and triggers of others: kind, name, and the statement that makes it.
    fn belongings(
        &self,
        db: &Connection,
        table: &str,
    ) -> Result<Vec<(String, String, String)>, Failure> {
        let mut read = db.prepare_cached(&self.seen.sql.belongings)?;
        let found = read.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// A column that others added cannot be carried over: it is theirs to add to the next one.
    fn refuse_computed(&self, db: &Connection, plain: &str, to: Generation) -> Result<(), Failure> {
        let next = generation_of(plain, to);
        let mut read = db.prepare_cached(&self.seen.sql.computed_columns)?;
        let mut names = |table: &str| {
            let names = read.query_map([table], |row| row.get(0))?;
            names.collect::<rusqlite::Result<Vec<String>>>()
        };
        let (held, ready) = (names(plain)?, names(&next)?);
        let Some(lacking) = held.iter().find(|name| !ready.contains(name)) else {
            return Ok(());
        };
        let error = PortError::new("swap generations", FailureClass::Halted, Code::MIRROR_MISMATCH);
        let detail = format!(
            "table `{plain}` has the generated column `{lacking}`: add it to `{next}` as well, \
             or drop it"
        );
        Err(error.detail(detail).into())
    }

    fn discard(&self, db: &mut Connection) -> Result<(), Failure> {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if self.served(&transaction)?.generation == self.generation {
            return Err(generations::served(self.generation).into());
        }
        for table in companions_of(&self.aside.spec.table) {
            let drop = format!("DROP TABLE IF EXISTS {}", quoted(&table));
            transaction.execute_batch(&drop).map_err(|error| self.aside.broken(error))?;
        }
        Ok(transaction.commit()?)
    }
}

impl Mirror {
    fn new(spec: MirrorSpec) -> Self {
        let sql = Statements::of(&spec);
        Self { spec, sql }
    }
}

/// A mirror with generations in a SQLite file.
#[derive(Debug)]
pub struct SqliteGenerations {
    file: Arc<MirrorFile>,
    spec: MirrorSpec,
}

impl SqliteGenerations {
    /// Opens the file, which is made if it is not there.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such table can be, and what the file answers.
    pub async fn open(path: &Path, spec: MirrorSpec, busy: Duration) -> Result<Self, PortError> {
        spec.check()?;
        Ok(Self { file: Arc::new(MirrorFile::open(path, busy).await?), spec })
    }

    fn placed(&self, generation: Generation) -> Placed {
        Placed::new(self.spec.clone(), generation)
    }
}

#[async_trait]
impl Generations for SqliteGenerations {
    async fn survey(&self) -> Result<Survey, PortError> {
        let any = self.placed(Served::FIRST.generation);
        let reader = self.file.looked_anew().await?.reader;
        let survey = move |db: &mut Connection| any.survey(&*db.transaction()?);
        reader.call("look at generations", survey).await
    }

    async fn open(&self, generation: Generation) -> Result<Arc<dyn Sink>, PortError> {
        Ok(Arc::new(SqliteSink::over(Arc::clone(&self.file), self.placed(generation))))
    }

    async fn swap(&self, swap: &Swap) -> Result<Swapped, PortError> {
        let (placed, swap) = (self.placed(swap.to), *swap);
        let writer = self.file.looked_anew().await?.writer;
        writer.call("swap generations", move |db| placed.swap(db, &swap)).await
    }

    async fn discard(&self, generation: Generation) -> Result<(), PortError> {
        let placed = self.placed(generation);
        let writer = self.file.looked_anew().await?.writer;
        writer.call("remove a generation", move |db| placed.discard(db)).await
    }
}

#[cfg(test)]
mod tests;
