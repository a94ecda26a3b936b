//! The order in which deliveries arrive does not matter.

use std::collections::{BTreeMap, BTreeSet};

use truekeep_core::ports::{Body, Delivery, Entry, Memory, Outcome};
use truekeep_core::{Key, Rank};

use super::SinkUnderTest;
use super::batches::{delete, listed, rank, send, upsert};
use crate::draws::Draws;

const HISTORIES: u64 = 24;
const KEYS: u64 = 6;
const CHANGES: u64 = 8;

/// Rule 67, X10: whatever the order, the repeats and the cuts between batches, each key ends at
/// its greatest rank; and each answer is that of the greatest rank that came before.
pub async fn every_order_of_deliveries_ends_the_same(subject: &mut dyn SinkUnderTest) {
    let capabilities = subject.sink().capabilities();
    if capabilities.remembers_deletes == Memory::None || !capabilities.versioned_deletes {
        return;
    }
    let mut number = 0;
    let mut held: BTreeMap<Key, Delivery> = BTreeMap::new();
    for seed in 0..HISTORIES {
        let mut draws = Draws::seeded(seed);
        for batch in batches(seed, &mut draws) {
            number += 1;
            let expected: Vec<Outcome> =
                batch.iter().map(|delivery| answer(&held, delivery)).collect();
            let outcomes = send(subject, number, batch.clone()).await;
            assert_eq!(outcomes, expected, "history {seed}: {batch:?}");
            for delivery in batch {
                let greatest = held.entry(delivery.key.clone()).or_insert_with(|| delivery.clone());
                if delivery.rank >= greatest.rank {
                    *greatest = delivery;
                }
            }
        }
        subject.reopen().await;
    }
    let live = |delivery: &&Delivery| delivery.body != Body::Delete;
    let entries: Vec<Entry> = held
        .values()
        .filter(live)
        .map(|delivery| Entry { key: delivery.key.clone(), rank: Some(delivery.rank) })
        .collect();
    assert_eq!(listed(&*subject.sink(), 7).await, entries);
    // A document says which rank it was made at.
    let contents: BTreeMap<Key, String> = held
        .values()
        .filter(live)
        .map(|delivery| (delivery.key.clone(), delivery.rank.to_string()))
        .collect();
    assert_eq!(subject.contents().await, contents);
}

fn answer(held: &BTreeMap<Key, Delivery>, delivery: &Delivery) -> Outcome {
    match held.get(&delivery.key).map(|held| held.rank) {
        Some(held) if held > delivery.rank => Outcome::Outdone(held),
        Some(held) if held == delivery.rank => Outcome::Repeated,
        _ => Outcome::Applied,
    }
}

/// The changes of some keys with repeats, shuffled and cut; each key once in a batch.
fn batches(seed: u64, draws: &mut Draws) -> Vec<Vec<Delivery>> {
    let mut deliveries = Vec::new();
    for key in 0..KEYS {
        let key = format!("{seed}/{key}");
        let mut ranks = BTreeSet::<Rank>::new();
        while (ranks.len() as u64) < CHANGES {
            ranks.insert(rank(1 + draws.below(2), 1 + draws.below(12)));
        }
        for rank in ranks {
            let delivery = if draws.below(2) == 0 {
                delete(&key, rank)
            } else {
                upsert(&key, rank, &rank.to_string())
            };
            for _ in 0..=draws.below(2) {
                deliveries.push(delivery.clone());
            }
        }
    }
    draws.shuffle(&mut deliveries);
    let mut batches: Vec<Vec<Delivery>> = vec![Vec::new()];
    for delivery in deliveries {
        let last = batches.last_mut().expect("there is one");
        if draws.below(9) == 0 || last.iter().any(|other| other.key == delivery.key) {
            batches.push(vec![delivery]);
        } else {
            last.push(delivery);
        }
    }
    batches
}
