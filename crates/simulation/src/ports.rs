//! Every port of a process, over its way to the store.

mod ledger;
mod sink;
mod source;

pub(crate) use ledger::LedgerPort;
pub(crate) use sink::SinkPort;
pub(crate) use source::SourcePort;
