//! The guard of every ledger write: may this write land?
//!
//! Invariant: G1 (lease token and fence and run version and rules number, all four, at one instant).

use serde::{Deserialize, Serialize};

use crate::{Fence, LeaseToken, RulesNumber, RunVersion};

/// What a writer believes; the ledger compares it in the transaction of the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The writer's lease.
    pub token: LeaseToken,
    /// The fence that came with it.
    pub fence: Fence,
    /// The version of the run that was read or written last.
    pub run_version: RunVersion,
    /// The rules the writer works under.
    pub rules: RulesNumber,
}

/// Which belief of a writer was wrong. A lost race is a result, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The lease ended or somebody else has it.
    Lease,
    /// The fence moved.
    Fence,
    /// Another commit of the run came first: an operator's, or one of ours whose answer was lost.
    RunVersion,
    /// Other rules were announced.
    Rules,
    /// The run is gone.
    Run,
}

/// What the ledger holds at the instant of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<'a> {
    /// The lease in force, if any, with its fence.
    pub lease: Option<(&'a LeaseToken, Fence)>,
    /// The run's version, unless the run is gone.
    pub run_version: Option<RunVersion>,
    /// The pipeline's present rules.
    pub rules: RulesNumber,
}

impl Guard {
    /// Compares the belief with what the ledger holds.
    ///
    /// # Errors
    /// The first of lease, fence, rules, run and run version that differs.
    pub fn check(&self, held: &Held<'_>) -> Result<(), Lost> {
        match held.lease {
            Some((token, _)) if *token != self.token => return Err(Lost::Lease),
            None => return Err(Lost::Lease),
            Some((_, fence)) if fence != self.fence => return Err(Lost::Fence),
            Some(_) => {}
        }
        if held.rules != self.rules {
            return Err(Lost::Rules);
        }
        match held.run_version {
            None => Err(Lost::Run),
            Some(version) if version != self.run_version => Err(Lost::RunVersion),
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> LeaseToken {
        LeaseToken::parse(text).expect("valid")
    }

    #[test]
    fn each_of_the_four_is_compared() {
        let ours = token("a");
        let guard = Guard {
            token: ours.clone(),
            fence: Fence::new(3),
            run_version: RunVersion::new(7),
            rules: RulesNumber::new(2),
        };
        let held = Held {
            lease: Some((&ours, Fence::new(3))),
            run_version: Some(RunVersion::new(7)),
            rules: RulesNumber::new(2),
        };
        assert_eq!(guard.check(&held), Ok(()));
        let other = token("b");
        let cases = [
            (Held { lease: None, ..held.clone() }, Lost::Lease),
            (Held { lease: Some((&other, Fence::new(3))), ..held.clone() }, Lost::Lease),
            (Held { lease: Some((&ours, Fence::new(4))), ..held.clone() }, Lost::Fence),
            (Held { rules: RulesNumber::new(3), ..held.clone() }, Lost::Rules),
            (Held { run_version: None, ..held.clone() }, Lost::Run),
            (Held { run_version: Some(RunVersion::new(8)), ..held.clone() }, Lost::RunVersion),
        ];
        for (held, lost) in cases {
            assert_eq!(guard.check(&held), Err(lost));
        }
    }
}
