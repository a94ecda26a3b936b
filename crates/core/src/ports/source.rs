//! The source: the database of record, its feed of changes, its records and its capture.
//!
//! Ordering rules, here and nowhere else:
//! S1. A version is read before, or in the same snapshot as, the document that carries it.
//! S2. Nothing is returned that the source could still lose: the read transaction begins first,
//!     then what it saw is made durable, then it is returned.
//! S3. The feed is compacted: a key stands once, at its newest version. So a place in the feed is
//!     no moment; a moment comes only from a page that reached the end in its own snapshot.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::failure::{FailureClass, PortError};
use crate::{
    Document, Incarnation, Key, LedgerId, Moment, Place, RegistrationCounter, Signature, Stamp,
    Version,
};

/// One key of the feed: its newest version, and whether its row was there when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which record.
    pub key: Key,
    /// Its newest version.
    pub version: Version,
    /// The write that gave it.
    pub stamp: Stamp,
    /// Whether the feed holds a tombstone. What is live is decided by [`Records::load`].
    pub deleted: bool,
}

/// How much a page may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// At most this many rows, 1 or more.
    pub rows: u32,
    /// At most this many bytes of documents, but always one document.
    pub bytes: usize,
}

/// Whether the source records every change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureState {
    /// It does: everything is as the last full pass over the table left it.
    Trusted(Signature),
    /// The rows that were there before are still being recorded.
    Filling,
    /// It does not, or may not have.
    Broken(Code),
}

/// A consumer's acknowledgement, stored in the source: it tells a restored source, and keeps
/// tombstones that the consumer has not passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Counts the acknowledgements.
    pub counter: RegistrationCounter,
    /// Every change with a write that this includes was consumed.
    pub passed: Moment,
}

impl Registration {
    /// The acknowledgement to store, given the one that is held: the one place where is decided
    /// whose it can be. It is the one that is held, stored again, or the one after it (F2): a
    /// source that was restored does not take it and with it the look of never having been.
    ///
    /// # Errors
    /// Class Halted with `SOURCE_WENT_BACK` if one between them is lacking, with
    /// `LEDGER_WENT_BACK` if a later one is held.
    pub fn after(held: Option<&Self>, sent: &Self) -> Result<Self, PortError> {
        let last = held.map_or(RegistrationCounter::new(0), |held| held.counter);
        let went_back = if sent.counter > last.next() {
            Code::SOURCE_WENT_BACK
        } else if sent.counter < last {
            Code::LEDGER_WENT_BACK
        } else {
            let passed = held.map_or(Moment::BEGINNING, |held| held.passed.clone());
            return Ok(Self {
                counter: sent.counter,
                passed: passed.or_later(sent.passed.clone()),
            });
        };
        let detail = format!("acknowledgement {} comes after number {last}", sent.counter);
        Err(PortError::new("acknowledge", FailureClass::Halted, went_back).detail(detail))
    }
}

/// What a page says about the source, read in the page's own snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceView {
    /// Which life of the feed.
    pub incarnation: Incarnation,
    /// Every write that was ever seen.
    pub newest: Moment,
    /// Tombstones of writes that this includes may have been pruned.
    pub pruned: Moment,
    /// Whether the place that was asked for is one that this feed gave: false if the feed is older
    /// than that place, or has gone on from before it in another way.
    pub continues: bool,
    /// Whether it may be an earlier state of the feed that gave that place, put in its stead. False if it
    /// is known to be another one beside it, and where a source that went back must have been started
    /// again, but was not. Decides nothing while the feed goes on.
    pub repairable: bool,
    /// What this consumer last acknowledged.
    pub registration: Option<Registration>,
    /// Whether every change is recorded.
    pub capture: CaptureState,
}

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePage {
    /// Keys in the order of the feed, each once.
    pub changes: Vec<Change>,
    /// The place after the last of them; `after` if there is none.
    pub next: Place,
    /// Whether the page reached the end of the feed in its snapshot. A short page is not the end.
    pub end: bool,
    /// At the end: the moment that is reached once this page and all before it are delivered. That
    /// of the page's snapshot; an earlier one while something that it includes (a mark that is not
    /// expanded yet) is still to come into the feed.
    pub moment: Option<Moment>,
    /// The source as seen in the page's snapshot.
    pub view: SourceView,
}

/// Who reads a feed: the life of a pipeline, in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// The ledger that keeps its cursor.
    pub ledger: LedgerId,
    /// The life of the pipeline.
    pub pipeline: Incarnation,
}

/// A cheap sign of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulsed(pub u64);

/// The feed of one relation.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Feed: Debug + Send + Sync {
    /// The source as this consumer sees it from a place. Writes nothing, and costs next to nothing.
    async fn view(&self, consumer: &Consumer, at: &Place) -> Result<SourceView, PortError>;

    /// The keys whose newest change stands after `after`, at most `limit` (1 or more), in one
    /// snapshot. Expands marks of related tables first, in bounded transactions of its own. A
    /// repeat is harmless.
    async fn changes(
        &self,
        consumer: &Consumer,
        after: &Place,
        limit: u32,
    ) -> Result<ChangePage, PortError>;

    /// The feed's present row of each key, in the order of `keys`; `None` where it has none.
    async fn find(&self, keys: &[Key]) -> Result<Vec<Option<Change>>, PortError>;

    /// Whether something that has committed is still to come into the feed: marks of related
    /// tables that nobody has expanded yet. Expands none, and writes nothing.
    async fn pending(&self) -> Result<bool, PortError>;

    /// Stores an acknowledgement durably, if it is the one after the one that is held. A repeat is
    /// harmless.
    ///
    /// # Errors
    /// What [`Registration::after`] denies; nothing was written.
    async fn register(
        &self,
        consumer: &Consumer,
        registration: &Registration,
    ) -> Result<(), PortError>;

    /// Forgets a consumer, so that it holds no tombstone back. A repeat is harmless.
    async fn forget(&self, consumer: &Consumer) -> Result<(), PortError>;

    /// Removes what nobody needs any more, above all tombstones that every registered consumer has
    /// passed, in one bounded transaction, and returns how many rows were removed or looked at.
    /// Call again until it is 0: then nothing is left, until another change is recorded or consumed.
    ///
    /// While capture is not trusted every tombstone stays, which is looked at in the same
    /// transaction: its row may have come and gone again past capture, and been delivered between;
    /// only the tombstone makes [`Capture::fill`] bury it.
    async fn prune(&self) -> Result<u64, PortError>;

    /// A number that differs after another connection has committed. Costs next to nothing. It
    /// may differ without a change of this relation; it decides nothing.
    async fn pulse(&self) -> Result<Pulsed, PortError>;

    /// Returns soon after another connection has committed, if the source can be told so; else never. It
    /// may miss one and may return for none: the caller looks at the pulse, and does so now and then all
    /// the same. To give it up and to call it again loses nothing.
    async fn stirred(&self) {
        std::future::pending().await
    }
}

/// What a record is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// Its document.
    Live(Document),
    /// There is no such row, or the pipeline's rule says it is not live.
    Absent,
    /// Its document cannot be made or is too large: the code and the reason.
    Unloadable(Code, String),
}

/// A page of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPage {
    /// Live keys in strictly rising byte order with their versions; perhaps none of those that were
    /// looked at is live.
    pub keys: Vec<(Key, Version)>,
    /// The key after which the next page begins: none of the keys listed is greater, and it is
    /// greater than the one that this page began after. None after the last page. A short or empty
    /// page is not the end.
    pub next: Option<Key>,
}

/// The records of one relation, as the projection of one pipeline sees them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Records: Debug + Send + Sync {
    /// What each of these records is now, in the order of `keys`.
    ///
    /// Stops early, after at least one, when the documents exceed `bytes_max`: the answer is then
    /// shorter than `keys`, and the caller asks for the rest.
    async fn load(&self, keys: &[Key], bytes_max: usize) -> Result<Vec<Loaded>, PortError>;

    /// Whether each key is canonical: the very text that a record of the relation with its values
    /// has as its key, whether there is such a record or not. In the order of `keys`.
    async fn canonical(&self, keys: &[Key]) -> Result<Vec<bool>, PortError>;

    /// Live keys after `after` in byte order, without documents, at most `limit`. Looks at a bounded
    /// number of rows, whether they are live or not.
    async fn keys(&self, after: Option<Key>, limit: u32) -> Result<KeyPage, PortError>;
}

/// How far the fill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillProgress {
    /// Rows recorded by this fill so far.
    pub filled: u64,
    /// About how many there are.
    pub total: u64,
    /// Whether it is complete.
    pub done: bool,
}

/// What capture consists of in the source right now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// Whether every change is recorded.
    pub state: CaptureState,
    /// What differs from what `install` would make, one line each: empty if nothing does.
    pub differences: Vec<String>,
    /// Rows of the feed.
    pub feed_rows: u64,
    /// Tombstones among them.
    pub tombstones: u64,
    /// The newest version that was given.
    pub newest: Version,
    /// How many are registered to read the feed.
    pub consumers: u64,
}

impl CaptureReport {
    /// There is no feed.
    pub fn without_feed(differences: Vec<String>) -> Self {
        Self {
            state: CaptureState::Broken(Code::CAPTURE_MISSING),
            differences,
            feed_rows: 0,
            tombstones: 0,
            newest: Version::default(),
            consumers: 0,
        }
    }
}

/// What a page of the audit found: the feed held against the table itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// Rows whose feed row is absent or a tombstone.
    pub missed: Vec<Key>,
    /// Live feed rows without a row.
    pub ghosts: Vec<Key>,
    /// How many rows of the feed and of the table were looked at.
    pub seen: u64,
    /// Where the next page begins; none after the last.
    pub next: Option<Key>,
}

/// What became of keys that were to be numbered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    /// The write that gave the last number; none if none was given.
    pub newest: Option<Stamp>,
    /// Keys that no record of the relation can have: not canonical, or not of the key's type. They
    /// were left alone.
    pub foreign: Vec<Key>,
}

/// What records changes in the source, and how it is put there and taken away.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Capture: Debug + Send + Sync {
    /// Makes capture what it should be, in short transactions. Changes nothing that is already
    /// equal. If anything was not, every row is to be filled anew. A repeat is harmless.
    async fn install(&self) -> Result<CaptureReport, PortError>;

    /// Records the next page of existing rows (at most
    /// [`SOURCE_WRITE_ROWS_MAX`](crate::limits::SOURCE_WRITE_ROWS_MAX)); resumes where it was
    /// stopped. Call until `done`. Once it is, capture is trusted under its present signature,
    /// unless it changed meanwhile: then the fill begins again.
    async fn fill(&self) -> Result<FillProgress, PortError>;

    /// What capture is now. Writes nothing.
    async fn verify(&self) -> Result<CaptureReport, PortError>;

    /// Holds the next page of the feed against the table, both ways: at most `limit` (1 or more)
    /// rows of either. Writes nothing.
    async fn audit(&self, after: Option<Key>, limit: u32) -> Result<AuditPage, PortError>;

    /// Gives these keys a fresh number each, and sets `deleted` by looking in the table in the same
    /// transaction, as a trigger does: so a repair, or an orphan's tombstone, is a change like any
    /// other, newer than all before it. At most
    /// [`SOURCE_WRITE_ROWS_MAX`](crate::limits::SOURCE_WRITE_ROWS_MAX) keys; the caller cuts.
    /// A repeat gives yet another number: harmless.
    async fn number(&self, keys: &[Key]) -> Result<Numbered, PortError>;

    /// Makes the counter go on above `above` at least, and every row and tombstone to be numbered
    /// anew by [`Self::fill`]: what a source needs that went back, before it is believed again.
    async fn begin_again(&self, above: Version) -> Result<(), PortError>;

    /// Takes capture out of the source, with the feed. A repeat is harmless.
    async fn remove(&self) -> Result<(), PortError>;
}
