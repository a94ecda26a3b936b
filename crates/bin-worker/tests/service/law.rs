//! The law, checked in the files: what a complete certificate says is so, and no rank ever falls.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use truekeep::wiring::open_source;
use truekeep_core::certificate::State;
use truekeep_core::{Moment, Place, Version};

use crate::world::{World, wait_for};

/// What the mirror was seen to hold.
#[derive(Debug, Default)]
pub struct Law {
    /// The greatest (rules, version) of each key.
    greatest: BTreeMap<String, (u64, u64)>,
    /// The moments of complete certificates, so that a test knows that it tested something.
    pub moments: BTreeSet<Version>,
}

/// What the mirror holds of a key.
#[derive(Debug, Clone, Copy)]
struct Entry {
    rank: (u64, u64),
    live: bool,
}

impl Law {
    /// Checks it. The worker is dead, the application may go on.
    pub fn check(&mut self, world: &World) {
        let entries = entries(&world.mirror());
        for (key, entry) in &entries {
            let greatest = self.greatest.entry(key.clone()).or_default();
            assert!(entry.rank >= *greatest, "{key:?} went from {greatest:?} back to {entry:?}");
            *greatest = entry.rank;
        }
        for key in self.greatest.keys() {
            assert!(entries.contains_key(key), "{key:?} was forgotten");
        }
        let known = world.known("things");
        if let (Some(State::Complete), Some(moment)) = (known.state(), known.moment()) {
            self.moments.insert(moment.newest());
            // Before the feed is read: a row that changes in between has a greater version there.
            let rows = ids(&world.source());
            covers(world, moment, &rows, &entries);
        }
    }
}

/// Every row of the feed up to the moment is in the mirror, at least as new, and live if its row is.
fn covers(
    world: &World,
    moment: &Moment,
    rows: &BTreeSet<String>,
    entries: &BTreeMap<String, Entry>,
) {
    for change in feed(world) {
        // What changed since has a greater version, and stands nowhere else.
        if !moment.covers(change.stamp) {
            continue;
        }
        let (key, version) = (change.key.as_str(), change.version.get());
        match entries.get(key) {
            None => assert!(!rows.contains(key), "{change:?} is missing at {moment}"),
            Some(entry) => {
                assert!(entry.rank.1 >= version, "{change:?} is {entry:?} at {moment}");
                // At the same version it is the same record.
                let same = entry.live == rows.contains(key);
                assert!(entry.rank.1 > version || same, "{change:?} is {entry:?} at {moment}");
            }
        }
    }
}

/// The keys of the rows that are there.
fn ids(source: &Connection) -> BTreeSet<String> {
    let mut statement = source.prepare("SELECT CAST(id AS TEXT) FROM things").expect("prepared");
    let ids = statement.query_map([], |row| row.get(0)).expect("asked");
    ids.collect::<Result<_, _>>().expect("read")
}

/// The whole feed, in pages.
fn feed(world: &World) -> Vec<truekeep_core::ports::Change> {
    let config = world.config();
    let pipeline = config.pipeline("things").expect("configured");
    let consumer = world.known("things").consumer().expect("announced");
    wait_for(async {
        let source = open_source(&config, pipeline).await.expect("opened");
        let (mut all, mut after) = (Vec::new(), Place::START);
        loop {
            let page = source.feed.changes(&consumer, &after, 1_000).await.expect("read");
            all.extend(page.changes);
            after = page.next;
            if page.end {
                return all;
            }
        }
    })
}

/// What the mirror holds and what it remembers as deleted; nothing before its first page.
fn entries(mirror: &Connection) -> BTreeMap<String, Entry> {
    let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'things__truekeep_tombstones'";
    if mirror.query_row(there, [], |row| row.get::<_, u32>(0)).expect("asked") == 0 {
        return BTreeMap::new();
    }
    let sql = "SELECT _key, _rules, _version, 1 FROM things
        UNION ALL SELECT key, rules, version, 0 FROM things__truekeep_tombstones";
    let mut statement = mirror.prepare(sql).expect("prepared");
    let entry = |row: &rusqlite::Row<'_>| {
        let entry = Entry { rank: (row.get(1)?, row.get(2)?), live: row.get(3)? };
        Ok((row.get(0)?, entry))
    };
    let found = statement.query_map([], entry).expect("asked").collect::<Result<Vec<_>, _>>();
    let found: Vec<(String, Entry)> = found.expect("read");
    let entries: BTreeMap<_, _> = found.iter().cloned().collect();
    assert_eq!(entries.len(), found.len(), "a key is both live and deleted");
    entries
}
