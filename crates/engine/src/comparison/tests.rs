//! What is drift, also of documents, and what only may be late.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use truekeep_adapter_memory::MemorySource;
use truekeep_core::code::Code;
use truekeep_core::ports::{Feed, Item, ItemKind, ItemState, KeyPage, Loaded, MockItems, Sink};
use truekeep_core::{Document, PipelineName, Timestamp, Value, Version};
use truekeep_sink_memory::{Held, MemorySink};

use super::*;

const RULES: RulesNumber = RulesNumber::new(1);

fn key(text: &str) -> Key {
    Key::new(text)
}

fn scope() -> ScopeId {
    ScopeId::whole(PipelineName::parse("cities").expect("valid"))
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

#[tokio::test]
async fn items_are_walked_beside_the_differences() {
    let states = ["b", "d", "e", "h"].map(|name| (name, ItemState::Parked));
    let (items, scope) = (items(&states), scope());
    let mut pending = Pending::new(&items, scope, None, 2);
    let mut parked = String::new();
    for name in ["a", "b", "c", "e", "f", "h", "i"] {
        if pending.state(&key(name)).await.expect("listed").is_some() {
            parked += name;
        }
    }
    assert_eq!(parked, "beh");
}

/// A source and a sink that hold rows `a` to `c` alike, at versions 1 to 3, until a test changes
/// that.
struct World {
    source: MemorySource,
    sink: MemorySink,
    items: MockItems,
    cursor: u64,
    owns: Owns,
    /// What happens before documents are loaded.
    before_load: Mutex<Option<fn(&MemorySource)>>,
    /// How many documents are given at once, at most.
    at_once: usize,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

fn held(version: u64, text: &str) -> Held {
    let document = Document::new([Box::from("text")].into(), vec![Value::Text(text.into())]);
    let rank = Rank { rules: RULES, version: Version::new(version) };
    Held { rank: Some(rank), document: Arc::new(document) }
}

impl World {
    fn new() -> Self {
        let (source, sink) = (MemorySource::captured(), MemorySink::new());
        for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
            source.put(&key(name), name);
            sink.plant(key(name), held(version, name));
        }
        let before_load = Mutex::new(None);
        let (cursor, owns, at_once) = (100, Owns::All, usize::MAX);
        Self { source, sink, items: items(&[]), cursor, owns, before_load, at_once }
    }

    async fn compare(&self, deep: bool) -> Stretch {
        let sides = Sides {
            scope: scope(),
            rules: RULES,
            cursor: Place::at(Version::new(self.cursor)),
            since: None,
            deep,
            owns: self.owns,
            feed: &self.source,
            records: self,
            sink: &self.sink,
            items: &self.items,
        };
        let mut comparison = Comparison::begin(sides, None, 10);
        let stretch = comparison.advance().await.expect("compared").expect("a part");
        assert_eq!(comparison.advance().await.expect("compared"), None);
        stretch
    }

    /// The keys of the drifts.
    async fn drifts(&self) -> String {
        let stretch = self.compare(true).await;
        let name = |drift: &Drift| drift.difference.key().as_str().to_owned();
        stretch.drifts.iter().map(name).collect()
    }
}

#[async_trait]
impl Records for World {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        if let Some(happens) = self.before_load.lock().await.take() {
            happens(&self.source);
        }
        let at_once = keys.len().min(self.at_once);
        self.source.load(&keys[..at_once], bytes_max).await
    }
    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        self.source.canonical(keys).await
    }
    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        self.source.keys(after, limit).await
    }
}

#[tokio::test]
async fn a_document_altered_at_its_rank_is_drift_only_where_documents_are_compared() {
    let world = World::new();
    world.sink.plant(key("b"), held(2, "altered"));
    assert_eq!(world.compare(false).await.equal, 3);
    let stretch = world.compare(true).await;
    let rank = Rank { rules: RULES, version: Version::new(2) };
    let difference = Difference::Altered(key("b"), rank);
    let drift = Drift { difference, wanted: Some(rank), parked: false, foreign: false };
    let (drifts, differing) = (vec![drift], vec![key("b")]);
    let expected =
        Stretch { drifts, differing, equal: 2, listed: 3, live: 3, ..Stretch::default() };
    assert_eq!(stretch, expected);
}

#[tokio::test]
async fn documents_are_compared_in_batches_and_each_is() {
    let mut world = World::new();
    for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
        world.sink.plant(key(name), held(version, "altered"));
    }
    for at_once in 1..4 {
        world.at_once = at_once;
        assert_eq!(world.drifts().await, "abc");
    }
}

/// S1: what was written between the version and the document is delivered by follow.
#[tokio::test]
async fn a_document_newer_than_its_version_is_in_flight() {
    let world = World::new();
    *world.before_load.lock().await = Some(|source| source.put(&key("b"), "newer"));
    let stretch = world.compare(true).await;
    assert_eq!((stretch.drifts.len(), stretch.in_flight, stretch.equal), (0, 1, 2));
}

/// X41: the document shows the related row at once, its number comes later; nothing is decided
/// before, and nothing is forgotten.
#[tokio::test]
async fn a_document_whose_mark_waits_is_undecided() {
    let world = World::new();
    *world.before_load.lock().await = Some(|source| source.put_by_relation(&key("b"), "newer"));
    world.sink.plant(key("c"), held(3, "altered"));
    let stretch = world.compare(true).await;
    assert_eq!(stretch.undecided, [key("b"), key("c")]);
    assert_eq!((stretch.drifts.len(), stretch.in_flight), (0, 0));
    let consumer = truekeep_core::ports::Consumer {
        ledger: truekeep_core::LedgerId::parse("ledger").expect("valid"),
        pipeline: truekeep_core::Incarnation::parse("pipeline").expect("valid"),
    };
    world.source.changes(&consumer, &Place::START, 1).await.expect("marks are expanded");
    assert_eq!(world.drifts().await, "bc", "b is stale now, and c altered for sure");
}

#[tokio::test]
async fn a_document_that_cannot_be_made_is_not_taken_for_equal() {
    let world = World::new();
    world.source.break_capture();
    world.source.put_unloadable(&key("b"), Code::DOCUMENT_TOO_LARGE, "much");
    world.source.delete(&key("c"));
    *world.before_load.lock().await = Some(|source| source.delete(&key("a")));
    let drifts = world.drifts().await;
    assert_eq!(drifts, "abc", "a is gone since its key was read, c before, and no number says so");
}

#[tokio::test]
async fn an_altered_record_in_retry_is_in_flight_and_a_parked_one_is_known() {
    let mut world = World::new();
    world.items = items(&[("a", ItemState::Retry), ("b", ItemState::Parked)]);
    for (name, version) in [("a", 1), ("b", 2)] {
        world.sink.plant(key(name), held(version, "altered"));
    }
    let stretch = world.compare(true).await;
    assert_eq!((stretch.in_flight, stretch.drifts.len()), (1, 1));
    assert!(stretch.drifts[0].parked);
}

/// A sink that cannot say what it holds is refused before anything is read.
#[tokio::test]
async fn a_sink_that_cannot_verify_is_refused() {
    let world = World::new();
    let mut sink = truekeep_core::ports::MockSink::new();
    let able = world.sink.capabilities();
    let unable = truekeep_core::ports::Capabilities { verifies: false, ..able };
    sink.expect_capabilities().return_const(unable);
    let sides = Sides {
        scope: scope(),
        rules: RULES,
        cursor: Place::START,
        since: None,
        deep: true,
        owns: Owns::All,
        feed: &world.source,
        records: &world,
        sink: &sink,
        items: &world.items,
    };
    let error = Comparison::begin(sides, None, 10).advance().await.expect_err("refused");
    assert_eq!(error.code, Code::SINK_UNVERIFIABLE);
}
