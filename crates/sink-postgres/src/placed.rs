//! One generation of a mirror: the one that readers see has the plain name, each other one a name of
//! its own beside it.

use truekeep_core::Generation;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::Served;
use truekeep_postgres::{Failure, Transaction, says};

use crate::mark::{Marked, held};
use crate::spec::MirrorSpec;
use crate::statements::{Statements, generation_of};

/// A mirror: what it is made of, and the statements that keep it.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) spec: MirrorSpec,
    pub(crate) sql: Statements,
}

impl Mirror {
    fn new(spec: MirrorSpec, base: &str) -> Self {
        let sql = Statements::of(&spec, base);
        Self { spec, sql }
    }

    /// The table as people read it.
    pub(crate) fn told(&self) -> String {
        format!("table `{}.{}`", self.spec.schema, self.spec.table)
    }

    pub(crate) fn mismatch(&self, detail: impl std::fmt::Display) -> Failure {
        let error = PortError::new("use a mirror", FailureClass::Halted, Code::MIRROR_MISMATCH);
        error.detail(format!("{}: {detail}", self.told())).into()
    }
}

/// One generation: where its table is depends on whether readers see it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) generation: Generation,
    pub(crate) seen: Mirror,
    pub(crate) aside: Mirror,
}

impl Placed {
    pub(crate) fn new(spec: MirrorSpec, generation: Generation) -> Self {
        let base = spec.table.clone();
        let table = generation_of(&base, generation);
        let aside = Mirror::new(MirrorSpec { table, ..spec.clone() }, &base);
        Self { generation, seen: Mirror::new(spec, &base), aside }
    }

    pub(crate) fn number(&self) -> Result<i64, Failure> {
        Ok(held(self.generation.get())?)
    }

    /// The mirror as it is named, given what readers see.
    pub(crate) fn under(&self, served: Served) -> &Mirror {
        if served.generation == self.generation { &self.seen } else { &self.aside }
    }

    /// What the marks say. They are locked against a swap from here on, to the end of the
    /// transaction: names stay what they are.
    pub(crate) async fn marked(&self, transaction: &mut Transaction) -> Result<Marked, Failure> {
        let query = Transaction::query(&*self.seen.sql.read_mark).bind(self.number()?);
        Ok(Marked::read(&transaction.rows(query).await?)?)
    }

    /// What is not there, or is of another type, is not as we made it: no smaller batch will help.
    pub(crate) fn broken(&self, failure: Failure) -> Failure {
        let Failure::Postgres(error) = &failure else { return failure };
        let structural = ["42P01", "42703", "42804", "42P10", "3F000", "42883"];
        match says(error) {
            Some(state) if structural.contains(&state.as_str()) => self.seen.mismatch(said(error)),
            _ => failure,
        }
    }
}

/// What the server said, without where and how.
pub(crate) fn said(error: &truekeep_postgres::sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}
