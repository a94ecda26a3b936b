//! Random operations of an application, of consumers and of operators: every source answers as one model
//! does, so all of them answer alike.
//!
//! Rules 31 to 34, 42, 55, 115, 120 and X8, X41 in any order: a page holds exactly what changed since its
//! place, a moment covers exactly what had changed by then, a tombstone goes exactly when all have passed
//! it, and the audit finds exactly what capture missed.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::draws::Draws;

/// A source with a related table, whose rows may give records another text.
#[async_trait]
pub trait RelatedSource: SourceUnderTest {
    /// Gives a record that is there another key, that no record has, and a text, and commits.
    async fn rename(&self, from: &str, to: &str, text: &str);
    /// Gives a record that is there another text by a row of the related table, and commits. Every other
    /// write of the record takes that row away.
    async fn relate(&self, key: &str, text: &str);
}

/// Keys in an order that no locale has.
const KEYS: &[&str] =
    &["", " ", "A", "B", "a", "a ", "ab", "b", "e\u{301}", "z", "\u{e9}", "\u{1f600}", "\u{ffff}"];

/// A row of the feed as it should be.
#[derive(Debug, Clone, Copy)]
struct Row {
    deleted: bool,
    /// The step that changed it.
    changed: u64,
}

/// One who reads.
#[derive(Debug, Clone, Default)]
struct Reader {
    place: Place,
    /// Everything that had changed by this step was handed out.
    step: u64,
    /// What was last acknowledged: the counter, and up to which step.
    acknowledged: Option<(u64, u64)>,
}

/// What is so.
struct World<'a> {
    source: &'a dyn RelatedSource,
    draws: Draws,
    step: u64,
    rows: BTreeMap<String, String>,
    feed: BTreeMap<String, Row>,
    /// Records with a row in the related table, and those for which one came or went since the last look.
    related: BTreeSet<String>,
    marks: BTreeSet<String>,
    recording: bool,
    /// Records that changed while nothing was recorded.
    passed_by: BTreeSet<String>,
    readers: [Reader; 3],
    /// The newest change that was pruned, and up to where all had passed then.
    pruned: u64,
    floor: u64,
    /// Moments with the step in which they were named.
    moments: Vec<(u64, Moment)>,
    versions: BTreeMap<String, Version>,
    /// What was done, for whoever reads a failure.
    story: Vec<String>,
}

/// Runs so many random operations, drawn from a seed, over a source that is empty.
///
/// # Panics
/// Where an answer is not the model's.
pub async fn random_operations_are_answered_as_the_model_does(
    source: &dyn RelatedSource,
    seed: u64,
    steps: u32,
) {
    let mut world = World {
        source,
        draws: Draws::seeded(seed),
        step: 0,
        rows: BTreeMap::new(),
        feed: BTreeMap::new(),
        related: BTreeSet::new(),
        marks: BTreeSet::new(),
        recording: true,
        passed_by: BTreeSet::new(),
        readers: Default::default(),
        pruned: 0,
        floor: 0,
        moments: Vec::new(),
        versions: BTreeMap::new(),
        story: vec![format!("seed {seed}")],
    };
    for _ in 0..world.draws.below(6) {
        let (key, text) = (world.key(), world.text());
        source.put(&key, &text).await;
        world.rows.insert(key, text);
    }
    captured(source).await;
    world.renumber();
    for _ in 0..steps {
        world.step().await;
    }
    world.step += 1;
    world.story.push("the end".to_owned());
    world.mend().await;
    for reader in 0..world.readers.len() {
        world.look(reader).await;
        let anew = Reader { acknowledged: world.readers[reader].acknowledged, ..Reader::default() };
        world.readers[reader] = anew;
        world.look(reader).await;
    }
}

impl World<'_> {
    fn key(&mut self) -> String {
        KEYS[self.draws.below(KEYS.len() as u64) as usize].to_owned()
    }

    fn live(&mut self) -> Option<String> {
        let at = self.draws.below(self.rows.len().max(1) as u64) as usize;
        self.rows.keys().nth(at).cloned()
    }

    fn text(&mut self) -> String {
        format!("text {}", self.draws.below(1_000))
    }

    fn limit(&mut self) -> u32 {
        [1, 2, 3, 5, 100][self.draws.below(5) as usize]
    }

    fn reader(&mut self) -> usize {
        self.draws.below(self.readers.len() as u64) as usize
    }

    fn says(&self) -> String {
        self.story[self.story.len().saturating_sub(30)..].join("\n")
    }

    /// A write of the application's, if it is recorded.
    fn changed(&mut self, key: &str) {
        let related = self.related.remove(key);
        if self.recording {
            self.record(key);
            self.marks.extend(related.then(|| key.to_owned()));
        } else {
            self.passed_by.insert(key.to_owned());
        }
    }

    fn record(&mut self, key: &str) {
        let row = Row { deleted: !self.rows.contains_key(key), changed: self.step };
        self.feed.insert(key.to_owned(), row);
        self.passed_by.remove(key);
    }

    /// Everything gets a number.
    fn renumber(&mut self) {
        let keys: BTreeSet<String> = self.rows.keys().chain(self.feed.keys()).cloned().collect();
        keys.iter().for_each(|key| self.record(key));
        self.recording = true;
    }

    async fn step(&mut self) {
        self.step += 1;
        let drawn = self.draws.below(100);
        match drawn {
            0..48 => self.write(drawn).await,
            48..68 => {
                let reader = self.reader();
                self.look(reader).await;
            }
            68..73 => self.number().await,
            73..78 => self.audit().await,
            78..84 => self.load().await,
            84..88 => self.list().await,
            88..92 => self.acknowledge().await,
            92..95 => self.prune().await,
            95 => self.forget().await,
            96 => {
                self.story.push("break capture".to_owned());
                self.source.break_capture().await;
                self.recording = false;
            }
            97 => self.begin_again().await,
            _ => self.mend().await,
        }
    }

    async fn write(&mut self, drawn: u64) {
        let (key, text) = (self.key(), self.text());
        match (drawn, self.live()) {
            (0..20, _) => {
                self.story.push(format!("put {key:?} {text}"));
                self.source.put(&key, &text).await;
                self.rows.insert(key.clone(), text);
                self.changed(&key);
            }
            (20..24, _) => {
                self.story.push(format!("put {key:?} and roll back"));
                self.source.put_and_roll_back(&key, &text).await;
            }
            (24..34, Some(live)) => {
                self.story.push(format!("delete {live:?}"));
                self.source.delete(&live).await;
                self.rows.remove(&live);
                self.changed(&live);
            }
            (34..41, Some(live)) if !self.rows.contains_key(&key) => {
                self.story.push(format!("rename {live:?} to {key:?} {text}"));
                self.source.rename(&live, &key, &text).await;
                self.rows.remove(&live);
                self.rows.insert(key.clone(), text);
                self.changed(&live);
                self.changed(&key);
            }
            (41..48, Some(live)) if self.recording => {
                self.story.push(format!("relate {live:?} {text}"));
                self.source.relate(&live, &text).await;
                self.rows.insert(live.clone(), text);
                self.related.insert(live.clone());
                self.marks.insert(live);
                let pending = self.source.feed().pending().await.expect("an answer");
                assert!(pending, "{}", self.says());
            }
            _ => {}
        }
    }

    /// All pages after a reader's place.
    async fn look(&mut self, reader: usize) {
        // Marks need not be expanded while changes are not recorded.
        if !self.recording && !self.marks.is_empty() {
            return;
        }
        let limit = self.limit();
        self.story.push(format!("look {reader} by {limit}"));
        for key in std::mem::take(&mut self.marks) {
            self.record(&key);
        }
        if self.readers[reader].acknowledged.is_none() {
            // Who reads is known first, so that nothing he has not seen is pruned.
            self.readers[reader] = Reader { acknowledged: Some((1, 0)), ..Reader::default() };
            let (counter, passed) = (RegistrationCounter::new(1), Moment::BEGINNING);
            let first = Registration { counter, passed };
            let who = consumer(&reader.to_string());
            self.source.feed().register(&who, &first).await.expect("registered");
        }
        let before = self.readers[reader].clone();
        let new = |row: &&Row| row.changed > before.step || before.step == 0;
        let expected: BTreeMap<&str, bool> = self
            .feed
            .iter()
            .filter(|(_, row)| new(row))
            .map(|(key, row)| (key.as_str(), row.deleted))
            .collect();
        let (mut place, mut seen) = (before.place.clone(), Vec::new());
        loop {
            let who = consumer(&reader.to_string());
            let page = self.source.feed().changes(&who, &place, limit).await.expect("a page");
            assert!(page.view.continues && page.changes.len() <= limit as usize, "{}", self.says());
            let trusted = matches!(page.view.capture, CaptureState::Trusted(_));
            assert_eq!(trusted, self.recording, "{}", self.says());
            let said = page.moment.is_some() || !self.recording;
            assert!(if page.end { said } else { page.moment.is_none() }, "{}", self.says());
            place = page.next;
            seen.extend(page.changes);
            self.moments.extend(page.moment.map(|moment| (self.step, moment)));
            if page.end {
                break;
            }
            assert!(seen.len() <= expected.len(), "{}", self.says());
        }
        let told: BTreeMap<&str, bool> =
            seen.iter().map(|change| (change.key.as_str(), change.deleted)).collect();
        assert_eq!((&told, seen.len()), (&expected, told.len()), "{}", self.says());
        for change in &seen {
            let (key, changed) = (change.key.as_str(), self.feed[change.key.as_str()].changed);
            for (step, moment) in &self.moments {
                assert_eq!(
                    moment.covers(change.stamp),
                    changed <= *step,
                    "{key:?} {}",
                    self.says()
                );
            }
            let held = self.versions.insert(key.to_owned(), change.version);
            assert!(held.is_none_or(|held| held <= change.version), "{key:?} {}", self.says());
        }
        assert!(!self.source.feed().pending().await.expect("an answer"), "{}", self.says());
        let reader = &mut self.readers[reader];
        (reader.place, reader.step) = (place, self.step);
    }

    async fn number(&mut self) {
        let keys: BTreeSet<String> = (0..=self.draws.below(3)).map(|_| self.key()).collect();
        self.story.push(format!("number {keys:?}"));
        let asked: Vec<Key> = keys.iter().map(|text| key(text)).collect();
        let numbered = self.source.capture().number(&asked).await.expect("numbered");
        assert!(numbered.foreign.is_empty() && numbered.newest.is_some(), "{}", self.says());
        keys.iter().for_each(|key| self.record(key));
    }

    /// A row that changed past capture may be found too, although both sides are there.
    async fn audit(&mut self) {
        let limit = self.limit();
        self.story.push(format!("audit by {limit}"));
        let (mut missed, mut ghosts, mut after) = (BTreeSet::new(), BTreeSet::new(), None);
        loop {
            let page = self.source.capture().audit(after, limit).await.expect("a page");
            missed.extend(page.missed.iter().map(Key::to_string));
            ghosts.extend(page.ghosts.iter().map(Key::to_string));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let known = |key: &String| self.feed.get(key).is_some_and(|row| !row.deleted);
        let rows = self.rows.keys().filter(|key| !known(key)).cloned();
        let lacking: BTreeSet<String> = rows.collect();
        assert!(lacking.is_subset(&missed), "{missed:?} {}", self.says());
        let more = missed.difference(&lacking);
        for key in more {
            let altered = self.passed_by.contains(key) && self.rows.contains_key(key);
            assert!(altered, "{key:?} is as it should be\n{}", self.says());
        }
        let live = self.feed.iter().filter(|(_, row)| !row.deleted).map(|(key, _)| key);
        let gone: BTreeSet<String> =
            live.filter(|key| !self.rows.contains_key(*key)).cloned().collect();
        assert_eq!(ghosts, gone, "{}", self.says());
    }

    async fn load(&mut self) {
        let keys: BTreeSet<String> = (0..=self.draws.below(6)).map(|_| self.key()).collect();
        self.story.push(format!("load and find {keys:?}"));
        let asked: Vec<Key> = keys.iter().map(|text| key(text)).collect();
        let loaded = self.source.records().load(&asked, usize::MAX).await.expect("loaded");
        let texts: Vec<Option<String>> = loaded.iter().map(body).collect();
        let wanted: Vec<Option<String>> =
            keys.iter().map(|key| self.rows.get(key).cloned()).collect();
        assert_eq!(texts, wanted, "{}", self.says());
        let canonical = self.source.records().canonical(&asked).await.expect("an answer");
        assert!(canonical.iter().all(|canonical| *canonical), "{}", self.says());
        let found = self.source.feed().find(&asked).await.expect("found");
        for (key, found) in keys.iter().zip(found) {
            let row = self.feed.get(key);
            let deleted = found.as_ref().map(|change| change.deleted);
            assert_eq!(deleted, row.map(|row| row.deleted), "{key:?} {}", self.says());
            let seen = self.versions.get(key).filter(|_| row.is_some());
            let version = found.map(|change| change.version);
            assert!(seen.is_none_or(|seen| Some(*seen) <= version), "{key:?} {}", self.says());
        }
    }

    async fn list(&mut self) {
        if !self.recording {
            return;
        }
        let limit = self.limit();
        self.story.push(format!("list by {limit}"));
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = self.source.records().keys(after.clone(), limit).await.expect("a page");
            assert!(page.next.is_none() || page.next > after, "{}", self.says());
            listed.extend(page.keys.into_iter().map(|(key, _)| key.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let rows: Vec<String> = self.rows.keys().cloned().collect();
        assert_eq!(listed, rows, "{}", self.says());
    }

    async fn acknowledge(&mut self) {
        let number = self.reader();
        let reader = &mut self.readers[number];
        if reader.place == Place::START {
            return;
        }
        self.story.push(format!("acknowledge {number}"));
        let counter = reader.acknowledged.map_or(0, |(counter, _)| counter) + 1;
        let passed = reader.place.passed.clone();
        reader.acknowledged = Some((counter, reader.step));
        let registration = Registration { counter: RegistrationCounter::new(counter), passed };
        let who = consumer(&number.to_string());
        self.source.feed().register(&who, &registration).await.expect("registered");
        let view = self.source.feed().view(&who, &Place::START).await.expect("a view");
        assert_eq!(view.registration, Some(registration), "{}", self.says());
    }

    async fn forget(&mut self) {
        let number = self.reader();
        self.story.push(format!("forget {number}"));
        self.source.feed().forget(&consumer(&number.to_string())).await.expect("forgotten");
        self.readers[number] = Reader::default();
    }

    async fn prune(&mut self) {
        let steps = self.readers.iter().filter_map(|reader| reader.acknowledged);
        let Some(floor) = steps.map(|(_, step)| step).min() else { return };
        self.story.push("prune".to_owned());
        while self.source.feed().prune().await.expect("pruned") > 0 {}
        let gone = |row: &Row| row.deleted && row.changed <= floor;
        let newest = self.feed.values().filter(|row| gone(row)).map(|row| row.changed).max();
        if let Some(newest) = newest.filter(|_| self.recording) {
            self.feed.retain(|_, row| !gone(row));
            self.pruned = newest.max(self.pruned);
            self.floor = floor.max(self.floor);
        }
        for (number, reader) in self.readers.iter().enumerate() {
            let who = consumer(&number.to_string());
            let view = self.source.feed().view(&who, &reader.place).await.expect("a view");
            let told = !reader.place.passed.includes(&view.pruned);
            // Whoever missed a tombstone is told so, and nobody is who was waited for.
            assert!(told || reader.step >= self.pruned, "{number} {}", self.says());
            assert!(!told || reader.step < self.floor.max(1), "{number} {}", self.says());
        }
    }

    async fn begin_again(&mut self) {
        self.story.push("begin again".to_owned());
        let newest = self.versions.values().max().copied().unwrap_or_default();
        let above = Version::new(newest.get() + 1_000);
        self.source.capture().begin_again(above).await.expect("begun");
        self.mend().await;
        let known: Vec<Key> = self.feed.keys().map(|text| key(text)).collect();
        let found = self.source.feed().find(&known).await.expect("found");
        let all = found.into_iter().all(|row| row.is_some_and(|row| row.version > above));
        assert!(all, "{}", self.says());
        self.renumber();
    }

    /// What an operator does after a gap. Where there was none it changes nothing.
    async fn mend(&mut self) {
        self.story.push("install and fill".to_owned());
        captured(self.source).await;
        if !self.recording {
            self.renumber();
        }
    }
}
