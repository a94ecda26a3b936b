//! Where a run is, and what is told of it.

use serde::{Deserialize, Serialize};

use super::{Report, Scan, Terms};
use crate::code::Code;
use crate::ports::{Event, LedgerWrite, RunState};
use crate::{Key, limits};

/// Where the run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was looked at yet.
    Beginning,
    /// The feed is held against the table.
    Auditing {
        /// The key after which the next page begins.
        after: Option<Key>,
        /// What was found so far.
        report: Report,
    },
    /// Everything is delivered again, under the rules in force.
    Scanning {
        /// How far it is.
        scan: Scan,
        /// What was found so far.
        report: Report,
    },
    /// The sink is held against the feed.
    Comparing {
        /// The key after which the next range begins.
        after: Option<Key>,
        /// What was found so far.
        report: Report,
    },
    /// Orphans are given tombstones, and altered documents a number.
    Purging {
        /// The key after which the next range begins.
        after: Option<Key>,
        /// What was found so far.
        report: Report,
    },
    /// Waits until follow has delivered what was repaired.
    Settling {
        /// What was found.
        report: Report,
    },
    /// Ended well.
    Done {
        /// What was found.
        report: Report,
    },
    /// Ended for a reason.
    Failed {
        /// Why.
        code: Code,
        /// What was found.
        report: Report,
    },
}

impl Phase {
    /// The phase's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Beginning => "beginning",
            Self::Auditing { .. } => "auditing",
            Self::Scanning { .. } => "scanning",
            Self::Comparing { .. } => "comparing",
            Self::Purging { .. } => "purging",
            Self::Settling { .. } => "settling",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
        }
    }

    /// The end of the run for this reason, unless it has ended.
    pub(super) fn failed(self, code: Code) -> Self {
        match self {
            Self::Done { .. } | Self::Failed { .. } => self,
            Self::Beginning
            | Self::Auditing { .. }
            | Self::Scanning { .. }
            | Self::Comparing { .. }
            | Self::Purging { .. }
            | Self::Settling { .. } => {
                Self::Failed { code, report: self.report().cloned().unwrap_or_default() }
            }
        }
    }

    /// Counts a listing that begins. A run whose workers all die or stop in the middle of one would
    /// list for ever.
    pub(super) fn listing(mut self) -> Self {
        let (Self::Comparing { report, .. } | Self::Purging { report, .. }) = &mut self else {
            return self;
        };
        report.listings += 1;
        let endless = report.listings > limits::LISTINGS_MAX;
        if endless { self.failed(Code::LISTING_UNFINISHED) } else { self }
    }

    /// What was found so far.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Beginning => None,
            Self::Auditing { report, .. }
            | Self::Scanning { report, .. }
            | Self::Comparing { report, .. }
            | Self::Purging { report, .. }
            | Self::Settling { report }
            | Self::Done { report }
            | Self::Failed { report, .. } => Some(report),
        }
    }

    /// How the run stands with the ledger.
    pub fn state(&self) -> RunState {
        match self {
            Self::Beginning
            | Self::Auditing { .. }
            | Self::Scanning { .. }
            | Self::Comparing { .. }
            | Self::Purging { .. }
            | Self::Settling { .. } => RunState::Active,
            Self::Done { .. } => RunState::Succeeded,
            Self::Failed { code, .. } => RunState::Stopped(code.clone()),
        }
    }

    pub(super) fn events(&self, terms: &Terms) -> Vec<LedgerWrite> {
        let done = if terms.rebuild.is_some() { Code::REBUILT } else { Code::RECONCILED };
        let event = match self {
            Self::Done { report } => Event { code: done, text: report.to_string() },
            Self::Failed { code, report } => Event { code: code.clone(), text: report.to_string() },
            Self::Beginning
            | Self::Auditing { .. }
            | Self::Scanning { .. }
            | Self::Comparing { .. }
            | Self::Purging { .. }
            | Self::Settling { .. } => return Vec::new(),
        };
        vec![LedgerWrite::Record(event)]
    }
}
