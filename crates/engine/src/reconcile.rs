//! A run of reconcile beside follow, under the same lease: one step after each turn of follow.
//!
//! Invariants: Q1, Q2, Q3. What it finds is told to follow first and stored with the run second,
//! so that a certificate is never trusted longer than the run that doubts it.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::compare::Difference;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::limits;
use truekeep_core::ports::{
    CaptureState, Commit, Committed, ItemKind, LedgerWrite, NewItem, NewRun, Opened, ProcedureKind,
    Run, RunHealth, RunState,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::reconcile::{BlastGuard, Command, Found, Observation, Reconcile, Stored, Terms};
use truekeep_core::{Key, Rank, RunId, RunVersion, Stamp, Timestamp};

use crate::commit::{self, settle};
use crate::comparison::{Comparison, Drift, Sides, Stretch};
use crate::perform::{Performed, Setback, Shipment, tail_of};
use crate::scope::{Held, Runner};
use crate::turn::Turn;

/// Keys of one page of either side.
const PAGE: u32 = 1_000;

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
    /// Nothing before this time, after trouble.
    not_before: Timestamp,
}

impl Beside {
    fn adopt(run: Run) -> Result<Self, PortError> {
        let stored = commit::from_json(&run.phase)?;
        let not_before = Timestamp::from_ms(i64::MIN);
        Ok(Self { run: run.id, version: run.version, stored, not_before })
    }
}

impl Runner {
    /// One step of the run beside, if there is one and follow is on its way. Its trouble is its
    /// own: follow goes on.
    pub(crate) async fn beside(&self, held: &mut Held, turn: Turn) -> Result<Turn, Setback> {
        let on_its_way = matches!(held.phase, follow::Phase::Tailing(_));
        let now = held.now(self.ports.clock.as_ref());
        let Some(beside) = held.beside.clone() else { return Ok(turn) };
        let calm = matches!(turn, Turn::Advanced | Turn::NotDue | Turn::Deferred);
        if !on_its_way || !calm || now < beside.not_before {
            return Ok(turn);
        }
        let Stored { terms, phase } = &beside.stored;
        let Due::Now(command) = Reconcile::due(terms, phase, now) else { return Ok(turn) };
        let seen = match self.look_beside(held, command).await {
            Ok(seen) => seen,
            Err(error) => match error.class {
                FailureClass::Fenced => return Err(error.into()),
                FailureClass::Halted | FailureClass::Terminal => Observation::Refused(error.code),
                FailureClass::Retry | FailureClass::Unknown => {
                    tracing::warn!(code = %error.code, error = error.chain(), "reconcile");
                    held.beside = Some(Beside { not_before: now.plus(PAUSE), ..beside });
                    return Ok(turn);
                }
            },
        };
        match self.conclude_beside(held, beside, seen).await? {
            Turn::NotDue => Ok(turn),
            other => Ok(other),
        }
    }

    async fn look_beside(
        &self,
        held: &mut Held,
        command: Command,
    ) -> Result<Observation, PortError> {
        // What capture did not see is no ground to repair or to delete on.
        let at = held.cursor().cloned().unwrap_or_default();
        let view = self.pipeline.feed.view(&held.terms.consumer, &at).await?;
        if !matches!(view.capture, CaptureState::Trusted(_)) {
            return Ok(Observation::Looked(view.capture));
        }
        match command {
            Command::Look => Ok(Observation::Looked(view.capture)),
            Command::Audit { after, ghosts_max } => self.audit(after, ghosts_max).await,
            Command::Compare { after, park } => self.compare(held, after, park).await,
            Command::Purge { after, orphans_max } => self.purge(held, after, orphans_max).await,
            Command::Await { numbered } => {
                Ok(Observation::Awaited { reached: at.covers(numbered) })
            }
        }
    }

    async fn audit(&self, after: Option<Key>, ghosts_max: u64) -> Result<Observation, PortError> {
        let page = self.pipeline.capture.audit(after, PAGE).await?;
        let (missed, ghosts) = (page.missed.len() as u64, page.ghosts.len() as u64);
        let mut keys = page.missed;
        if ghosts <= ghosts_max {
            keys.extend(page.ghosts);
        }
        let (numbered, _) = self.number(&keys).await?;
        Ok(Observation::Audited { next: page.next, missed, ghosts, numbered })
    }

    fn sides<'p>(&'p self, held: &Held) -> Sides<'p> {
        Sides {
            scope: held.scope.clone(),
            rules: held.terms.rules,
            cursor: held.cursor().cloned().unwrap_or_default(),
            feed: self.pipeline.feed.as_ref(),
            records: self.pipeline.records.as_ref(),
            sink: self.pipeline.sink.as_ref(),
            items: self.ports.items.as_ref(),
        }
    }

    /// The next part of the comparison, and where the one after it begins.
    async fn part(
        &self,
        held: &Held,
        after: Option<Key>,
    ) -> Result<(Stretch, Option<Key>), PortError> {
        let mut comparison = Comparison::begin(self.sides(held), after, PAGE);
        let stretch = comparison.advance().await?.unwrap_or_default();
        Ok((stretch, comparison.place().cloned()))
    }

    async fn compare(
        &self,
        held: &Held,
        after: Option<Key>,
        park: bool,
    ) -> Result<Observation, PortError> {
        let (stretch, next) = self.part(held, after).await?;
        let mut found = Found { listed: stretch.listed, live: stretch.live, ..Found::default() };
        let (mut repairs, mut parked) = (Vec::new(), Vec::new());
        // What is parked is known already, and waits for an operator.
        for drift in stretch.drifts.into_iter().filter(|drift| !drift.parked) {
            let repairable = match &drift.difference {
                Difference::Missing(..) => count(&mut found.missing),
                Difference::Stale(..) => count(&mut found.stale),
                Difference::Orphan(..) => !count(&mut found.orphans),
                Difference::Ahead(..) => !count(&mut found.ahead),
            };
            match (park, repairable) {
                (true, _) => parked.push(non_convergent(&drift)),
                (false, true) => repairs.push(drift.difference.key().clone()),
                (false, false) => {}
            }
        }
        let (numbered, _) = self.number(&repairs).await?;
        Ok(Observation::Compared { next, found, park: parked, numbered })
    }

    async fn purge(
        &self,
        held: &mut Held,
        after: Option<Key>,
        orphans_max: u64,
    ) -> Result<Observation, PortError> {
        let (stretch, next) = self.part(held, after).await?;
        let orphans: Vec<(Key, Rank)> = stretch
            .drifts
            .into_iter()
            .filter(|drift| !drift.parked)
            .filter_map(|drift| match drift.difference {
                Difference::Orphan(key, rank) => Some((key, rank)),
                Difference::Missing(..) | Difference::Stale(..) | Difference::Ahead(..) => None,
            })
            .collect();
        let purged = |buried, foreign, refused, exceeded, numbered| Observation::Purged {
            next,
            buried,
            foreign,
            refused,
            exceeded,
            numbered,
        };
        if orphans.len() as u64 > orphans_max {
            return Ok(purged(0, 0, 0, true, None));
        }
        let keys: Vec<Key> = orphans.iter().map(|(key, _)| key.clone()).collect();
        let (numbered, foreign) = self.number(&keys).await?;
        let buried = (keys.len() - foreign.len()) as u64;
        if foreign.is_empty() {
            return Ok(purged(buried, 0, 0, false, numbered));
        }
        let mut shipment = Shipment::default();
        for (key, rank) in orphans.into_iter().filter(|(key, _)| foreign.contains(key)) {
            shipment.remove(key, rank);
        }
        let tail = tail_of(held)?.clone();
        let (delivered, sent) = self.ship(held, &tail, shipment, false).await?;
        let refused = delivered.failed.len() as u64 + u64::from(delivered.ahead.is_some());
        Ok(purged(buried, sent.saturating_sub(refused), refused, false, numbered))
    }

    /// Numbers keys, in transactions of the size that the source is promised.
    async fn number(&self, keys: &[Key]) -> Result<(Option<Stamp>, Vec<Key>), PortError> {
        let (mut newest, mut foreign) = (None, Vec::new());
        for keys in keys.chunks(limits::SOURCE_WRITE_ROWS_MAX as usize) {
            let numbered = self.pipeline.capture.number(keys).await?;
            newest = numbered.newest.or(newest);
            foreign.extend(numbered.foreign);
        }
        Ok((newest, foreign))
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
        if let Some(judgement) = stored.phase.judgement() {
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

    /// Finds the run that somebody wished for, or opens the one that is due.
    pub(crate) async fn find_beside(&mut self, held: &mut Held) -> Result<(), PortError> {
        if held.beside.is_some() {
            return Ok(());
        }
        let open = self.ports.ledger.load(&held.scope, ProcedureKind::Reconcile).await?;
        if let Some(run) = open.filter(|run| run.state == RunState::Active) {
            held.beside = Some(Beside::adopt(run)?);
            return Ok(());
        }
        let Some(key) = self.due_beside(held) else { return Ok(()) };
        if self.opened.as_ref() == Some(&key) {
            return Ok(());
        }
        let doubtful = held.phase.tail().is_some_and(follow::Tail::source_went_back);
        let guard = if doubtful { BlastGuard::LOST_FUTURE } else { BlastGuard::default() };
        let stored = Stored::first(Terms { guard, ..Terms::default() });
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

    /// A run that began before something went back begins again: what it saw says nothing now. A
    /// take-over in the middle of such a repair begins it again as well. An operator's yes was said
    /// to what was seen, so it ends with it.
    pub(crate) fn distrust_beside(&self, held: &mut Held) {
        let went_back = held.phase.tail().is_some_and(follow::Tail::went_back);
        if let Some(beside) = held.beside.as_mut().filter(|_| went_back) {
            beside.stored =
                Stored::first(Terms { confirmed: false, ..beside.stored.terms.clone() });
        }
    }

    /// The key of the run that is due by itself: now and then while the sink is not trusted, and
    /// once per interval.
    fn due_beside(&self, held: &Held) -> Option<String> {
        let tail = held.phase.tail()?;
        let now = held.now(self.ports.clock.as_ref());
        match &tail.distrust {
            // An operator has to say yes first.
            Some(code) if *code == Code::GUARD_REFUSED || *code == Code::SINK_AHEAD => None,
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

/// Counts one, and says yes.
fn count(number: &mut u64) -> bool {
    *number += 1;
    true
}

fn non_convergent(drift: &Drift) -> NewItem {
    let (kind, held) = match &drift.difference {
        Difference::Missing(..) => (ItemKind::Upsert, None),
        Difference::Stale(_, _, held) | Difference::Ahead(_, _, held) => {
            (ItemKind::Upsert, Some(*held))
        }
        Difference::Orphan(_, held) => (ItemKind::Delete, Some(*held)),
    };
    let say = |rank: Option<Rank>| rank.map_or_else(|| "nothing".to_owned(), |r| r.to_string());
    NewItem {
        key: drift.difference.key().clone(),
        version: drift.wanted.or(held).unwrap_or_default().version,
        kind,
        attempts: 0,
        retry_in: None,
        code: Code::NON_CONVERGENT,
        reason: format!("the source wants {}, the sink holds {}", say(drift.wanted), say(held)),
    }
}
