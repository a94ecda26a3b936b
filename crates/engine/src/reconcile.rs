//! A run of reconcile beside follow, under the same lease: one step after each turn of follow.
//!
//! Invariants: Q1, Q2, Q3. What it finds is told to follow first and stored with the run second,
//! so that a certificate is never trusted longer than the run that doubts it.

mod differing;
mod look;
mod pass;
mod scan;

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::ports::{
    Commit, Committed, LedgerWrite, NewRun, Opened, ProcedureKind, Run, RunHealth, RunState,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::reconcile::{BlastGuard, Observation, Phase, Reconcile, Stored, Terms};
use truekeep_core::{RunId, RunVersion, Timestamp};

use crate::commit::{self, settle};
use crate::perform::{Performed, Setback};
use crate::scope::{Held, Runner};
use crate::turn::Turn;

pub(crate) use differing::Differing;
use look::Looked;
pub(crate) use pass::Pass;
pub(crate) use scan::Scanner;

/// How long a run waits after trouble of a port that may pass. Follow does not wait for it.
const PAUSE: Duration = Duration::from_secs(10);

/// How often a repair that ended without trust is begun again by itself.
const REPAIR_EVERY_MS: i64 = 60_000;

/// The run as this worker knows it. Its phase is the stored one.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    run: RunId,
    version: RunVersion,
    stored: Stored,
    /// Nothing before this time.
    not_before: Timestamp,
    /// Whether that is what the run itself wants, and not for trouble.
    waits: bool,
}

impl Beside {
    fn adopt(run: Run) -> Result<Self, PortError> {
        let stored = commit::from_json(&run.phase)?;
        let not_before = Timestamp::from_ms(i64::MIN);
        Ok(Self { run: run.id, version: run.version, stored, not_before, waits: false })
    }
}

impl Runner {
    /// One step of the run beside, if there is one and follow is on its way. Its trouble is its
    /// own: follow goes on.
    pub(crate) async fn beside(&self, held: &mut Held, turn: Turn) -> Result<Turn, Setback> {
        let on_its_way = matches!(held.phase, follow::Phase::Tailing(_));
        let now = held.now(self.ports.clock.as_ref());
        let calm = matches!(turn, Turn::Advanced | Turn::NotDue | Turn::Deferred);
        if !on_its_way || !calm {
            return Ok(turn);
        }
        self.outrule_beside(held);
        let Some(beside) = held.beside.clone() else { return Ok(turn) };
        if let Some(after_crash) = held.untold.take() {
            let page_rows = self.settings.page_rows;
            let told = Observation::TookOver { after_crash, page_rows };
            return Ok(match self.conclude_beside(held, beside, told).await? {
                Turn::NotDue => Turn::Advanced,
                other => other,
            });
        }
        if now < beside.not_before {
            return Ok(if beside.waits { waiting(turn) } else { turn });
        }
        let Stored { terms, phase } = &beside.stored;
        let Due::Now(command) = Reconcile::due(terms, phase, now) else { return Ok(turn) };
        let seen = match self.look_beside(held, &beside, command).await {
            Ok(Looked::Seen(seen)) => seen,
            Ok(Looked::Works) => return Ok(Turn::Advanced),
            Ok(Looked::Turned(turn)) => return Ok(turn),
            Ok(Looked::Waits(length)) => {
                held.beside = Some(Beside { not_before: now.plus(length), waits: true, ..beside });
                return Ok(waiting(turn));
            }
            Err(error) => match error.class {
                FailureClass::Fenced => return Err(error.into()),
                FailureClass::Halted | FailureClass::Terminal => Observation::Refused(error.code),
                FailureClass::Retry | FailureClass::Unknown => {
                    tracing::warn!(code = %error.code, error = error.chain(), "reconcile");
                    held.beside =
                        Some(Beside { not_before: now.plus(PAUSE), waits: false, ..beside });
                    return Ok(turn);
                }
            },
        };
        match self.conclude_beside(held, beside, seen).await? {
            Turn::NotDue => Ok(turn),
            other => Ok(other),
        }
    }

    /// Tells follow first, then stores what follows. Whatever does not land leaves the run where it
    /// was, so the step is made again.
    async fn conclude_beside(
        &self,
        held: &mut Held,
        beside: Beside,
        seen: Observation,
    ) -> Result<Turn, PortError> {
        let Beside { run, version, stored: Stored { terms, phase }, .. } = beside.clone();
        let now = held.now(self.ports.clock.as_ref());
        let step = Reconcile::on(&terms, phase.clone(), seen, now).map_err(|misplaced| {
            PortError::new("take an observation", FailureClass::Terminal, Code::UNEXPECTED)
                .caused_by(misplaced)
        })?;
        if step.next == phase && step.writes.is_empty() {
            return Ok(Turn::NotDue);
        }
        let stored = Stored { terms, phase: step.next };
        if let Some(judgement) = stored.judgement() {
            let told = Performed::fact(follow::Observation::Judged(judgement.clone()));
            let turn = self.conclude(held, told.ailing(held.health.clone())).await?;
            let believed = held.phase.tail().is_some_and(|tail| tail.distrust == judgement);
            if turn == Turn::ClaimLost || !believed {
                return Ok(turn);
            }
        }
        let commit = Commit {
            run,
            scope: held.scope.clone(),
            guard: Guard { run_version: version, ..held.guard() },
            token: self.ports.entropy.commit_token(),
            phase: commit::to_json(&stored)?,
            state: stored.phase.state(),
            health: RunHealth::default(),
            delivered: 0,
            writes: step.writes,
        };
        match settle(&self.ports, &commit).await? {
            Committed::Landed(version, tally) => {
                held.tally = tally;
                if commit.writes.iter().any(|write| matches!(write, LedgerWrite::Enqueue(_))) {
                    held.items_checked = None;
                }
                let active = commit.state == RunState::Active;
                held.pass.take_if(|_| !active);
                if !active {
                    held.awaited.clear();
                    held.differing = None;
                    held.scanner = Scanner::default();
                }
                held.beside = active.then_some(Beside { version, stored, ..beside });
                Ok(Turn::Advanced)
            }
            // Somebody else moved it: it is looked for again.
            Committed::Lost(Lost::Run | Lost::RunVersion) => {
                held.beside = None;
                Ok(Turn::Advanced)
            }
            Committed::Lost(lost @ (Lost::Lease | Lost::Fence | Lost::Rules)) => {
                self.reload(held, lost).await
            }
        }
    }

    /// Finds the run that somebody wished for, or opens the one that is due. `Some` if the lease
    /// was lost on the way.
    pub(crate) async fn find_beside(&mut self, held: &mut Held) -> Result<Option<Turn>, PortError> {
        if held.beside.is_some() {
            return Ok(None);
        }
        let newest = self.ports.ledger.load(&held.scope, ProcedureKind::Reconcile).await?;
        match newest {
            Some(run) if run.state == RunState::Active => {
                held.beside = Some(Beside::adopt(run)?);
                self.distrust_beside(held);
            }
            Some(run) if run.state == RunState::Stopped(Code::CANCELLED) => {
                return self.cancelled_beside(held).await;
            }
            Some(_) | None => self.begin_beside(held).await?,
        }
        Ok(None)
    }

    /// What a cancelled run had found is not repaired by itself: the operator would have to cancel
    /// again each minute. The certificate says why it stays stale. A doubt about everything is
    /// another matter, and is looked into all the same.
    async fn cancelled_beside(&mut self, held: &mut Held) -> Result<Option<Turn>, PortError> {
        let tail = held.phase.tail();
        let found = tail.and_then(|tail| tail.distrust.as_ref());
        let found =
            found.is_some_and(|code| [Code::DRIFT_FOUND, Code::RULES_CHANGED].contains(code));
        if found && matches!(held.phase, follow::Phase::Tailing(_)) {
            let told = follow::Observation::Judged(Some(Code::CANCELLED));
            let told = Performed::fact(told).ailing(held.health.clone());
            let turn = self.conclude(held, told).await?;
            return Ok(Some(turn).filter(|turn| *turn == Turn::ClaimLost));
        }
        self.begin_beside(held).await?;
        Ok(None)
    }

    /// Opens the run that is due by itself.
    async fn begin_beside(&mut self, held: &mut Held) -> Result<(), PortError> {
        let Some(key) = self.due_beside(held) else { return Ok(()) };
        if self.opened.as_ref() == Some(&key) {
            return Ok(());
        }
        let tail = held.phase.tail();
        let doubtful = tail.is_some_and(follow::Tail::source_went_back);
        let guard = if doubtful { BlastGuard::LOST_FUTURE } else { BlastGuard::default() };
        let rebuild = tail.filter(|tail| tail.outdated).map(|tail| tail.rules);
        let owns = self.pipeline.owns;
        let stored = Stored::first(Terms { guard, owns, rebuild, ..Terms::default() });
        let new = NewRun {
            id: self.ports.entropy.run_id(),
            scope: held.scope.clone(),
            procedure: ProcedureKind::Reconcile,
            key: key.clone(),
            phase: commit::to_json(&stored)?,
        };
        if let Opened::Run(run) = self.ports.ledger.open_run(&new).await?
            && run.state == RunState::Active
        {
            held.beside = Some(Beside::adopt(run)?);
        }
        self.opened = Some(key);
        Ok(())
    }

    /// A run that began before something went back begins again: what it saw says nothing now. Of a
    /// run that is found in the middle, after a take-over or after somebody moved it, nobody knows
    /// when it began, so it begins again as well; but for a scan, which judges nothing, and is what
    /// finds a record that kills. An operator's yes was said to what was seen, so it ends with it.
    pub(crate) fn distrust_beside(&self, held: &mut Held) {
        let went_back = held.phase.tail().is_some_and(follow::Tail::went_back);
        if let Some(beside) = held.beside.as_mut().filter(|_| went_back) {
            let Stored { terms, phase } = &mut beside.stored;
            terms.confirmed = false;
            if !matches!(phase, Phase::Scanning { .. }) {
                *phase = Phase::Beginning;
            }
            held.pass = None;
            held.awaited.clear();
        }
    }

    /// A run that works for other rules than follow, while the sink holds what is of earlier ones, begins
    /// again as the rebuild that is needed.
    fn outrule_beside(&self, held: &mut Held) {
        let Some(tail) = held.phase.tail().filter(|tail| tail.outdated) else { return };
        let rules = tail.rules;
        if let Some(beside) = &mut held.beside
            && beside.stored.terms.rebuild != Some(rules)
        {
            beside.stored = beside.stored.clone().under(rules);
            held.pass = None;
            held.differing = None;
            held.awaited.clear();
        }
    }

    /// The key of the run that is due by itself: now and then while the sink is not trusted, and
    /// once per interval.
    fn due_beside(&self, held: &Held) -> Option<String> {
        let tail = held.phase.tail()?;
        let now = held.now(self.ports.clock.as_ref());
        match &tail.distrust {
            // An operator has to say yes first.
            Some(code)
                if [Code::GUARD_REFUSED, Code::SINK_AHEAD, Code::CANCELLED].contains(code) =>
            {
                None
            }
            Some(_) => {
                let (fence, often) = (held.lease.fence, now.ms() / REPAIR_EVERY_MS);
                Some(format!("repair-{fence}-{often}"))
            }
            None => {
                let every = self.pipeline.reconcile_every?.as_millis().max(1);
                Some(format!("every-{}", u128::try_from(now.ms()).unwrap_or(0) / every))
            }
        }
    }
}

/// A turn after which more is to come, although the feed has nothing.
fn waiting(turn: Turn) -> Turn {
    if turn == Turn::NotDue { Turn::Deferred } else { turn }
}
