//! What happens, for whoever shows it: progress bars, metrics, logs. Decides nothing.

use std::fmt::Debug;

use truekeep_core::code::Code;
use truekeep_core::{Fence, HolderId, Moment, Place, ScopeId, Timestamp};

use std::time::Duration;

/// Something that happened in a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The lease was taken.
    Acquired(Fence),
    /// Somebody else has the lease until then.
    HeldBy(HolderId, Timestamp),
    /// The lease was given back.
    Released,
    /// The lease, or the run, is somebody else's now.
    Lost,
    /// A page or items were delivered and checkpointed.
    Delivered {
        /// How many records the sink was sent.
        records: u64,
        /// How many of them failed and are items now.
        failed: u64,
        /// The place in the feed.
        cursor: Place,
        /// The source as it was seen.
        newest: Moment,
    },
    /// Nothing is due.
    Idle,
    /// Something failed and is tried again.
    Trouble {
        /// The code.
        code: Code,
        /// The text with its causes.
        text: String,
        /// When it is tried again.
        again_in: Duration,
    },
    /// An operator is needed.
    Halted {
        /// The code.
        code: Code,
        /// The text with its causes.
        text: String,
    },
    /// Nobody may work on the scope, or not with this configuration.
    Inactive(Code),
}

/// Hears what happens. Called from the scope's task: it must not block.
pub trait Observer: Debug + Send + Sync {
    /// Something happened.
    fn happened(&self, scope: &ScopeId, what: &Happening);
}

/// Hears nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn happened(&self, _: &ScopeId, _: &Happening) {}
}
