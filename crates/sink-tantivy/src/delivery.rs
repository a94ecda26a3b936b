//! A batch's way into the index.
//!
//! Invariant: P3. Order: who may write is decided first; then each record, by the greatest rank
//! that is held for its key, live or remembered; the mark is the commit's payload; all in one
//! commit, which is on disk when it returns.

use std::collections::BTreeMap;

use tantivy::Term;
use tantivy::schema::Field;
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits::bounded;
use truekeep_core::ports::{Applied, Batch, Body, Delivery, Mark, Outcome, Receipt, Verdict};

use crate::document::Maker;
use crate::failure::Failure;
use crate::held::{Held, look_up};
use crate::index::OpenIndex;
use crate::keeper::Keeper;

const OPERATION: &str = "write a batch";

impl Keeper {
    /// Writes a batch.
    pub(crate) fn apply(&mut self, batch: &Batch) -> Result<Applied, Failure> {
        let mark = self.admit(batch)?;
        let written = self.writing().and_then(|open| write(open, batch, &mark));
        written.map_err(|failure| self.undone(failure, &mark))
    }

    /// Whether the sender may write, and the mark that its batch leaves.
    fn admit(&mut self, batch: &Batch) -> Result<Mark, Failure> {
        let open = self.writing()?;
        let mark = Mark::after(open.mark.as_ref(), &batch.mark, batch.follows);
        Ok(mark.map_err(PortError::from)?)
    }

    /// After trouble the writer is given up with all that it had not committed. A commit that had
    /// replaced `meta.json` before it failed has happened, but may not be on disk.
    fn undone(&mut self, failure: Failure, mark: &Mark) -> Failure {
        let (failure, before) = match self.opened() {
            Some(open) => (open.cause(failure), open.mark.clone()),
            None => (failure, None),
        };
        self.forget();
        let mut error = failure.classify(OPERATION, &self.folder);
        let found = self.look().map(|open| open.and_then(|open| open.mark.clone()));
        if !matches!(found, Ok(found) if found.as_ref() != Some(mark) || found == before) {
            error.class = FailureClass::Unknown;
        }
        error.into()
    }
}

fn write(open: &mut OpenIndex, batch: &Batch, mark: &Mark) -> Result<Applied, Failure> {
    let held = look_up(&open.segments, batch.deliveries.iter().map(|delivery| &delivery.key))?;
    let mut maker = Maker::new(&open.layout);
    // No caller sends a key twice; should one, the second meets what the first has written.
    let mut written: BTreeMap<&Key, Held> = BTreeMap::new();
    let mut outcomes = Vec::with_capacity(batch.deliveries.len());
    for (delivery, held) in batch.deliveries.iter().zip(held) {
        let held = written.get(&delivery.key).copied().unwrap_or(held);
        let verdict = Verdict::of(delivery.rank, held.rank);
        match verdict {
            Verdict::Keep(_) => outcomes.push(verdict.outcome()),
            Verdict::Write | Verdict::Rewrite => {
                let refused = replace(open, &mut maker, delivery, held)?;
                if refused.is_none() {
                    let live = delivery.body != Body::Delete;
                    let rank = Some(delivery.rank);
                    written.insert(&delivery.key, Held { rank, live, buried: !live });
                }
                outcomes.push(refused.unwrap_or_else(|| verdict.outcome()));
            }
        }
    }
    drop(maker);
    drop(written);
    if mark.removed {
        open.writer()?.delete_term(Term::from_field_bool(open.layout.tombstone, true));
    }
    open.commit(mark)?;
    Ok(Applied { outcomes, receipt: Receipt(mark.number.get()) })
}

/// Puts a record in the place of what is held of its key; says so if it cannot be made.
fn replace(
    open: &OpenIndex,
    maker: &mut Maker<'_>,
    delivery: &Delivery,
    held: Held,
) -> Result<Option<Outcome>, Failure> {
    let Delivery { key, rank, body } = delivery;
    let made = match body {
        Body::Upsert(document) => maker.live(key, *rank, document),
        Body::Delete => maker.buried(key, *rank),
    };
    let document = match made {
        Ok(document) => document,
        Err(unfit) => {
            let reason = bounded(&unfit.0).to_owned();
            return Ok(Some(Outcome::Refused(Code::SINK_REFUSED, reason)));
        }
    };
    let writer = open.writer()?;
    let remove = |field: Field| writer.delete_term(Term::from_field_text(field, key.as_str()));
    // Nothing is looked for in vain: each deletion costs a look into every segment.
    if held.live {
        remove(open.layout.key);
    }
    if held.buried {
        remove(open.layout.buried);
    }
    writer.add_document(document)?;
    Ok(None)
}

#[cfg(test)]
mod tests;
