//! The index agrees with the reference sink after every batch.

use truekeep_core::ports::{Batch, Entry, Listing, Sink};
use truekeep_core::{BatchName, Fence, MarkNumber, Value};
use truekeep_sink_memory::MemorySink;
use truekeep_sink_tantivy::{FieldKind, TantivySink};

use crate::fixture::{batch, delete, field, spec, upsert};

/// The generator SplitMix64 (Steele, Lea, Flood, 2014).
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % bound
}

/// Batches with few keys and few versions, so that every verdict happens, also for one owner's
/// batch of an older fence, and for one that does not follow the last that is held; some keys
/// stand twice, which no caller should do.
fn random_batch(state: &mut u64, round: u64, held: u64) -> Batch {
    let mut sent = Vec::new();
    for key in (0..12).chain(0..4) {
        let (key, version) = (format!("{key}"), 1 + draw(state, 9));
        match draw(state, 4) {
            0 => sent.push(delete(&key, version)),
            1 | 2 => {
                let number = i64::try_from(draw(state, 1_000)).expect("a small number");
                sent.push(upsert(&key, version, &[("f", Value::Integer(number))]));
            }
            _ => {}
        }
    }
    let mut batch = batch(held + draw(state, 3), sent);
    batch.mark.fence = Fence::new(1 + round / 40 - draw(state, 2).min(round / 40));
    let number = MarkNumber::new((held + draw(state, 5)).saturating_sub(3));
    batch.follows = BatchName { fence: Fence::new(1 + round / 40), number };
    batch
}

async fn entries(sink: &dyn Sink) -> Vec<Entry> {
    let Listing { entries, end } = sink.list(None, 1_000).await.expect("listed");
    assert!(end);
    entries
}

#[tokio::test]
async fn index_equals_the_reference_after_every_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let fields = spec(vec![field("f", FieldKind::Signed)]);
        TantivySink::new(folder.path(), &fields).expect("named")
    };
    let (mut index, reference) = (open(), MemorySink::new());
    index.prepare().await.expect("prepared");
    let mut state = 1;
    for round in 1..200 {
        if round % 50 == 0 {
            drop(index);
            index = open();
        }
        let held = reference.mark().await.expect("read").map_or(0, |mark| mark.number.get());
        let batch = random_batch(&mut state, round, held);
        let ours = index.apply(batch.clone()).await.map_err(|error| error.code);
        let theirs = reference.apply(batch.clone()).await.map_err(|error| error.code);
        assert_eq!(ours, theirs);
        assert_eq!(index.mark().await.expect("read"), reference.mark().await.expect("read"));
        assert_eq!(entries(&index).await, entries(&reference).await);
        let ours = index.verify(&batch.deliveries).await.expect("answered");
        assert_eq!(ours, reference.verify(&batch.deliveries).await.expect("answered"));
    }
}
