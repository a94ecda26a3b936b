//! A table of two keys and its compacted feed, which does not see every change.

use crate::follow::source::{Acknowledged, KEYS, View};
use truekeep_core::{Rank, RulesNumber, Version};

/// A set of keys.
pub type Keys = u8;

/// Every key.
pub const ALL: Keys = (1 << KEYS) - 1;

/// The set of one key.
pub fn only(key: u8) -> Keys {
    1 << key
}

/// Whether a set has a key.
pub fn has(keys: Keys, key: u8) -> bool {
    keys & only(key) != 0
}

/// The keys of a set, in order.
pub fn each(keys: Keys) -> impl Iterator<Item = u8> {
    (0..KEYS).filter(move |key| has(keys, *key))
}

/// Documents of changes that capture did not see have numbers from here on.
const UNSEEN: u8 = 100;

/// What the feed says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    pub version: u8,
    pub live: bool,
}

/// The source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    /// The documents of the table's rows.
    pub rows: [Option<u8>; KEYS as usize],
    pub feed: [Option<Row>; KEYS as usize],
    /// The newest version when a key's row was last absent; of no meaning while it is.
    absent: [u8; KEYS as usize],
    pub newest: u8,
    pub acknowledged: Option<Acknowledged>,
}

impl Source {
    pub const EMPTY: Self = Self {
        rows: [None; KEYS as usize],
        feed: [None; KEYS as usize],
        absent: [0; KEYS as usize],
        newest: 0,
        acknowledged: None,
    };

    pub fn row(&self, key: u8) -> Option<u8> {
        self.rows[usize::from(key)]
    }

    pub fn feed(&self, key: u8) -> Option<Row> {
        self.feed[usize::from(key)]
    }

    /// Whether the feed takes a key for live.
    pub fn live(&self, key: u8) -> bool {
        self.feed(key).is_some_and(|row| row.live)
    }

    fn record(&mut self, key: u8, live: bool) {
        self.newest += 1;
        self.feed[usize::from(key)] = Some(Row { version: self.newest, live });
    }

    fn set(&mut self, key: u8, document: Option<u8>) {
        if self.row(key).is_none() || document.is_none() {
            self.absent[usize::from(key)] = self.newest;
        }
        self.rows[usize::from(key)] = document;
    }

    /// A change that capture sees, in one transaction with its row of the feed.
    pub fn change(&mut self, key: u8, live: bool) {
        self.record(key, live);
        self.set(key, live.then_some(self.newest));
    }

    /// A change that capture does not see. Of an update neither feed nor table tells anything, so
    /// only what changes whether there is a row is done.
    pub fn change_unseen(&mut self, key: u8) {
        let document = self.row(key).is_none().then_some(UNSEEN + self.newest);
        self.set(key, document);
    }

    /// Whether such a change can be told from the feed.
    pub fn is_told(&self, key: u8) -> bool {
        self.live(key) == self.row(key).is_some()
    }

    /// Gives a key a number; what it says of it is what the table says in the same transaction.
    pub fn number(&mut self, key: u8) {
        self.record(key, self.row(key).is_some());
    }

    /// A tombstone, whatever the table says.
    pub fn bury(&mut self, key: u8) {
        self.record(key, false);
    }

    /// Whether a row was absent at some time since this version was given.
    pub fn was_absent_since(&self, key: u8, version: u8) -> bool {
        self.row(key).is_none() || self.absent[usize::from(key)] >= version
    }

    /// The first change after a version, and whether it is the last one.
    pub fn after(&self, version: u8) -> (Option<(u8, u8)>, bool) {
        let rest = || {
            let feed = (0..KEYS).filter_map(|key| self.feed(key).map(|row| (key, row.version)));
            feed.filter(|(_, found)| *found > version)
        };
        (rest().min_by_key(|(_, version)| *version), rest().count() <= 1)
    }

    /// Keys after another, with the versions of those that are live in table and feed.
    pub fn keys(&self, among: Keys) -> impl Iterator<Item = (u8, u8)> {
        let live = move |key| self.feed(key).filter(|row| row.live && self.row(key).is_some());
        each(among).filter_map(move |key| live(key).map(|row| (key, row.version)))
    }

    pub fn view(&self) -> View {
        View { newest: self.newest, pruned: 0, acknowledged: self.acknowledged }
    }
}

/// The rank of a version.
pub fn rank(version: u8) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version.into()) }
}
