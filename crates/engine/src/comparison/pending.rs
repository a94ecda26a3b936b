//! The items of a scope beside a comparison: both rise by key, so a page of them is enough.
//!
//! Invariant: M2.

use std::collections::VecDeque;

use truekeep_core::failure::PortError;
use truekeep_core::ports::{ItemCursor, ItemFilter, ItemState, Items};
use truekeep_core::{Key, ScopeId};

/// A walk over items, by rising key.
#[derive(Debug)]
pub(super) struct Pending<'p> {
    items: &'p dyn Items,
    scope: ScopeId,
    limit: u32,
    page: VecDeque<(Key, ItemState)>,
    after: Option<Key>,
    ended: bool,
}

impl<'p> Pending<'p> {
    /// Begins after a key.
    pub fn new(items: &'p dyn Items, scope: ScopeId, after: Option<Key>, limit: u32) -> Self {
        Self { items, scope, limit, page: VecDeque::new(), after, ended: false }
    }

    /// The state of the key's item. Keys are asked for in rising order.
    pub async fn state(&mut self, key: &Key) -> Result<Option<ItemState>, PortError> {
        loop {
            while self.page.front().is_some_and(|(front, _)| front < key) {
                self.page.pop_front();
            }
            match self.page.front() {
                Some((front, state)) => return Ok((front == key).then_some(*state)),
                None if self.ended => return Ok(None),
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<(), PortError> {
        let after = self.after.clone().map(ItemCursor);
        let items = self.items.list(&self.scope, ItemFilter::All, after, self.limit).await?;
        // Unlike a listing, a page of items is short only at the end.
        self.ended = items.len() < self.limit as usize;
        self.after = items.last().map(|item| item.key.clone()).or(self.after.take());
        self.page.extend(items.into_iter().map(|item| (item.key, item.state)));
        Ok(())
    }
}
