//! Documents held against the index: the digest of what each became, and what is stored of it.

use tantivy::schema::document::OwnedValue;
use tantivy::schema::{Document as _, Field};
use tantivy::{DocAddress, TantivyDocument};
use truekeep_core::ports::{Body, Delivery};

use crate::document::Maker;
use crate::failure::Failure;
use crate::index::OpenIndex;

impl OpenIndex {
    /// Whether each delivery would leave the index as it is.
    pub(crate) fn verify(&self, deliveries: &[Delivery]) -> Result<Vec<bool>, Failure> {
        let mut maker = Maker::new(&self.layout);
        deliveries.iter().map(|delivery| self.holds(&mut maker, delivery)).collect()
    }

    fn holds(&self, maker: &mut Maker<'_>, delivery: &Delivery) -> Result<bool, Failure> {
        let mut live = Vec::new();
        for (ord, segment) in (0..).zip(&self.segments) {
            segment.each_live(&delivery.key, |doc| {
                live.push((DocAddress::new(ord, doc), segment.rank(doc)));
            })?;
        }
        let (document, address, rank) = match (&delivery.body, &*live) {
            (Body::Delete, live) => return Ok(live.is_empty()),
            (Body::Upsert(document), [(address, rank)]) => (document, *address, *rank),
            (Body::Upsert(_), _) => return Ok(false),
        };
        if rank != Some(delivery.rank) {
            return Ok(false);
        }
        // What a batch would refuse is not there.
        let Ok(made) = maker.live(&delivery.key, delivery.rank, document) else { return Ok(false) };
        let held: TantivyDocument = self.reader.searcher().doc(address)?;
        Ok(self.stored(&made).eq(self.stored(&held)))
    }

    /// What is stored of a document, the digest with it, in the order in which it was added.
    fn stored<'d>(
        &self,
        document: &'d TantivyDocument,
    ) -> impl Iterator<Item = (Field, OwnedValue)> + use<'d, '_> {
        let schema = &self.layout.schema;
        let values = document.iter_fields_and_values();
        let stored = values.filter(|(field, _)| schema.get_field_entry(*field).is_stored());
        stored.map(|(field, value)| (field, OwnedValue::from(value)))
    }
}
