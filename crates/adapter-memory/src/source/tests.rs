//! The source in memory keeps the rules of every source.

use async_trait::async_trait;
use truekeep_conformance::source::{
    RelatedSource, SourceUnderTest, random_operations_are_answered_as_the_model_does,
};
use truekeep_core::ports::{Capture, Feed, Records};

use super::*;

#[async_trait]
impl SourceUnderTest for MemorySource {
    fn feed(&self) -> &dyn Feed {
        self
    }

    fn records(&self) -> &dyn Records {
        self
    }

    fn capture(&self) -> &dyn Capture {
        self
    }

    async fn put(&self, key: &str, text: &str) {
        Self::put(self, &Key::new(key), text);
    }

    async fn delete(&self, key: &str) {
        Self::delete(self, &Key::new(key));
    }

    async fn put_and_roll_back(&self, key: &str, text: &str) {
        let before = self.backup();
        Self::put(self, &Key::new(key), text);
        self.restore(&before);
    }

    async fn break_capture(&self) {
        Self::break_capture(self);
    }
}

#[async_trait]
impl RelatedSource for MemorySource {
    async fn rename(&self, from: &str, to: &str, text: &str) {
        Self::delete(self, &Key::new(from));
        Self::put(self, &Key::new(to), text);
    }

    async fn relate(&self, key: &str, text: &str) {
        self.put_by_relation(&Key::new(key), text);
    }
}

truekeep_conformance::source_rules!(MemorySource::new());

/// The reference answers as the model does, and so as every other source does.
#[tokio::test]
async fn random_operations_have_the_same_answers() {
    for seed in 0..100 {
        random_operations_are_answered_as_the_model_does(&MemorySource::new(), seed, 120).await;
    }
}
