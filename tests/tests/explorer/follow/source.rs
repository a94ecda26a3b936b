//! A source of two keys, and its compacted feed with tombstones.

/// How many keys there are.
pub const KEYS: u8 = 2;
/// The most changes that a writer makes.
pub const CHANGES_MAX: usize = 5;

/// One change: its version is its place in the history, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Changed {
    pub key: u8,
    pub live: bool,
}

/// A consumer's acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Acknowledged {
    pub counter: u8,
    pub cursor: u8,
}

/// The source, as a page sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    pub newest: u8,
    pub pruned: u8,
    pub acknowledged: Option<Acknowledged>,
}

/// One row of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    pub key: u8,
    pub version: u8,
    pub deleted: bool,
}

/// A page of at most one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Page {
    pub row: Option<Row>,
    pub next: u8,
    pub moment: Option<u8>,
    pub view: View,
}

/// Everything that ever happened: what the source says now, and what it said at any moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    history: [Option<Changed>; CHANGES_MAX],
    pub pruned: u8,
    pub acknowledged: Option<Acknowledged>,
}

impl Source {
    pub const EMPTY: Self = Self { history: [None; CHANGES_MAX], pruned: 0, acknowledged: None };

    pub fn newest(&self) -> u8 {
        self.history().map(|(version, _)| version).last().unwrap_or(0)
    }

    /// The next change, in one transaction with its row of the feed.
    pub fn change(&mut self, key: u8, live: bool) {
        let next = usize::from(self.newest());
        self.history[next] = Some(Changed { key, live });
    }

    fn history(&self) -> impl Iterator<Item = (u8, Changed)> {
        (1..).zip(self.history.iter().map_while(|changed| *changed))
    }

    /// The last change of a key that the moment includes.
    pub fn last_change(&self, key: u8, moment: u8) -> Option<(u8, bool)> {
        self.history()
            .filter(|(version, changed)| *version <= moment && changed.key == key)
            .map(|(version, changed)| (version, changed.live))
            .last()
    }

    /// Whether a key was absent at some time from this version on.
    pub fn was_absent_since(&self, key: u8, since: u8) -> bool {
        self.history()
            .any(|(version, changed)| version >= since && changed.key == key && !changed.live)
    }

    /// The version of the present row, if the key is live.
    pub fn document(&self, key: u8) -> Option<u8> {
        self.last_change(key, u8::MAX).filter(|(_, live)| *live).map(|(version, _)| version)
    }

    /// The feed's present row of a key.
    pub fn find(&self, key: u8) -> Option<Row> {
        let (version, live) = self.last_change(key, u8::MAX)?;
        (live || version > self.pruned).then_some(Row { key, version, deleted: !live })
    }

    /// The next page, in one snapshot.
    pub fn page(&self, after: u8) -> Page {
        let rows = || (0..KEYS).filter_map(|key| self.find(key)).filter(|row| row.version > after);
        let row = rows().min_by_key(|row| row.version);
        Page {
            row,
            next: row.map_or(after, |row| row.version),
            moment: (rows().count() <= 1).then(|| self.newest()),
            view: self.view(),
        }
    }

    pub fn view(&self) -> View {
        View { newest: self.newest(), pruned: self.pruned, acknowledged: self.acknowledged }
    }

    /// Stores an acknowledgement; never moves one back.
    pub fn register(&mut self, new: Acknowledged) {
        let old = self.acknowledged.unwrap_or(new);
        self.acknowledged = Some(Acknowledged {
            counter: new.counter.max(old.counter),
            cursor: new.cursor.max(old.cursor),
        });
    }

    /// Forgets the tombstones up to a version; false if there is none.
    pub fn prune(&mut self, up_to: u8) -> bool {
        let newest = (0..KEYS)
            .filter_map(|key| self.find(key))
            .filter(|row| row.deleted && row.version <= up_to)
            .map(|row| row.version)
            .max();
        self.pruned = newest.unwrap_or(self.pruned);
        newest.is_some()
    }
}
