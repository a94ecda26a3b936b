//! The records of a source in memory.
//!
//! Invariant: S1.

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{KeyPage, Loaded, Records};
use truekeep_core::{Document, Key, Value, Version};

use super::{MemorySource, Row, after, missing};

impl MemorySource {
    fn loaded(&self, row: Option<&Row>) -> Loaded {
        match row {
            None => Loaded::Absent,
            Some(Row::Unloadable(code, reason)) => Loaded::Unloadable(code.clone(), reason.clone()),
            Some(Row::Text(text)) => {
                Loaded::Live(Document::new(self.names.clone(), vec![Value::Text(text.clone())]))
            }
        }
    }
}

#[async_trait]
impl Records for MemorySource {
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError> {
        let state = self.lock();
        let mut all = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let loaded = self.loaded(state.rows.get(key));
            if let Loaded::Live(document) = &loaded {
                bytes += document.bytes();
                if bytes > bytes_max && !all.is_empty() {
                    break;
                }
            }
            all.push(loaded);
        }
        Ok(all)
    }

    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError> {
        let state = self.lock();
        Ok(keys.iter().map(|key| !state.is_foreign(key)).collect())
    }

    async fn keys(&self, from: Option<Key>, limit: u32) -> Result<KeyPage, PortError> {
        let mut state = self.lock();
        let state = &mut *state;
        let feed = state.feed.as_ref().ok_or_else(|| missing("list keys"))?;
        let mut rest = after(&feed.rows, from.as_ref());
        let looked: Vec<_> = rest.by_ref().take(limit.max(1) as usize).collect();
        let next = looked.last().filter(|_| rest.next().is_some()).map(|(key, _)| Key::clone(key));
        let keys = looked
            .into_iter()
            .filter(|(key, (_, deleted))| !deleted && state.rows.contains_key(*key))
            .map(|(key, row)| (key.clone(), Version::new(row.0)))
            .collect();
        Ok(KeyPage { keys, next })
    }
}
