//! A checkpoint and its settling: an unknown outcome repeats the same commit with the same token
//! until the ledger has answered.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::Phase;
use truekeep_core::guard::Guard;
use truekeep_core::ports::{Commit, Committed, Item, LedgerWrite, NewItem, RunHealth, RunState};
use truekeep_core::procedure::Step;
use truekeep_core::retry::RetryPolicy;

use crate::pipeline::Ports;
use crate::scope::Held;

/// How soon a commit whose outcome is unknown is repeated. It ends with the lease.
const SETTLE: RetryPolicy = RetryPolicy {
    base: Duration::from_millis(20),
    cap: Duration::from_secs(2),
    ..RetryPolicy::DELIVERY
};

/// What a turn adds to a run.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub step: Step<Phase>,
    pub health: RunHealth,
    pub delivered: u64,
}

impl Held {
    pub(crate) fn guard(&self) -> Guard {
        Guard {
            token: self.lease.token.clone(),
            fence: self.lease.fence,
            run_version: self.version,
            rules: self.terms.rules,
        }
    }

    /// Commits a checkpoint; writes nothing if nothing changed.
    ///
    /// # Errors
    /// What the ledger cannot do at all. Trouble that may pass is waited out here, for as long as
    /// the caller goes on polling: the loss of the lease ends that.
    pub(crate) async fn commit(
        &mut self,
        ports: &Ports,
        checkpoint: Checkpoint,
    ) -> Result<Option<Committed>, PortError> {
        let Checkpoint { step, health, delivered } = checkpoint;
        let mut writes = self.unclaim();
        writes.extend(step.writes);
        if step.next == self.phase && writes.is_empty() && health == self.health {
            return Ok(None);
        }
        let commit = Commit {
            run: self.run.clone(),
            scope: self.scope.clone(),
            guard: self.guard(),
            token: ports.entropy.commit_token(),
            phase: to_json(&step.next)?,
            state: RunState::Active,
            health: health.clone(),
            delivered,
            writes,
        };
        let committed = settle(ports, &commit).await?;
        if let Committed::Landed(version, tally) = committed {
            self.version = version;
            self.tally = tally;
            self.phase = step.next;
            self.health = health;
            self.claimed.clear();
            if commit.writes.iter().any(|write| matches!(write, LedgerWrite::Enqueue(_))) {
                self.items_checked = None;
            }
        }
        Ok(Some(committed))
    }

    /// Gives claimed items back as they were: trouble of a port is no try of theirs.
    fn unclaim(&self) -> Vec<LedgerWrite> {
        let back = |item: &Item| NewItem {
            key: item.key.clone(),
            version: item.version,
            kind: item.kind,
            attempts: item.attempts.saturating_sub(1),
            retry_in: Some(Duration::ZERO),
            code: item.code.clone(),
            reason: item.reason.clone(),
        };
        let items: Vec<_> = self.claimed.iter().map(back).collect();
        if items.is_empty() { Vec::new() } else { vec![LedgerWrite::Enqueue(items)] }
    }
}

/// Commits until the ledger has answered.
pub(crate) async fn settle(ports: &Ports, commit: &Commit) -> Result<Committed, PortError> {
    let mut attempt = 0;
    loop {
        match ports.ledger.commit(commit).await {
            Ok(committed) => return Ok(committed),
            Err(error) if matches!(error.class, FailureClass::Unknown | FailureClass::Retry) => {
                tracing::warn!(code = %error.code, error = error.chain(), attempt, "commit");
                ports.clock.sleep(SETTLE.delay(attempt, ports.entropy.draw())).await;
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A phase as it is stored.
pub(crate) fn to_json<P: serde::Serialize>(phase: &P) -> Result<String, PortError> {
    serde_json::to_string(phase).map_err(|error| {
        PortError::new("store the phase", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
    })
}

/// Reads a stored phase.
pub(crate) fn from_json<P: serde::de::DeserializeOwned>(text: &str) -> Result<P, PortError> {
    serde_json::from_str(text).map_err(|error| {
        PortError::new("read the stored phase", FailureClass::Terminal, Code::LEDGER_VERSION)
            .caused_by(error)
    })
}

#[cfg(test)]
mod tests;
