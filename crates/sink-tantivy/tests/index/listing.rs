//! A listing over many segments, beside a writer that merges them.

use truekeep_core::Value;
use truekeep_core::ports::{Entry, Sink};
use truekeep_sink_memory::MemorySink;
use truekeep_sink_tantivy::{FieldKind, TantivySink};

use crate::fixture::{batch, delete, field, spec, upsert};

/// Rule 33: keys rise strictly, each once, whatever segments they lie in and wherever pages are
/// cut; a writer that goes on between two pages confuses neither.
#[tokio::test]
async fn listing_merges_segments_while_they_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let fields = spec(vec![field("f", FieldKind::Signed)]);
    let sink = TantivySink::new(folder.path(), &fields).expect("named");
    sink.prepare().await.expect("prepared");
    let reference = MemorySink::new();
    for number in 1..40u64 {
        let mut sent = Vec::new();
        for place in 0..30u64 {
            let key = (number * 7 + place * 11) % 200;
            let key = format!("{}{key}", "x".repeat(usize::try_from(key % 3).expect("small")));
            sent.push(if place % 5 == 4 {
                delete(&key, number)
            } else {
                upsert(&key, number, &[("f", Value::Integer(1))])
            });
        }
        sink.apply(batch(number, sent.clone())).await.expect("applied");
        reference.apply(batch(number, sent)).await.expect("applied");
        let expected = reference.list(None, 1_000).await.expect("listed").entries;
        for limit in [1, 7, 64, 1_000] {
            let mut found: Vec<Entry> = Vec::new();
            loop {
                let after = found.last().map(|entry| entry.key.clone());
                let page = sink.list(after, limit).await.expect("listed");
                found.extend(page.entries);
                if page.end {
                    break;
                }
            }
            assert_eq!(found, expected, "pages of {limit} after batch {number}");
        }
    }
}
