//! The reference sink obeys the rules of every sink.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use truekeep_conformance::sink::SinkUnderTest;
use truekeep_core::ports::Sink;
use truekeep_core::{Document, Key, Value};
use truekeep_sink_memory::{Held, MemorySink};

#[derive(Debug, Default)]
struct Subject(Arc<MemorySink>);

async fn open() -> Subject {
    Subject::default()
}

#[async_trait]
impl SinkUnderTest for Subject {
    fn sink(&self) -> Arc<dyn Sink> {
        Arc::clone(&self.0) as Arc<dyn Sink>
    }

    async fn reopen(&mut self) {}

    async fn contents(&self) -> BTreeMap<Key, String> {
        let body = |held: Held| match held.document.values() {
            [Value::Text(text)] => text.to_string(),
            other => panic!("no document of the suite: {other:?}"),
        };
        self.0.contents().into_iter().map(|(key, held)| (key, body(held))).collect()
    }

    async fn plant(&self, key: &Key, body: &str) -> bool {
        let document = Document::new(Arc::new(["body".into()]), vec![Value::Text(body.into())]);
        self.0.plant(key.clone(), Held { rank: None, document: Arc::new(document) });
        true
    }

    async fn alter(&self, key: &Key, body: &str) -> bool {
        let rank = self.0.contents()[key].rank;
        let document = Document::new(Arc::new(["body".into()]), vec![Value::Text(body.into())]);
        self.0.plant(key.clone(), Held { rank, document: Arc::new(document) });
        true
    }
}

truekeep_conformance::sink_rules!(open);

/// A sink that lists in no order obeys the others.
mod scattered {
    use std::sync::Arc;

    use truekeep_sink_memory::{Manner, MemorySink};

    use super::Subject;

    async fn open() -> Subject {
        let manner = Manner { scattered: true, ..Manner::default() };
        Subject(Arc::new(MemorySink::listing(manner)))
    }

    truekeep_conformance::sink_rules!(open);
}
