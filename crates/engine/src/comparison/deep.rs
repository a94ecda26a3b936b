//! Documents held against the sink, where ranks say nothing.
//!
//! Invariants: M2 (a batch of documents is in hand, and the one after it), S1 (versions were read
//! before the documents that are loaded here).

use std::sync::Arc;

use truekeep_core::code::Code;
use truekeep_core::compare::Difference;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::limits;
use truekeep_core::ports::{Body, Delivery, Loaded};
use truekeep_core::{Key, Rank};

use super::Sides;

const OPERATION: &str = "compare documents";

/// A batch of documents: what is asked of the sink, and what no sink can hold.
struct Batch {
    deliveries: Vec<Delivery>,
    unloadable: Vec<(Key, Rank)>,
}

/// Of records that are equal by rank, those whose documents differ as far as they are known now.
pub(super) async fn altered(
    sides: &Sides<'_>,
    same: Vec<(Key, Rank)>,
) -> Result<Vec<Difference>, PortError> {
    let mut altered = Vec::new();
    let mut rest = &same[..];
    let mut batch = load(sides, &mut rest).await?;
    while let Some(Batch { deliveries, unloadable }) = batch {
        let (held, next) = tokio::join!(verify(sides, &deliveries), load(sides, &mut rest));
        let differ = deliveries.into_iter().zip(held?).filter(|(_, held)| !held);
        altered
            .extend(differ.map(|(delivery, _)| Difference::Altered(delivery.key, delivery.rank)));
        let made = |(key, rank)| Difference::Altered(key, rank);
        altered.extend(unloadable.into_iter().map(made));
        batch = next?;
    }
    Ok(altered)
}

/// Loads as many of the rest as a batch holds.
async fn load(sides: &Sides<'_>, rest: &mut &[(Key, Rank)]) -> Result<Option<Batch>, PortError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let keys: Vec<Key> = rest.iter().map(|(key, _)| key.clone()).collect();
    let loaded = sides.records.load(&keys, limits::PAGE_BYTES).await?;
    if loaded.is_empty() || loaded.len() > keys.len() {
        return Err(unanswered("the source"));
    }
    let (part, left) = rest.split_at(loaded.len());
    *rest = left;
    let mut batch = Batch { deliveries: Vec::with_capacity(part.len()), unloadable: Vec::new() };
    for ((key, rank), loaded) in part.iter().cloned().zip(loaded) {
        let body = match loaded {
            Loaded::Live(document) => Body::Upsert(Arc::new(document)),
            Loaded::Absent => Body::Delete,
            Loaded::Unloadable(..) => {
                batch.unloadable.push((key, rank));
                continue;
            }
        };
        batch.deliveries.push(Delivery { key, rank, body });
    }
    Ok(Some(batch))
}

async fn verify(sides: &Sides<'_>, deliveries: &[Delivery]) -> Result<Vec<bool>, PortError> {
    let held = sides.sink.verify(deliveries).await?;
    if held.len() == deliveries.len() { Ok(held) } else { Err(unanswered("the sink")) }
}

fn unanswered(side: &str) -> PortError {
    PortError::new(OPERATION, FailureClass::Unknown, Code::UNEXPECTED)
        .detail(format!("{side} did not answer for each record"))
}
