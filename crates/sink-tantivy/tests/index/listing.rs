//! A listing over many segments, beside a writer that merges them.

use truekeep_core::ports::{Entry, Sink};
use truekeep_core::{Key, Value};
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

/// What was read ahead is handed out only while it is what the index holds.
#[tokio::test]
async fn listing_under_way_sees_what_is_written_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let fields = spec(vec![field("f", FieldKind::Signed)]);
    let open = || TantivySink::new(folder.path(), &fields).expect("named");
    let (reader, writer) = (open(), open());
    writer.prepare().await.expect("prepared");
    let key = |place: u64| format!("{place:02}");
    let put = |place, version| upsert(&key(place), version, &[("f", Value::Integer(1))]);
    let sent = (0..30).step_by(2).map(|place| put(place, 1)).collect();
    writer.apply(batch(1, sent)).await.expect("applied");
    for (number, sink) in [(2, &writer), (4, &reader)] {
        let page = async |after: u64| {
            let page = sink.list(Some(Key::new(key(after))), 3).await.expect("listed");
            page.entries.iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(page(0).await, [2, 4, 6].map(key));
        assert_eq!(page(6).await, [8, 10, 12].map(key));
        let sent = vec![put(15, number), delete(&key(16), number)];
        writer.apply(batch(number, sent)).await.expect("applied");
        assert_eq!(page(12).await, [14, 15, 18].map(key));
        assert_eq!(page(18).await, [20, 22, 24].map(key));
        assert_eq!(page(2).await, [4, 6, 8].map(key), "and one that begins anywhere");
        let back = vec![put(16, number + 1), delete(&key(15), number + 1)];
        writer.apply(batch(number + 1, back)).await.expect("applied");
    }
}
