//! Puts rules in force: by an operator's wish, or by the very first start, never by taking a lease.

use serde::Serialize;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Announced, Announcement, Entropy, Ledger, Mark, PipelineRecord, Sink};
use truekeep_core::{PipelineName, RulesNumber};

use crate::rules::{Rules, RulesDifference, differences};

/// How the rules of a configuration stand to those in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// The ledger does not know the pipeline.
    New,
    /// They are in force.
    InForce {
        /// Their number.
        rules: RulesNumber,
    },
    /// Others are in force.
    Changed {
        /// The number of those in force.
        rules: RulesNumber,
        /// How they differ.
        differences: Vec<RulesDifference>,
    },
}

impl Standing {
    /// Compares.
    pub fn of(rules: &Rules, record: Option<&PipelineRecord>) -> Self {
        match record {
            None => Self::New,
            Some(record) if record.rules.fingerprint == rules.fingerprint => {
                Self::InForce { rules: record.rules.number }
            }
            Some(record) => Self::Changed {
                rules: record.rules.number,
                differences: differences(&record.rules.text, &rules.text),
            },
        }
    }
}

/// What a removed pipeline left behind, as far as an announcement has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains {
    /// The rules that the target was written under.
    pub rules: RulesNumber,
    /// Whether a name whose pipeline was removed gets a new life: an operator's wish.
    pub anew: bool,
}

impl Remains {
    /// What is left in a sink. One that does not answer now is looked at again before it is written.
    pub async fn of(sink: &dyn Sink, anew: bool) -> Self {
        let held = sink.mark().await.ok().flatten();
        Self { rules: Mark::inherited(held.as_ref()), anew }
    }
}

/// Puts rules in force after those of `record`, and above those of what is left.
///
/// # Errors
/// The ledger's; `LEASE_HELD`-like trouble does not arise, as announcing needs no lease. Class
/// Fenced with `RULES_CHANGED` if somebody else announced other rules first.
pub async fn announce(
    ledger: &dyn Ledger,
    entropy: &dyn Entropy,
    name: &PipelineName,
    rules: &Rules,
    record: Option<&PipelineRecord>,
    remains: Remains,
) -> Result<PipelineRecord, PortError> {
    let announcement = Announcement {
        pipeline: name.clone(),
        incarnation: entropy.incarnation(),
        fingerprint: rules.fingerprint.clone(),
        text: rules.text.clone(),
        replaces: record.map(|record| record.rules.number),
        above: remains.rules,
        anew: remains.anew,
    };
    match ledger.announce(&announcement).await? {
        Announced::InForce(record) => Ok(record),
        // Two first starts at once: the rules are in force, whoever announced them.
        Announced::Outpaced(Some(found)) if found.rules.fingerprint == rules.fingerprint => {
            Ok(found)
        }
        Announced::Outpaced(_) => {
            let detail = format!("another process announced other rules for `{name}` meanwhile");
            let error = PortError::new("announce rules", FailureClass::Fenced, Code::RULES_CHANGED);
            Err(error.detail(detail))
        }
    }
}

/// The first start: announces a pipeline that the ledger does not know, and nothing else.
///
/// # Errors
/// Class Halted with `RULES_CHANGED` if other rules are in force; the ledger's.
pub async fn first_start(
    ledger: &dyn Ledger,
    entropy: &dyn Entropy,
    name: &PipelineName,
    rules: &Rules,
    remains: Remains,
) -> Result<PipelineRecord, PortError> {
    let record = ledger.pipeline(name).await?;
    match (Standing::of(rules, record.as_ref()), record) {
        (Standing::New, _) => announce(ledger, entropy, name, rules, None, remains).await,
        (Standing::InForce { .. }, Some(record)) => Ok(record),
        (Standing::InForce { .. } | Standing::Changed { .. }, _) => {
            let detail = format!("the rules of `{name}` are not those in force");
            let error = PortError::new("start", FailureClass::Halted, Code::RULES_CHANGED);
            Err(error.detail(detail))
        }
    }
}

#[cfg(test)]
mod tests;
