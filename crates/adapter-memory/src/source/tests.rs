//! The source in memory keeps the rules of every source.

use async_trait::async_trait;
use truekeep_conformance::source::SourceUnderTest;
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

truekeep_conformance::source_rules!(MemorySource::new());
