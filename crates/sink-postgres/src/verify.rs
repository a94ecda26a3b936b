//! Documents held against the mirror: column by column, each with what a batch would store there.

use truekeep_core::ports::{Body, Delivery};
use truekeep_mirror::Converter;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use crate::columns::written;
use crate::delivery::{place, rank};
use crate::keys;
use crate::placed::Mirror;

impl Mirror {
    /// Whether each delivery would leave the mirror as it is, in one snapshot.
    pub(crate) async fn verify(
        &self,
        transaction: &mut Transaction,
        deliveries: &[Delivery],
    ) -> Result<Vec<bool>, Failure> {
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> =
            deliveries.iter().map(|delivery| keys::stored(&delivery.key).into_owned()).collect();
        let query = Transaction::query(&*self.sql.read_records).bind(keys);
        let columns = self.spec.columns();
        let mut converter = Converter::new(self.spec.shape());
        // What is not there is as a deletion leaves it.
        let mut answers: Vec<bool> =
            deliveries.iter().map(|delivery| delivery.body == Body::Delete).collect();
        for row in &transaction.rows(query).await? {
            let place = place(row)?;
            let delivery = &deliveries[place];
            answers[place] = match &delivery.body {
                Body::Delete => false,
                Body::Upsert(_) if rank(row, 1)? != Some(delivery.rank) => false,
                Body::Upsert(document) => match written(&mut converter, &columns, document) {
                    // What a batch would refuse is not there.
                    Err(_) => false,
                    Ok(written) => {
                        let mut same = true;
                        for (column, written) in written.iter().enumerate() {
                            let held: Option<String> = row.try_get(3 + column)?;
                            let kind = columns[column].1;
                            same = same && kind.is_same(written.as_deref(), held.as_deref());
                        }
                        same
                    }
                },
            };
        }
        Ok(answers)
    }
}
