//! A run of reconcile beside follow, under the same lease: one step after each turn of follow.
//!
//! Invariants: Q1, Q2, Q3. What it finds is told to follow first and stored with the run second,
//! so that a certificate is never trusted longer than the run that doubts it.

use truekeep_core::code::Code;
use truekeep_core::compare::Difference;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::limits;
use truekeep_core::ports::{
    Commit, Committed, ItemKind, LedgerWrite, NewItem, NewRun, Opened, ProcedureKind, Run,
    RunHealth, RunState,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::reconcile::{Command, Found, Observation, Phase, Reconcile, Stored, Terms};
use truekeep_core::{Key, Rank, RunId, RunVersion, Version};

use crate::commit::{self, settle};
use crate::comparison::{Comparison, Drift, Sides, Stretch};
use crate::perform::{Performed, Setback, Shipment, tail_of};
use crate::scope::{Held, Runner};
use crate::turn::Turn;

/// Keys of one page of either side.
const PAGE: u32 = 1_000;

/// The run as this worker knows it.
#[derive(Debug)]
pub(crate) struct Beside {
    run: RunId,
    version: RunVersion,
    stored: Stored,
}

impl Beside {
    fn adopt(run: Run) -> Result<Self, PortError> {
        Ok(Self { run: run.id, version: run.version, stored: commit::from_json(&run.phase)? })
    }
}

impl Runner {
    /// One step of the run beside, if there is one and follow is on its way.
    pub(crate) async fn beside(&self, held: &mut Held, turn: Turn) -> Result<Turn, Setback> {
        let on_its_way = matches!(held.phase, follow::Phase::Tailing(_));
        if !on_its_way || !matches!(turn, Turn::Advanced | Turn::NotDue | Turn::Deferred) {
            return Ok(turn);
        }
        let Some(beside) = held.beside.take() else { return Ok(turn) };
        let now = held.now(self.ports.clock.as_ref());
        let Due::Now(command) = Reconcile::due(&beside.stored.terms, &beside.stored.phase, now)
        else {
            held.beside = Some(beside);
            return Ok(turn);
        };
        let seen = self.look_beside(held, command).await;
        held.beside = Some(beside);
        match self.conclude_beside(held, seen?).await? {
            Turn::NotDue => Ok(turn),
            other => Ok(other),
        }
    }

    async fn look_beside(
        &self,
        held: &mut Held,
        command: Command,
    ) -> Result<Observation, PortError> {
        match command {
            Command::Look => {
                let end = Version::new(u64::MAX);
                let page = self.pipeline.feed.changes(&held.terms.consumer, end, 1).await?;
                Ok(Observation::Looked(page.view.capture))
            }
            Command::Audit { after } => {
                let page = self.pipeline.capture.audit(after, PAGE).await?;
                let keys: Vec<Key> = page.missed.into_iter().chain(page.ghosts).collect();
                let (numbered, _) = self.number(&keys).await?;
                Ok(Observation::Audited { next: page.next, missed: keys.len() as u64, numbered })
            }
            Command::Compare { after, park } => self.compare(held, after, park).await,
            Command::Purge { after } => self.purge(held, after).await,
            Command::Await { numbered } => {
                let reached = held.cursor().is_some_and(|cursor| cursor >= numbered);
                Ok(Observation::Awaited { reached })
            }
        }
    }

    fn sides<'p>(&'p self, held: &Held) -> Sides<'p> {
        Sides {
            scope: held.scope.clone(),
            rules: held.terms.rules,
            cursor: held.cursor().unwrap_or_default(),
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

    async fn purge(&self, held: &Held, after: Option<Key>) -> Result<Observation, PortError> {
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
        let keys: Vec<Key> = orphans.iter().map(|(key, _)| key.clone()).collect();
        let (numbered, foreign) = self.number(&keys).await?;
        let mut shipment = Shipment::default();
        for (key, rank) in orphans.into_iter().filter(|(key, _)| foreign.contains(key)) {
            shipment.remove(key, rank);
        }
        let removed = foreign.len() as u64;
        if removed > 0 {
            self.ship(held, &tail_of(held)?.clone(), shipment, false).await?;
        }
        let buried = keys.len() as u64 - removed;
        Ok(Observation::Purged { next, buried, foreign: removed, numbered })
    }

    /// Numbers keys, in transactions of the size that the source is promised.
    async fn number(&self, keys: &[Key]) -> Result<(Option<Version>, Vec<Key>), PortError> {
        let (mut newest, mut foreign) = (None, Vec::new());
        for keys in keys.chunks(limits::SOURCE_WRITE_ROWS_MAX as usize) {
            let numbered = self.pipeline.capture.number(keys).await?;
            newest = newest.max(numbered.newest);
            foreign.extend(numbered.foreign);
        }
        Ok((newest, foreign))
    }

    async fn conclude_beside(&self, held: &mut Held, seen: Observation) -> Result<Turn, PortError> {
        let Some(beside) = held.beside.take() else { return Ok(Turn::NotDue) };
        let Beside { run, version, stored: Stored { terms, phase } } = beside;
        let now = held.now(self.ports.clock.as_ref());
        let step = Reconcile::on(&terms, phase.clone(), seen, now).map_err(|misplaced| {
            PortError::new("take an observation", FailureClass::Terminal, Code::UNEXPECTED)
                .caused_by(misplaced)
        })?;
        let unchanged = step.next == phase && step.writes.is_empty();
        let stored = Stored { terms, phase: step.next };
        held.beside = Some(Beside { run: run.clone(), version, stored: stored.clone() });
        if unchanged {
            return Ok(Turn::NotDue);
        }
        if let Some(judgement) = stored.phase.judgement() {
            let told = Performed::fact(follow::Observation::Judged(judgement));
            let turn = self.conclude(held, told.ailing(held.health.clone())).await?;
            if turn == Turn::ClaimLost {
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
        self.store_beside(held, &commit).await
    }

    async fn store_beside(&self, held: &mut Held, commit: &Commit) -> Result<Turn, PortError> {
        match settle(&self.ports, commit).await? {
            Committed::Landed(version, tally) => {
                held.tally = tally;
                if commit.writes.iter().any(|write| matches!(write, LedgerWrite::Enqueue(_))) {
                    held.items_checked = None;
                }
                match (&commit.state, &mut held.beside) {
                    (RunState::Active, Some(beside)) => beside.version = version,
                    _ => held.beside = None,
                }
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
        let stored = Stored::first(Terms::default());
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
    /// take-over in the middle of such a repair begins it again as well.
    pub(crate) fn distrust_beside(&self, held: &mut Held) {
        let went_back = held.phase.tail().is_some_and(follow::Tail::went_back);
        if let Some(beside) = held.beside.as_mut().filter(|_| went_back) {
            beside.stored.phase = Phase::Beginning;
        }
    }

    /// The key of the run that is due by itself: once per lease while the sink is not trusted,
    /// and once per interval.
    fn due_beside(&self, held: &Held) -> Option<String> {
        let tail = held.phase.tail()?;
        match &tail.distrust {
            // An operator has to say yes first.
            Some(code) if *code == Code::GUARD_REFUSED || *code == Code::SINK_AHEAD => None,
            Some(_) => Some(format!("repair-{}", held.lease.fence)),
            None => {
                let every = self.pipeline.reconcile_every?.as_millis().max(1);
                let now = held.now(self.ports.clock.as_ref());
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
