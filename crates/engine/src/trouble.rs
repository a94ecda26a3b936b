//! Trouble: retried later, given way to, or an operator's; written down for whoever looks.
//!
//! Invariant: P2.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::follow::{Observation, Phase};
use truekeep_core::limits;
use truekeep_core::ports::{Committed, RunHealth};
use truekeep_core::procedure::Step;
use truekeep_core::retry::{Decision, decide};

use crate::commit::Checkpoint;
use crate::observer::Happening;
use crate::perform::Performed;
use crate::scope::Runner;
use crate::turn::Turn;

impl Runner {
    /// Trouble of a port: retried, given way to, or an operator's.
    pub(crate) async fn trouble(&mut self, error: PortError) -> Turn {
        let text = limits::bounded(&error.chain()).to_owned();
        let code = error.code.clone();
        let draw = self.ports.entropy.draw();
        let policy = &self.settings.trouble;
        let scope = &self.pipeline.scope;
        // Whoever observes tells it once; each try is for those who look closely.
        tracing::debug!(%scope, %code, class = ?error.class, error = text, "trouble");
        if [Code::PIPELINE_UNKNOWN, Code::PIPELINE_REMOVED].contains(&code) {
            // There is nothing left to write it down in.
            self.held = None;
            return Turn::ClaimLost;
        }
        let decision = decide(error.class, policy, self.failures, draw, error.retry_after);
        let again_in = match decision {
            Decision::Halt => return self.halt(code, text).await,
            Decision::GiveWay => self.settings.lease_ttl / 3,
            Decision::Again(again_in) => again_in,
        };
        self.failures = self.failures.saturating_add(1);
        let what = Happening::Trouble { code: code.clone(), text: text.clone(), again_in };
        self.happened(&what);
        if decision == Decision::GiveWay {
            self.give_back().await;
        } else {
            self.note(code.clone(), text.clone(), again_in).await;
        }
        Turn::Retry { code, text, again_in }
    }

    async fn halt(&mut self, code: Code, text: String) -> Turn {
        let again_in = self.settings.halted_recheck;
        let Some(mut held) = self.held.take() else {
            self.happened(&Happening::Halted { code: code.clone(), text: text.clone() });
            return Turn::Halted(code, text, again_in);
        };
        held.reader = None;
        let ailing =
            RunHealth { code: Some(code.clone()), text: text.clone(), ..held.health.clone() };
        let seen = Performed::fact(Observation::Refused(code.clone())).ailing(ailing);
        let turn = self.conclude(&mut held, seen).await;
        let halted = matches!(held.phase, Phase::Halted(_));
        self.held = Some(held);
        match turn {
            Ok(Turn::Advanced) if halted => Turn::Halted(code, text, again_in),
            Ok(turn) => turn,
            // The ledger is in trouble as well.
            Err(error) => {
                let text = error.chain();
                Turn::Retry { code: error.code, text, again_in }
            }
        }
    }

    /// Writes trouble down for `status`, unless the ledger itself is the trouble.
    async fn note(&mut self, code: Code, text: String, again_in: Duration) {
        let Some(mut held) = self.held.take() else { return };
        held.reader = None;
        let now = held.now(self.ports.clock.as_ref());
        let health = RunHealth {
            attempts: held.health.attempts.saturating_add(1),
            code: Some(code),
            text,
            due_at: Some(now.plus(again_in)),
        };
        let step = Step { next: held.phase.clone(), writes: Vec::new() };
        let checkpoint = Checkpoint { step, health, delivered: 0 };
        let noted = match held.commit(&self.ports, checkpoint).await {
            Ok(Some(Committed::Lost(lost))) => self.reload(&mut held, lost).await.map(|_| ()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!(code = %error.code, error = error.chain(), "note trouble");
        }
        self.held = Some(held);
    }
}
