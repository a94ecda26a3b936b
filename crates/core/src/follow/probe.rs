//! The search for a record that kills workers: pages are halved until it is alone, then it is parked.
//!
//! Invariant: F3. A page counts as deadly only if the run had said beforehand that it would send
//! it; a worker that dies idle, or is killed by an operator, accuses nobody.

use serde::{Deserialize, Serialize};

use crate::Attempt;

/// How the next page is sent while a killer is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The most rows of the page.
    pub rows: u32,
    /// Whether the page was announced: a death from here on is this page's.
    pub armed: bool,
    /// How many workers died with this one row in hand.
    pub lone_deaths: Attempt,
}

impl Probe {
    pub(crate) fn after_take_over(
        probe: Option<Self>,
        after_crash: bool,
        page_rows: u32,
    ) -> Option<Self> {
        match probe {
            None if after_crash => {
                Some(Self { rows: (page_rows / 2).max(1), armed: false, lone_deaths: 0 })
            }
            None => None,
            Some(probe) if probe.armed && after_crash => Some(Self {
                rows: (probe.rows / 2).max(1),
                armed: false,
                lone_deaths: probe.lone_deaths + u32::from(probe.rows == 1),
            }),
            Some(probe) => Some(Self { armed: false, ..probe }),
        }
    }

    /// A page of this size went well: the next may be twice as large.
    pub(crate) fn after_progress(self, page_rows: u32) -> Option<Self> {
        let rows = self.rows.saturating_mul(2);
        (rows < page_rows).then_some(Self { rows, armed: false, lone_deaths: 0 })
    }
}
