//! The source's ports over the way to it. A document says under which rules it was made.

use std::sync::Arc;

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    AuditPage, Capture, CaptureReport, Change, ChangePage, Consumer, Feed, FillProgress, KeyPage,
    Loaded, Numbered, Pulsed, Records, Registration, SourceView,
};
use truekeep_core::{Document, Key, Place, Value, Version};

use crate::plan::Poison;
use crate::poison;
use crate::wire::Wire;
use crate::world::{World, at_once};

/// The source as a process reaches it, on behalf of one pipeline.
#[derive(Debug)]
pub(crate) struct SourcePort {
    pub wire: Wire,
    pub pipeline: usize,
}

#[async_trait]
impl Feed for SourcePort {
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError> {
        let (consumer, at) = (consumer.clone(), at.clone());
        let deed = move |w: &World| at_once(w.stores.source.view(&consumer, &at));
        self.wire.call("feed.view", deed).await
    }

    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError> {
        let (consumer, after) = (consumer.clone(), after.clone());
        let (at, limit) = (self.pipeline, self.wire.clamp(limit));
        let deed =
            move |w: &World| w.watched(|a, stores| a.changes(stores, at, &consumer, &after, limit));
        self.wire.call("feed.changes", deed).await
    }

    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError> {
        let keys = keys.to_vec();
        self.wire.call("feed.find", move |w| at_once(w.stores.source.find(&keys))).await
    }

    async fn register(&self, consumer: &Consumer, new: &Registration) -> Result<(), PortError> {
        let (consumer, new) = (consumer.clone(), new.clone());
        let deed = move |w: &World| at_once(w.stores.source.register(&consumer, &new));
        self.wire.call("feed.register", deed).await
    }

    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError> {
        let consumer = consumer.clone();
        self.wire.call("feed.forget", move |w| at_once(w.stores.source.forget(&consumer))).await
    }

    async fn prune(&self) -> Result<u64, PortError> {
        let deed = |w: &World| w.watched(|auditor, stores| auditor.prune(stores));
        self.wire.call("feed.prune", deed).await
    }

    async fn pending(&self) -> Result<bool, PortError> {
        self.wire.call("feed.pending", |w| at_once(w.stores.source.pending())).await
    }

    async fn pulse(&self) -> Result<Pulsed, PortError> {
        self.wire.call("feed.pulse", |w| at_once(Feed::pulse(&w.stores.source))).await
    }
}

#[async_trait]
impl Records for SourcePort {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        let keys = keys.to_vec();
        let deed = move |w: &World| at_once(w.stores.source.load(&keys, bytes_max));
        let mut loaded = self.wire.call("records.load", deed).await?;
        if loaded.iter().any(|one| poison_of(one) == Some(Poison::KillsReader)) {
            return self.wire.process.die("a record that it loaded").await;
        }
        loaded.truncate(self.wire.clamp(u32::MAX) as usize);
        let made_by = &self.wire.process.fingerprint;
        Ok(loaded.into_iter().map(|one| projected(one, made_by)).collect())
    }

    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        let keys = keys.to_vec();
        self.wire
            .call("records.canonical", move |w| at_once(w.stores.source.canonical(&keys)))
            .await
    }

    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        let limit = self.wire.clamp(limit);
        self.wire.call("records.keys", move |w| at_once(w.stores.source.keys(after, limit))).await
    }
}

#[async_trait]
impl Capture for SourcePort {
    async fn install(&self) -> Result<CaptureReport, PortError> {
        self.wire.call("capture.install", |w| at_once(w.stores.source.install())).await
    }

    async fn fill(&self) -> Result<FillProgress, PortError> {
        self.wire.call("capture.fill", |w| w.watched(|a, stores| a.fill(stores))).await
    }

    async fn verify(&self) -> Result<CaptureReport, PortError> {
        self.wire.call("capture.verify", |w| at_once(w.stores.source.verify())).await
    }

    async fn audit(&self, after: Option<Key>, limit: u32) -> Result<AuditPage, PortError> {
        let limit = self.wire.clamp(limit);
        self.wire.call("capture.audit", move |w| at_once(w.stores.source.audit(after, limit))).await
    }

    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError> {
        let (at, keys, who) = (self.pipeline, keys.to_vec(), self.wire.process.name.clone());
        let deed = move |w: &World| w.watched(|a, stores| a.number(stores, at, &who, &keys));
        self.wire.call("capture.number", deed).await
    }

    async fn begin_again(&self, above: Version) -> Result<(), PortError> {
        let deed = move |w: &World| at_once(w.stores.source.begin_again(above));
        self.wire.call("capture.begin_again", deed).await
    }

    async fn remove(&self) -> Result<(), PortError> {
        self.wire.call("capture.remove", |w| at_once(w.stores.source.remove())).await
    }
}

fn text_of(loaded: &Loaded) -> Option<&str> {
    match loaded {
        Loaded::Live(document) => match document.values().first() {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        },
        Loaded::Absent | Loaded::Unloadable(..) => None,
    }
}

fn poison_of(loaded: &Loaded) -> Option<Poison> {
    poison::of(text_of(loaded)?)
}

fn projected(loaded: Loaded, made_by: &str) -> Loaded {
    let Some(text) = text_of(&loaded) else { return loaded };
    let names: Arc<[Box<str>]> = [Box::from("text"), Box::from("made_by")].into();
    Loaded::Live(Document::new(names, vec![Value::Text(text.into()), Value::Text(made_by.into())]))
}
