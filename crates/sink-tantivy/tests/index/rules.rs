//! The index obeys the rules of every sink.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tempfile::TempDir;
use truekeep_conformance::sink::SinkUnderTest;
use truekeep_core::Key;
use truekeep_core::ports::Sink;
use truekeep_sink_tantivy::{FieldKind, IndexSpec, TantivySink};

use crate::fixture::{alter, commit_aside, field, raw_documents, raw_writer, spec};

#[derive(Debug)]
struct Subject {
    folder: TempDir,
    sink: Mutex<Option<Arc<TantivySink>>>,
}

impl Subject {
    fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn spec() -> IndexSpec {
        spec(vec![field("body", FieldKind::Keyword)])
    }

    async fn open(&self) {
        let sink = TantivySink::new(&self.path(), &Self::spec()).expect("opened");
        sink.prepare().await.expect("prepared");
        *self.sink.lock().expect("sound") = Some(Arc::new(sink));
    }

    /// Ends the sink, so that another program can write the index.
    fn close(&self) {
        let sink = self.sink.lock().expect("sound").take().expect("it is open");
        Arc::into_inner(sink).expect("nobody else has it");
    }
}

async fn open() -> Subject {
    let folder = tempfile::tempdir().expect("a folder");
    let subject = Subject { folder, sink: Mutex::new(None) };
    subject.open().await;
    subject
}

#[async_trait]
impl SinkUnderTest for Subject {
    fn sink(&self) -> Arc<dyn Sink> {
        let sink = self.sink.lock().expect("sound");
        Arc::clone(sink.as_ref().expect("it is open")) as Arc<dyn Sink>
    }

    async fn reopen(&mut self) {
        self.close();
        self.open().await;
    }

    async fn contents(&self) -> BTreeMap<Key, String> {
        let body = |fields: &BTreeMap<String, String>| fields["body"].clone();
        raw_documents(&self.path())
            .iter()
            .map(|(key, fields)| (key.clone(), body(fields)))
            .collect()
    }

    async fn poison(&self) -> Option<String> {
        Some("x".repeat(70_000))
    }

    async fn plant(&self, key: &Key, body: &str) -> bool {
        self.close();
        let (index, writer) = raw_writer(&self.path());
        let mut document = tantivy::TantivyDocument::default();
        for (name, text) in [("_key", key.as_str()), ("body", body)] {
            document.add_text(index.schema().get_field(name).expect("a field"), text);
        }
        writer.add_document(document).expect("added");
        commit_aside(&index, writer);
        self.open().await;
        true
    }

    async fn alter(&self, key: &Key, body: &str) -> bool {
        self.close();
        alter(&self.path(), key, "body", body);
        self.open().await;
        true
    }

    async fn empty(&self) -> bool {
        std::fs::remove_dir_all(self.path()).expect("removed");
        true
    }
}

truekeep_conformance::sink_rules!(open);
