//! The ports: what the engine needs of a ledger, a source, a sink and a clock. Each method is a contract.
//!
//! Every failure is a [`PortError`](crate::failure::PortError) with a class; a lost race is a result.

mod clock;
pub mod generations;
mod ledger;
mod sink;
mod source;
mod spill;

pub use clock::{Clock, Entropy};
pub use generations::{Generations, Served, Survey, Swap, Swapped};
pub use ledger::{
    Acquired, Announced, Announcement, Archive, Cancelled, Commit, Committed, Discarded, Event,
    Item, ItemCursor, ItemFilter, ItemKind, ItemState, Items, Leases, Ledger, LedgerWrite, NewItem,
    NewRun, Opened, Operations, PipelineRecord, PipelineState, ProcedureKind, Pulse, Removal,
    Removing, Retried, RulesRecord, Run, RunHealth, RunState, Settle, Steer, Steered, Steering,
};
pub use sink::{
    Applied, Batch, Body, Capabilities, Confirmation, Delivery, Denied, Entry, Listing, Mark,
    Memory, Outcome, Receipt, Sink, Verdict,
};
pub use source::{
    AuditPage, Capture, CaptureReport, CaptureState, Change, ChangePage, Consumer, Feed,
    FillProgress, KeyPage, Loaded, Numbered, PageLimit, Pulsed, Records, Registration, SourceView,
};
pub use spill::{Spill, SpillFile};

#[cfg(feature = "mock")]
pub use {
    clock::{MockClock, MockEntropy},
    generations::MockGenerations,
    ledger::{MockArchive, MockItems, MockLeases, MockLedger, MockOperations},
    sink::MockSink,
    source::{MockCapture, MockFeed, MockRecords},
    spill::{MockSpill, MockSpillFile},
};
