//! Generations of a mirror: the one that readers see has the plain name, each other one a name of
//! its own beside it.
//!
//! A swap renames tables in one transaction. What others made on the table that readers see is made
//! anew on the one that they see then, or refused by its name.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::Generation;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{Generations, Served, Sink, Survey, Swap, Swapped, generations};
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Access, Database, Failure, Options, Role, Transaction};

use crate::mark::held;
use crate::placed::Placed;
use crate::sink::PostgresSink;
use crate::spec::MirrorSpec;
use crate::statements::{BELONGINGS, COMPUTED, OBSTACLES, generation_of, marks_of, quoted};
use crate::structure::oids;

impl Placed {
    /// What there is; nothing is known of a mirror without marks.
    async fn generations(&self, transaction: &mut Transaction) -> Result<Survey, Failure> {
        let MirrorSpec { schema, table, .. } = &self.seen.spec;
        if oids(transaction, schema, vec![marks_of(table)]).await?[0].is_none() {
            return Ok(Survey { served: Served::FIRST, held: Vec::new() });
        }
        let served = self.marked(transaction).await?.served;
        let rows = transaction.rows(Transaction::query(&*self.seen.sql.list_generations)).await?;
        let numbers = rows.iter().map(|row| row.try_get::<i64, _>(0));
        let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
        let all = numbers.into_iter().map(|number| Generation::new(number.unsigned_abs()));
        let all: Vec<Generation> = all.collect();
        let names = all.iter().map(|generation| self.table_of(*generation, served)).collect();
        let found = oids(transaction, schema, names).await?;
        let there = all.into_iter().zip(found).filter(|(_, oid)| oid.is_some());
        Ok(Survey { served, held: there.map(|(generation, _)| generation).collect() })
    }

    fn table_of(&self, generation: Generation, served: Served) -> String {
        let table = &self.seen.spec.table;
        if generation == served.generation {
            table.clone()
        } else {
            generation_of(table, generation)
        }
    }

    /// Everybody else waits from here on; nothing of it was read before, so that two that swap at once
    /// do not wait for each other.
    async fn hold_all(&self, transaction: &mut Transaction) -> Result<Survey, Failure> {
        let MirrorSpec { schema, table, .. } = &self.seen.spec;
        if oids(transaction, schema, vec![marks_of(table)]).await?[0].is_some() {
            transaction.run(&*self.seen.sql.hold_generations).await?;
        }
        self.generations(transaction).await
    }

    async fn swap(&self, transaction: &mut Transaction, swap: &Swap) -> Result<Swapped, Failure> {
        // Definitions name every schema then.
        transaction.run("SET LOCAL search_path = pg_catalog").await?;
        let survey = self.hold_all(transaction).await?;
        match swap.judge(survey.served) {
            Err(served) => return Ok(Swapped::Conflict(served)),
            Ok(false) => return Ok(Swapped::Done),
            Ok(true) => {}
        }
        if !survey.held.contains(&swap.to) {
            return Err(generations::missing(swap.to).into());
        }
        for step in self.steps(transaction, swap).await? {
            transaction.run(step).await?;
        }
        let serve = Transaction::query(&*self.seen.sql.serve_generation)
            .bind(held(swap.to.get())?)
            .bind(held(swap.number.get())?);
        transaction.rows(serve).await?;
        Ok(Swapped::Done)
    }

    /// The statements of a swap, in order.
    async fn steps(
        &self,
        transaction: &mut Transaction,
        swap: &Swap,
    ) -> Result<Vec<String>, Failure> {
        let MirrorSpec { schema, table, .. } = &self.seen.spec;
        let (from, to) = (generation_of(table, swap.from), generation_of(table, swap.to));
        let found = oids(transaction, schema, vec![table.clone(), to.clone()]).await?;
        let (mut take, mut make) = (Vec::new(), Vec::new());
        if let (Some(seen), Some(next)) = (found[0], found[1]) {
            self.refuse(transaction, seen, next, &to).await?;
            let query = Transaction::query(BELONGINGS).bind(seen);
            for row in &transaction.rows(query).await? {
                take.push(row.try_get::<String, _>(0)?);
                make.push(row.try_get::<String, _>(1)?);
            }
            take.push(self.renamed(table, &from));
        }
        take.push(self.renamed(&to, table));
        Ok(take.into_iter().filter(|step| !step.is_empty()).chain(make).collect())
    }

    fn renamed(&self, from: &str, to: &str) -> String {
        let schema = quoted(&self.seen.spec.schema);
        format!("ALTER TABLE {schema}.{} RENAME TO {}", quoted(from), quoted(to))
    }

    /// What cannot be carried over stops the swap.
    async fn refuse(
        &self,
        transaction: &mut Transaction,
        seen: i64,
        next: i64,
        to: &str,
    ) -> Result<(), Failure> {
        let obstacles = names(transaction, OBSTACLES, seen).await?;
        if !obstacles.is_empty() {
            let told = obstacles.join(", ");
            return Err(self.seen.mismatch(format!("it is not swapped while there is {told}")));
        }
        let ready = names(transaction, COMPUTED, next).await?;
        let computed = names(transaction, COMPUTED, seen).await?;
        match computed.iter().find(|name| !ready.contains(name)) {
            None => Ok(()),
            Some(lacking) => Err(self.seen.mismatch(format!(
                "it has the generated column `{lacking}`: add it to `{to}` as well, or drop it"
            ))),
        }
    }

    async fn discard(&self, transaction: &mut Transaction) -> Result<(), Failure> {
        let survey = self.hold_all(transaction).await?;
        if survey.served.generation == self.generation {
            return Err(generations::served(self.generation).into());
        }
        if survey.held.is_empty() {
            return Ok(());
        }
        let (schema, table) = (&self.aside.spec.schema, &self.aside.spec.table);
        let table = format!("{}.{}", quoted(schema), quoted(table));
        transaction.run(format!("DROP TABLE IF EXISTS {table}")).await?;
        let number = self.number()?;
        let sql = &self.aside.sql;
        transaction.rows(Transaction::query(&*sql.forget_tombstones).bind(number)).await?;
        transaction.rows(Transaction::query(&*sql.forget_generation).bind(number)).await?;
        Ok(())
    }
}

async fn names(
    transaction: &mut Transaction,
    sql: &'static str,
    oid: i64,
) -> Result<Vec<String>, Failure> {
    let rows = transaction.rows(Transaction::query(sql).bind(oid)).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// A mirror with generations in a Postgres database.
#[derive(Debug)]
pub struct PostgresGenerations {
    database: Database,
    spec: MirrorSpec,
    statement_max: Duration,
}

impl PostgresGenerations {
    /// Opens the database by its address, as [`PostgresSink::open`] does. A swap that makes indexes of
    /// others anew on a large table needs a `statement_max` for it.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such table can be, and what the server answers.
    pub async fn open(
        address: &str,
        spec: MirrorSpec,
        patience: Duration,
        statement_max: Duration,
    ) -> Result<Self, PortError> {
        spec.check()?;
        let options = Options { patience, ..Options::of(Role::Sink) };
        let database = Database::open(address, options).await?;
        Ok(Self { database, spec, statement_max })
    }

    fn placed(&self, generation: Generation) -> Placed {
        Placed::new(self.spec.clone(), generation)
    }

    async fn begin(&self, operation: &'static str) -> Result<Transaction, PortError> {
        let access = Access::Write { statement_max: self.statement_max };
        self.database.begin(operation, access).await
    }
}

#[async_trait]
impl Generations for PostgresGenerations {
    async fn survey(&self) -> Result<Survey, PortError> {
        let any = self.placed(Served::FIRST.generation);
        let mut transaction = self.begin("look at generations").await?;
        let survey = any.generations(&mut transaction).await;
        transaction.end(survey).await
    }

    async fn open(&self, generation: Generation) -> Result<Arc<dyn Sink>, PortError> {
        let placed = self.placed(generation);
        Ok(Arc::new(PostgresSink::over(self.database.clone(), placed, self.statement_max)))
    }

    async fn swap(&self, swap: &Swap) -> Result<Swapped, PortError> {
        let placed = self.placed(swap.to);
        let mut transaction = self.begin("swap generations").await?;
        let swapped = placed.swap(&mut transaction, swap).await;
        transaction.end(swapped.map_err(|failure| placed.broken(failure))).await
    }

    async fn discard(&self, generation: Generation) -> Result<(), PortError> {
        let placed = self.placed(generation);
        let mut transaction = self.begin("remove a generation").await?;
        let done = placed.discard(&mut transaction).await;
        transaction.end(done.map_err(|failure| placed.broken(failure))).await
    }
}
