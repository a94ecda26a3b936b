//! Taking the lease of a scope and finding its run.
//!
//! Invariants: G1, F2 (nothing is done in a run that was not told of the take-over).

use std::collections::BTreeSet;
use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::Phase;
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Acquired, Announced, Announcement, Consumer, Mark, NewRun, Opened, PipelineRecord,
    PipelineState, ProcedureKind, Run,
};
use truekeep_core::{LeaseToken, LedgerId};

use crate::commit::from_json;
use crate::keeper::Grip;
use crate::observer::Happening;
use crate::reconcile::Scanner;
use crate::scope::{Batches, Held, Runner};
use crate::turn::Turn;

impl Runner {
    /// Takes the lease, if this worker's rules are the ones in force.
    pub(crate) async fn acquire(&mut self) -> Turn {
        match self.try_acquire().await {
            Ok(turn) => turn,
            Err(error) => self.trouble(error).await,
        }
    }

    async fn try_acquire(&mut self) -> Result<Turn, PortError> {
        let record = match self.workable().await? {
            Ok(record) => record,
            Err(code) => return Ok(self.inactive(code)),
        };
        let ledger = self.ports.ledger.identity().await?;
        let (token, asked_at) = self.asking();
        let scope = self.pipeline.scope.clone();
        let holder = self.keeper.holder();
        let answer = self.ports.leases.acquire(&scope, holder, &token, self.settings.lease_ttl);
        let (lease, after_crash) = match answer.await? {
            Acquired::Ours { lease, after_crash } => (lease, after_crash),
            Acquired::Held { by, until } => {
                self.asked = None;
                let left = until.since(self.ports.ledger.now().await?);
                self.happened(&Happening::HeldBy(by.clone(), until));
                return Ok(Turn::HeldBy(by, until, left));
            }
            Acquired::Closed(code) => return Ok(self.inactive(code)),
        };
        self.asked = None;
        let grip = self.keeper.keep(token.clone(), asked_at);
        let begun = self.begin(lease, grip, after_crash, record, ledger);
        let begun = self.keeper.while_ours(&token, begun).await;
        if !matches!(begun, Some(Ok(_))) {
            self.release(&token).await;
        }
        self.held = begun.transpose()?;
        Ok(if self.held.is_some() { Turn::Advanced } else { Turn::ClaimLost })
    }

    /// The token to ask for the lease with, and when it was first asked with. After an answer that
    /// was lost the lease may be this token's already, and ends that long after it was asked for.
    fn asking(&mut self) -> (LeaseToken, Duration) {
        let now = self.ports.clock.monotonic();
        let before = self.asked.take();
        let before = before.filter(|(_, at)| now.saturating_sub(*at) < self.settings.lease_ttl);
        let asked = before.unwrap_or_else(|| (self.ports.entropy.lease_token(), now));
        self.asked.insert(asked).clone()
    }

    async fn begin(
        &self,
        lease: Lease,
        grip: Grip,
        after_crash: bool,
        record: PipelineRecord,
        ledger: LedgerId,
    ) -> Result<Held, PortError> {
        let scope = self.pipeline.scope.clone();
        let consumer = Consumer { ledger, pipeline: record.incarnation.clone() };
        let terms =
            self.settings.terms(record.rules.number, consumer, self.pipeline.source_went_back);
        let run = self.open_run().await?;
        let pulse = self.ports.ledger.pulse(&scope, ProcedureKind::Follow).await?;
        let pulse = pulse.ok_or_else(|| {
            PortError::new("find the run", FailureClass::Retry, Code::UNEXPECTED)
                .detail("it ended a moment after it was opened")
        })?;
        self.happened(&Happening::Acquired(lease.fence));
        tracing::info!(%scope, fence = lease.fence.get(), after_crash, "lease taken");
        Ok(Held {
            scope,
            procedure: ProcedureKind::Follow,
            lease,
            grip,
            took_over: Some(after_crash),
            run: run.id,
            version: run.version,
            terms,
            phase: from_json(&run.phase)?,
            health: run.health,
            tally: pulse.tally,
            said: (pulse.now, self.ports.clock.monotonic()),
            reader: None,
            batches: Batches::default(),
            rows: self.settings.page_rows,
            items_checked: None,
            littered: true,
            unpruned: 0,
            claimed: Vec::new(),
            beside: None,
            untold: Some(after_crash),
            scanner: Scanner::default(),
            pass: None,
            awaited: BTreeSet::new(),
            differing: None,
            feeds_turn: false,
        })
    }

    /// The pipeline, if it may be worked on and by this worker, else why not. One that the ledger
    /// does not know is announced: the very first start puts its own rules in force.
    pub(crate) async fn workable(&self) -> Result<Result<PipelineRecord, Code>, PortError> {
        let name = self.pipeline.scope.pipeline();
        let record = match self.ports.ledger.pipeline(name).await? {
            Some(record) => record,
            None => match self.announce_first().await {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(Err(Code::RULES_CHANGED)),
                Err(error) if error.code == Code::PIPELINE_REMOVED => return Ok(Err(error.code)),
                Err(error) => return Err(error),
            },
        };
        Ok(match record.state {
            PipelineState::Paused => Err(Code::PIPELINE_PAUSED),
            PipelineState::Removing(_) => Err(Code::PIPELINE_REMOVED),
            PipelineState::Working if record.rules.fingerprint != self.pipeline.fingerprint => {
                Err(Code::RULES_CHANGED)
            }
            PipelineState::Working => Ok(record),
        })
    }

    async fn announce_first(&self) -> Result<Option<PipelineRecord>, PortError> {
        // A sink that does not answer now is opened before anything is sent, and looked at then. No
        // lease ends that wait yet.
        let answer = tokio::select! {
            biased;
            mark = self.pipeline.sink.mark() => mark.ok().flatten(),
            () = self.ports.clock.sleep(self.settings.lease_ttl) => None,
        };
        let first = Announcement {
            pipeline: self.pipeline.scope.pipeline().clone(),
            incarnation: self.ports.entropy.incarnation(),
            fingerprint: self.pipeline.fingerprint.clone(),
            text: self.pipeline.rules.clone(),
            replaces: None,
            above: Mark::inherited(answer.as_ref()),
            anew: false,
        };
        Ok(match self.ports.ledger.announce(&first).await? {
            Announced::InForce(record) => Some(record),
            Announced::Outpaced(record) => record,
        })
    }

    /// Nobody may work on the scope, or not under this configuration.
    fn inactive(&mut self, code: Code) -> Turn {
        self.asked = None;
        self.happened(&Happening::Inactive(code.clone()));
        Turn::Inactive(code)
    }

    async fn open_run(&self) -> Result<Run, PortError> {
        let new = NewRun {
            id: self.ports.entropy.run_id(),
            scope: self.pipeline.scope.clone(),
            procedure: ProcedureKind::Follow,
            key: "follow".into(),
            phase: serde_json::to_string(&Phase::START).map_err(|error| {
                PortError::new("open a run", FailureClass::Terminal, Code::UNEXPECTED)
                    .caused_by(error)
            })?,
        };
        match self.ports.ledger.open_run(&new).await? {
            Opened::Run(run) | Opened::Conflict(run) => Ok(run),
        }
    }
}
