//! The reference generations obey the rules of every sink with generations.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use truekeep_conformance::generations::GenerationsUnderTest;
use truekeep_core::ports::Generations;
use truekeep_core::{Key, Value};
use truekeep_sink_memory::MemoryGenerations;

#[derive(Debug, Default)]
struct Subject(Arc<MemoryGenerations>);

async fn open() -> Subject {
    Subject::default()
}

#[async_trait]
impl GenerationsUnderTest for Subject {
    fn generations(&self) -> Arc<dyn Generations> {
        Arc::clone(&self.0) as Arc<dyn Generations>
    }

    async fn reopen(&mut self) {}

    async fn seen(&self) -> BTreeMap<Key, String> {
        let Some(seen) = self.0.seen() else { return BTreeMap::new() };
        let body = |value: &Value| match value {
            Value::Text(text) => text.to_string(),
            other => panic!("no document of the suite: {other:?}"),
        };
        let held = seen.contents().into_iter();
        held.map(|(key, held)| (key, body(&held.document.values()[0]))).collect()
    }
}

truekeep_conformance::generation_rules!(open);
