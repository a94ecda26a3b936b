//! Documents held against the mirror: column by column, each with what a batch would store there.

use rusqlite::Connection;
use truekeep_core::ports::{Body, Delivery};
use truekeep_mirror::{Converter, Unfit};
use truekeep_sqlite::Failure;

use crate::columns::Stored;
use crate::delivery::rank;
use crate::spec::OWN_COLUMNS;
use crate::structure::Mirror;

/// Why a record is not compared to its end.
enum Ended {
    /// It differs.
    Differs,
    /// The mirror cannot be read.
    Sqlite(rusqlite::Error),
}

impl Mirror {
    /// Whether each delivery would leave the mirror as it is, in one snapshot.
    pub(crate) fn verify(
        &self,
        snapshot: &Connection,
        deliveries: &[Delivery],
    ) -> Result<Vec<bool>, Failure> {
        let read = snapshot.prepare_cached(&self.sql.read_record);
        let mut read = read.map_err(|error| self.broken(error))?;
        let mut converter = Converter::new(self.spec.shape());
        let mut held = |delivery: &Delivery| {
            let mut rows = read.query([delivery.key.as_str()])?;
            let row = rows.next()?;
            let (document, row) = match (&delivery.body, row) {
                (Body::Delete, row) => return Ok(row.is_none()),
                (Body::Upsert(_), None) => return Ok(false),
                (Body::Upsert(document), Some(row)) => (document, row),
            };
            if rank(row, 1)? != Some(delivery.rank) {
                return Ok(false);
            }
            let compared = converter.convert(document, |column, name, cell| {
                let stored = Stored::of(name, cell)?;
                let held = row.get_ref(OWN_COLUMNS.len() + column)?;
                if stored.is(held) { Ok(()) } else { Err(Ended::Differs) }
            });
            match compared {
                Ok(()) => Ok(true),
                Err(Ended::Differs) => Ok(false),
                Err(Ended::Sqlite(error)) => Err(error),
            }
        };
        let answers: rusqlite::Result<Vec<bool>> = deliveries.iter().map(&mut held).collect();
        answers.map_err(|error| self.broken(error))
    }
}

impl From<Unfit> for Ended {
    /// What a batch would refuse is not there.
    fn from(_: Unfit) -> Self {
        Self::Differs
    }
}

impl From<rusqlite::Error> for Ended {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
