//! The scan of a rebuild: what the feed held when it began is delivered again, in the order of the feed.
//!
//! Whatever is written meanwhile stands after the bound, and follow delivers it under the same rules:
//! writes never make a scan begin anew, nor keep it from its end. What it leaves out all the same, the
//! comparison after it finds (Q4).
//!
//! Invariant: F3, as follow keeps it.

use serde::{Deserialize, Serialize};

use super::{Command, Observation, Phase, Report};
use crate::code::Code;
use crate::follow::Probe;
use crate::retry::RetryPolicy;
use crate::{Moment, Place, limits};

/// How far a scan is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scan {
    /// The place in the feed after which the next page begins.
    pub after: Place,
    /// Where it ends; fixed with the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// Set while a record that kills workers is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

impl Scan {
    pub(super) fn due(&self) -> Command {
        let Self { after, until, probe } = self.clone();
        match probe {
            Some(probe) if probe.lone_deaths >= RetryPolicy::DELIVERY.attempts_max => {
                Command::Isolate { after, until }
            }
            Some(probe) if !probe.armed => Command::Arm,
            Some(probe) => Command::Scan { after, until, rows_max: Some(probe.rows) },
            None => Command::Scan { after, until, rows_max: None },
        }
    }

    /// What follows of what a scan asked for, or of a take-over; none of anything else.
    pub(super) fn follows(self, mut report: Report, seen: Observation) -> Option<Phase> {
        let scan = match seen {
            Observation::TookOver { after_crash, page_rows } => {
                let probe = Probe::after_take_over(self.probe, after_crash, page_rows);
                Self { probe, ..self }
            }
            Observation::Armed => {
                Self { probe: self.probe.map(|probe| Probe { armed: true, ..probe }), ..self }
            }
            Observation::Scanned { next, until, end, delivered, ahead } => {
                report.scanned += delivered;
                report.ahead += ahead;
                if ahead > 0 {
                    return Some(Phase::Failed { code: Code::SINK_AHEAD, report });
                }
                if end {
                    return Some(Phase::Comparing { after: None, report });
                }
                self.passed(next, until)
            }
            Observation::Looked(_)
            | Observation::Audited { .. }
            | Observation::Listing
            | Observation::Compared { .. }
            | Observation::Purged { .. }
            | Observation::Refused(_)
            | Observation::Awaited { .. } => return None,
        };
        Some(Phase::Scanning { scan, report })
    }

    fn passed(self, next: Place, until: Moment) -> Self {
        let killer = |probe: &Probe| probe.lone_deaths >= RetryPolicy::DELIVERY.attempts_max;
        let probe = self.probe.filter(|probe| !killer(probe));
        let probe = probe.and_then(|probe| probe.after_progress(limits::PAGE_ROWS));
        Self { after: next, until: Some(until), probe }
    }
}
