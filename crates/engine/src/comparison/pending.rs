//! The items of a scope beside a comparison: both rise by key, so a page of them is enough.
//!
//! Invariant: M2.

use std::collections::VecDeque;

use truekeep_core::failure::PortError;
use truekeep_core::ports::{ItemCursor, ItemFilter, ItemState, Items, Settle};
use truekeep_core::{Key, ScopeId};

/// A walk over items, by rising key.
#[derive(Debug)]
pub(super) struct Pending<'p> {
    items: &'p dyn Items,
    scope: ScopeId,
    limit: u32,
    page: VecDeque<(Settle, ItemState)>,
    after: Option<Key>,
    ended: bool,
    /// Whether the first of the page was asked for.
    asked: bool,
    /// Parked ones that were passed and not asked for, a page of them at most.
    passed_over: Vec<Settle>,
}

impl<'p> Pending<'p> {
    /// Begins after a key.
    pub fn new(items: &'p dyn Items, scope: ScopeId, after: Option<Key>, limit: u32) -> Self {
        let (page, passed_over) = (VecDeque::new(), Vec::new());
        Self { items, scope, limit, page, after, ended: false, asked: false, passed_over }
    }

    /// The state of the key's item. Keys are asked for in rising order.
    pub async fn state(&mut self, key: &Key) -> Result<Option<ItemState>, PortError> {
        self.pass(|item| item.key < *key).await?;
        let found = self.page.front().filter(|(item, _)| item.key == *key);
        let state = found.map(|(_, state)| *state);
        self.asked |= state.is_some();
        Ok(state)
    }

    /// The parked items up to and with a key, or all that are left, that were not asked for.
    pub async fn passed_over(
        &mut self,
        upto: Option<&Key>,
        all: bool,
    ) -> Result<Vec<Settle>, PortError> {
        self.pass(|item| all || upto.is_some_and(|upto| item.key <= *upto)).await?;
        Ok(std::mem::take(&mut self.passed_over))
    }

    async fn pass(&mut self, passed: impl Fn(&Settle) -> bool) -> Result<(), PortError> {
        loop {
            while let Some((item, state)) = self.page.pop_front_if(|(item, _)| passed(item)) {
                let asked = std::mem::take(&mut self.asked);
                let room = self.passed_over.len() < self.limit as usize;
                if state == ItemState::Parked && !asked && room {
                    self.passed_over.push(item);
                }
            }
            if !self.page.is_empty() || self.ended {
                return Ok(());
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), PortError> {
        let after = self.after.clone().map(ItemCursor);
        let items = self.items.list(&self.scope, ItemFilter::All, after, self.limit).await?;
        // Unlike a listing, a page of items is short only at the end.
        self.ended = items.len() < self.limit as usize;
        self.after = items.last().map(|item| item.key.clone()).or(self.after.take());
        let settle = |item: truekeep_core::ports::Item| {
            (Settle { key: item.key, version: item.version }, item.state)
        };
        self.page.extend(items.into_iter().map(settle));
        Ok(())
    }
}
