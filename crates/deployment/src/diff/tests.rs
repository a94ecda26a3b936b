//! What is drift, what is in flight, and in which order the two sides are read.

use std::sync::Arc;
use std::time::Duration;

use truekeep_adapter_memory::{MemorySource, MemorySpill};
use truekeep_core::code::Code;
use truekeep_core::compare::Owns;
use truekeep_core::ports::{
    Batch, Body, Delivery, Item, ItemKind, ItemState, Mark, MockItems, Sink,
};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, LedgerId, MarkNumber, Timestamp, Value,
};
use truekeep_sink_memory::{Elapsed, Held, Manner, MemorySink};

use truekeep_core::{Place, RulesNumber, ScopeId, Version};

use super::*;
use crate::clock::SystemClock;

const RULES: RulesNumber = RulesNumber::new(1);

fn key(text: &str) -> Key {
    Key::new(text)
}

fn held(rules: u64, version: u64) -> Held {
    let rank = Rank { rules: RulesNumber::new(rules), version: Version::new(version) };
    let document = Document::new([Box::from("a")].into(), vec![Value::Null]);
    Held { rank: Some(rank), document: Arc::new(document) }
}

fn scope() -> ScopeId {
    ScopeId::whole(truekeep_core::PipelineName::parse("cities").expect("valid"))
}

/// Items in these states, listed two at a time.
fn items(states: &[(&str, ItemState)]) -> MockItems {
    let item = |(name, state): &(&str, ItemState)| Item {
        scope: scope(),
        key: key(name),
        version: Version::new(1),
        kind: ItemKind::Upsert,
        state: *state,
        attempts: 1,
        due_at: Timestamp::from_ms(0),
        code: Code::SINK_REFUSED,
        reason: String::new(),
        changed_at: Timestamp::from_ms(0),
    };
    let all: Vec<Item> = states.iter().map(item).collect();
    let mut items = MockItems::new();
    items.expect_list().returning(move |_, _, after, limit| {
        let rest = all.iter().filter(|item| after.as_ref().is_none_or(|a| item.key > a.0));
        Ok(rest.take(limit as usize).cloned().collect())
    });
    items
}

struct World {
    source: MemorySource,
    sink: MemorySink,
    items: MockItems,
    rules: RulesNumber,
    cursor: u64,
    deep: bool,
    owns: Owns,
}

impl World {
    /// A source with these rows at versions 1, 2, .. and nothing else.
    fn with(rows: &[&str]) -> Self {
        let source = MemorySource::captured();
        for row in rows {
            source.put(&key(row), row);
        }
        let (sink, items) = (MemorySink::new(), items(&[]));
        Self { source, sink, items, rules: RULES, cursor: 1_000, deep: false, owns: Owns::All }
    }

    /// Delivers a row to the sink.
    async fn deliver(&self, row: &str, rank: Rank) {
        let mark = Mark {
            ledger: LedgerId::parse("ledger").expect("valid"),
            pipeline: Incarnation::parse("pipeline").expect("valid"),
            rules: RULES,
            fence: Fence::new(1),
            number: MarkNumber::new(1),
            removed: false,
        };
        let body = Body::Upsert(Arc::new(Document::new([].into(), Vec::new())));
        let deliveries = vec![Delivery { key: key(row), rank, body }];
        let batch = Batch { mark, follows: BatchName::default(), deliveries };
        self.sink.apply(batch).await.expect("applied");
    }

    async fn compare(&self) -> Found {
        let sides = Sides {
            scope: scope(),
            rules: self.rules,
            cursor: Place::at(Version::new(self.cursor)),
            since: None,
            deep: self.deep,
            owns: self.owns,
            feed: &self.source,
            records: &self.source,
            sink: &self.sink,
            items: &self.items,
        };
        let spill = MemorySpill::new(usize::MAX);
        let means = Means { capture: &self.source, spill: &spill, clock: &SystemClock };
        compare(&sides, means, |_| {}).await.expect("compared")
    }
}

fn kinds(found: &Found) -> Vec<(Kind, String)> {
    found.named.iter().map(|named| (named.kind, named.key.to_string())).collect()
}

#[tokio::test]
async fn equal_sides_have_no_drift() {
    let world = World::with(&["a", "b"]);
    world.sink.plant(key("a"), held(1, 1));
    world.sink.plant(key("b"), held(1, 2));
    let found = world.compare().await;
    assert_eq!((found.equal, found.drift(), found.in_flight), (2, 0, 0));
}

#[tokio::test]
async fn missing_stale_orphan_and_ahead_are_told_apart() {
    let world = World::with(&["a", "b", "c", "d"]);
    world.sink.plant(key("b"), held(1, 1));
    world.sink.plant(key("c"), held(1, 9));
    world.sink.plant(key("d"), held(1, 4));
    world.sink.plant(key("e"), held(1, 4));
    let foreign = Held { rank: None, ..held(1, 1) };
    world.sink.plant(key("f"), foreign);
    let found = world.compare().await;
    let expected = [
        (Kind::Missing, "a".to_owned()),
        (Kind::Stale, "b".to_owned()),
        (Kind::Ahead, "c".to_owned()),
        (Kind::Orphan, "e".to_owned()),
        (Kind::Orphan, "f".to_owned()),
    ];
    assert_eq!(kinds(&found), expected);
    assert_eq!((found.equal, found.drift()), (1, 5));
}

#[tokio::test]
async fn documents_are_compared_only_if_that_is_asked_for() {
    let mut world = World::with(&["a", "b"]);
    for (name, version, text) in [("a", 1, "altered"), ("b", 2, "b")] {
        let names = [Box::from("text")].into();
        let document = Arc::new(Document::new(names, vec![Value::Text(text.into())]));
        world.sink.plant(key(name), Held { document, ..held(1, version) });
    }
    let found = world.compare().await;
    assert_eq!((found.equal, found.altered), (2, None));
    world.deep = true;
    let found = world.compare().await;
    assert_eq!((found.equal, found.altered, found.drift()), (1, Some(1), 1));
    assert_eq!(kinds(&found), [(Kind::Altered, "a".to_owned())]);
    world.source.put_by_relation(&key("b"), "newer");
    let found = world.compare().await;
    assert_eq!((found.drift(), found.in_flight), (0, 2), "each may be newer than its number");
}

/// A listing in no order, and one that lags behind what it was given.
#[tokio::test]
async fn a_sink_that_lists_in_no_order_or_late_is_compared_all_the_same() {
    let began = std::time::Instant::now();
    let lag = (Duration::from_millis(40), Arc::new(move || began.elapsed()) as Elapsed);
    for (scattered, lag) in [(true, None), (false, Some(lag.clone())), (true, Some(lag))] {
        let rows = ["10", "01", "a1", "1a"];
        let world = World {
            sink: MemorySink::listing(Manner { scattered, lag, repeats: false }),
            ..World::with(&rows)
        };
        for (version, row) in (1..).zip(rows) {
            let rank = Rank { rules: RULES, version: Version::new(version) };
            world.deliver(row, rank).await;
        }
        world.sink.plant(key("b0"), held(1, 1));
        world.sink.lose(&key("a1"));
        let found = world.compare().await;
        let expected = [(Kind::Missing, "a1".to_owned()), (Kind::Orphan, "b0".to_owned())];
        assert_eq!((kinds(&found), found.equal), (expected.to_vec(), 3));
    }
}

/// Rule 37.
#[tokio::test]
async fn entries_of_others_are_drift_or_left_alone() {
    let mut world = World::with(&["a"]);
    world.source.declare_foreign("~");
    world.sink.plant(key("a"), held(1, 1));
    world.sink.plant(key("b"), Held { rank: None, ..held(1, 1) });
    world.sink.plant(key("~"), held(1, 1));
    let found = world.compare().await;
    assert_eq!((found.orphan, found.unmarked), (2, 0));
    let foreign: Vec<bool> = found.named.iter().map(|named| named.foreign).collect();
    assert_eq!(foreign, [false, true]);
    world.owns = Owns::Marked;
    let found = world.compare().await;
    assert_eq!((found.equal, found.drift(), found.unmarked), (1, 0, 2));
}

#[tokio::test]
async fn an_equal_version_under_older_rules_is_stale() {
    let mut world = World::with(&["a"]);
    world.sink.plant(key("a"), held(1, 1));
    world.rules = RulesNumber::new(2);
    assert_eq!(world.compare().await.stale, 1);
}

#[tokio::test]
async fn what_the_pipeline_has_not_come_to_is_in_flight() {
    let mut world = World::with(&["a", "b", "c"]);
    world.cursor = 1;
    world.sink.plant(key("b"), held(1, 1));
    world.sink.plant(key("d"), held(1, 1));
    world.source.put(&key("d"), "d");
    world.source.delete(&key("d"));
    let found = world.compare().await;
    assert_eq!(kinds(&found), [(Kind::Missing, "a".to_owned())]);
    assert_eq!(found.in_flight, 3, "b is stale, c missing and d an orphan, each after the cursor");
}

#[tokio::test]
async fn an_orphan_that_the_pipeline_has_passed_is_drift() {
    let world = World::with(&["a"]);
    world.sink.plant(key("a"), held(1, 1));
    world.source.delete(&key("a"));
    assert_eq!(kinds(&world.compare().await), [(Kind::Orphan, "a".to_owned())]);
}

#[tokio::test]
async fn a_sink_that_is_ahead_is_drift_wherever_the_cursor_is() {
    let mut world = World::with(&["a"]);
    world.cursor = 0;
    world.sink.plant(key("a"), held(1, 7));
    assert_eq!(world.compare().await.ahead, 1);
}

#[tokio::test]
async fn a_parked_record_is_drift_that_is_known_and_one_in_retry_is_in_flight() {
    let mut world = World::with(&["a", "b"]);
    world.items = items(&[("a", ItemState::Parked), ("b", ItemState::Retry)]);
    let found = world.compare().await;
    assert_eq!((found.missing, found.parked, found.in_flight), (1, 1, 1));
    assert!(found.named[0].parked);
}

/// X35: and left as it is.
#[tokio::test]
async fn a_change_that_was_not_recorded_is_found_in_the_source_itself() {
    let world = World::with(&["a"]);
    world.sink.plant(key("a"), held(1, 1));
    world.source.break_capture();
    world.source.put(&key("b"), "b");
    world.source.delete(&key("a"));
    let found = world.compare().await;
    assert_eq!(found.capture_missed, 2, "a row that was not recorded, and one that is gone");
    assert_eq!(world.compare().await.capture_missed, 2, "nothing was mended");
}

#[tokio::test]
async fn differences_beyond_the_named_are_counted() {
    let rows: Vec<String> = (0..2_500).map(|n| format!("{n:05}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let mut world = World::with(&rows);
    world.cursor = u64::MAX;
    let found = world.compare().await;
    assert_eq!((found.missing, found.named.len()), (2_500, NAMED_MAX));
}
