//! The words of the domain as types: every id, token, number and text is parsed at the edge and cannot be confused with another.

mod document;
mod json;
mod key;
mod moment;
mod name;
mod number;
mod time;
mod token;

pub use document::{Document, Value};
pub use json::same_json;
pub use key::Key;
pub use moment::{InvalidMoment, Moment, Place, Stamp};
pub use name::{InvalidName, PipelineName, ScopeId};
pub use number::{
    Attempt, BatchName, Epoch, Fence, Generation, MarkNumber, Rank, RegistrationCounter, Revision,
    RulesNumber, RunVersion, SwapNumber, Version,
};
pub use time::Timestamp;
pub use token::{
    CommitToken, Fingerprint, HolderId, Incarnation, InvalidToken, LeaseToken, LedgerId, RunId,
    Signature,
};
