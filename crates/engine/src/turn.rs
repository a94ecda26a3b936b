//! A turn: what is due is performed, what was seen is committed.
//!
//! Invariants: P1, P2, G1.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::{Command, Follow, Observation, Phase};
use truekeep_core::guard::Lost;
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Acquired, Announced, Announcement, Committed, Consumer, NewRun, Opened, PipelineRecord,
    ProcedureKind, Run, RunHealth,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::retry::{Decision, decide};
use truekeep_core::{HolderId, LedgerId, Timestamp, Version, limits};

use crate::commit::{Checkpoint, from_json};
use crate::observer::Happening;
use crate::perform::{Performed, Setback};
use crate::scope::{Held, Runner};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The configuration cannot be worked under.
    Inactive(Code),
    /// Somebody else has the lease: who, until when, and how long that is.
    HeldBy(HolderId, Timestamp, Duration),
    /// The lease, or a race, was lost; nothing was written.
    ClaimLost,
    /// Something was done, and more may be due at once.
    Advanced,
    /// Nothing is due until something changes.
    NotDue,
    /// An operator is needed; it is looked at again after this long.
    Halted(Code, String, Duration),
    /// Something failed that may pass.
    Retry {
        /// The code.
        code: Code,
        /// The text with its causes.
        text: String,
        /// When it is tried again.
        again_in: Duration,
    },
}

impl Runner {
    /// Takes the lease, if this worker's rules are the ones in force.
    pub(crate) async fn acquire(&mut self) -> Turn {
        match self.try_acquire().await {
            Ok(turn) => turn,
            Err(error) => self.trouble(error).await,
        }
    }

    async fn try_acquire(&mut self) -> Result<Turn, PortError> {
        let Some(record) = self.rules_in_force().await? else {
            self.happened(&Happening::Inactive(Code::RULES_CHANGED));
            return Ok(Turn::Inactive(Code::RULES_CHANGED));
        };
        let ledger = self.ports.ledger.identity().await?;
        let token = self.ports.entropy.lease_token();
        let asked_at = self.ports.clock.monotonic();
        let scope = self.pipeline.scope.clone();
        let ttl = self.settings.lease_ttl;
        let holder = self.keeper.holder();
        let (lease, after_crash) =
            match self.ports.leases.acquire(&scope, holder, &token, ttl).await? {
                Acquired::Ours { lease, after_crash } => (lease, after_crash),
                Acquired::Held { by, until } => {
                    let left = until.since(self.ports.ledger.now().await?);
                    self.happened(&Happening::HeldBy(by.clone(), until));
                    return Ok(Turn::HeldBy(by, until, left));
                }
            };
        self.keeper.keep(token.clone(), asked_at);
        match self.begin(lease, after_crash, record, ledger).await {
            Ok(mut held) => {
                let seen = Performed::fact(Observation::TookOver { after_crash });
                let turn = self.conclude(&mut held, seen).await;
                if matches!(turn, Ok(Turn::ClaimLost)) {
                    self.release(&token).await;
                    return turn;
                }
                self.held = Some(held);
                // What a first look changed is nothing to wait for.
                turn.map(|_| Turn::Advanced)
            }
            Err(error) => {
                self.release(&token).await;
                Err(error)
            }
        }
    }

    async fn begin(
        &self,
        lease: Lease,
        after_crash: bool,
        record: PipelineRecord,
        ledger: LedgerId,
    ) -> Result<Held, PortError> {
        let scope = self.pipeline.scope.clone();
        let consumer = Consumer { ledger, pipeline: record.incarnation.clone() };
        let terms = self.settings.terms(record.rules.number, consumer);
        let run = self.open_run().await?;
        let now = self.ports.ledger.now().await?;
        let tally = self.ports.ledger.pulse(&scope, ProcedureKind::Follow).await?;
        self.happened(&Happening::Acquired(lease.fence));
        tracing::info!(%scope, fence = lease.fence.get(), after_crash, "lease taken");
        Ok(Held {
            scope,
            procedure: ProcedureKind::Follow,
            lease,
            run: run.id,
            version: run.version,
            terms,
            phase: from_json(&run.phase)?,
            health: run.health,
            tally: tally.map(|pulse| pulse.tally).unwrap_or_default(),
            said: (now, self.ports.clock.monotonic()),
            reader: None,
            rows: self.settings.page_rows,
            items_checked: None,
            feeds_turn: false,
        })
    }

    /// The rules in force, if they are this worker's. A pipeline that the ledger does not know is
    /// announced: the very first start puts its own rules in force.
    async fn rules_in_force(&self) -> Result<Option<PipelineRecord>, PortError> {
        let name = self.pipeline.scope.pipeline();
        let record = match self.ports.ledger.pipeline(name).await? {
            Some(record) => Some(record),
            None => {
                let first = Announcement {
                    pipeline: name.clone(),
                    incarnation: self.ports.entropy.incarnation(),
                    fingerprint: self.pipeline.fingerprint.clone(),
                    text: self.pipeline.rules.clone(),
                    replaces: None,
                };
                match self.ports.ledger.announce(&first).await? {
                    Announced::InForce(record) => Some(record),
                    Announced::Outpaced(record) => record,
                }
            }
        };
        Ok(record.filter(|record| record.rules.fingerprint == self.pipeline.fingerprint))
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

    /// One turn under a lease that is ours.
    pub(crate) async fn turn(&mut self) -> Turn {
        let Some(mut held) = self.held.take() else { return Turn::ClaimLost };
        let turn = self.turn_of(&mut held).await;
        let turn = match turn {
            Err(Setback::Lost(lost)) => self.reload(&mut held, lost).await,
            Err(Setback::Trouble(error)) => Err(error),
            Ok(turn) => Ok(turn),
        };
        self.held = Some(held);
        match turn {
            Ok(turn) => turn,
            Err(error) => self.trouble(error).await,
        }
    }

    async fn turn_of(&self, held: &mut Held) -> Result<Turn, Setback> {
        let now = held.now(self.ports.clock.as_ref());
        let command = match Follow::due(&held.terms, &held.phase, now) {
            Due::Now(command) => command,
            Due::At(at) => return Ok(self.not_yet(held, at.since(now))),
        };
        if let Some(turn) = self.refresh(held, now).await? {
            return Ok(turn);
        }
        let began = self.ports.clock.monotonic();
        let performed = self.perform(held, command.clone()).await?;
        let took = self.ports.clock.monotonic().saturating_sub(began);
        self.adapt(held, &command, &performed, took);
        let turn = self.conclude(held, performed).await?;
        // An empty page right after items may have more items behind it.
        let items_open = held.tally.unsettled > 0 && held.items_checked.is_none();
        Ok(if turn == Turn::NotDue && items_open { Turn::Advanced } else { turn })
    }

    fn not_yet(&self, held: &Held, left: Duration) -> Turn {
        match &held.phase {
            Phase::Halted(halted) => {
                Turn::Halted(halted.code.clone(), held.health.text.clone(), left)
            }
            Phase::Opening(_) | Phase::Tailing(_) => Turn::NotDue,
        }
    }

    /// Looks now and then whether an operator changed the run or the rules.
    async fn refresh(&self, held: &mut Held, now: Timestamp) -> Result<Option<Turn>, PortError> {
        let (then, _) = held.said;
        if now.since(then) < self.settings.idle_every {
            return Ok(None);
        }
        let Some(pulse) = self.ports.ledger.pulse(&held.scope, held.procedure).await? else {
            return Ok(Some(Turn::ClaimLost));
        };
        held.said = (pulse.now, self.ports.clock.monotonic());
        held.tally = pulse.tally;
        held.items_checked = Some(pulse.next_due);
        if pulse.rules != held.terms.rules {
            return self.reload(held, Lost::Rules).await.map(Some);
        }
        if pulse.run_version != held.version {
            return self.reload(held, Lost::RunVersion).await.map(Some);
        }
        Ok(None)
    }

    /// Commits what follows from what was seen.
    async fn conclude(&self, held: &mut Held, performed: Performed) -> Result<Turn, PortError> {
        let Performed { seen, records, failed, newest } = performed;
        let now = held.now(self.ports.clock.as_ref());
        let halted_before = matches!(held.phase, Phase::Halted(_));
        let health = match &seen {
            Observation::Refused(_) => held.health.clone(),
            Observation::Opened(_)
            | Observation::TookOver { .. }
            | Observation::Registered(_)
            | Observation::Armed
            | Observation::Page(_)
            | Observation::Redelivered(_)
            | Observation::Isolated(_) => RunHealth::default(),
        };
        let step = Follow::on(&held.terms, held.phase.clone(), seen, now).map_err(|misplaced| {
            PortError::new("take an observation", FailureClass::Terminal, Code::UNEXPECTED)
                .caused_by(misplaced)
        })?;
        let checkpoint = Checkpoint { step, health, delivered: records };
        let committed = held.commit(&self.ports, checkpoint).await?;
        let turn = match committed {
            None => Turn::NotDue,
            Some(Committed::Landed(..)) => Turn::Advanced,
            Some(Committed::Lost(lost)) => return self.reload(held, lost).await,
        };
        if records + failed > 0 {
            let cursor = held.phase.tail().map_or(Version::new(0), |tail| tail.cursor);
            let newest = newest.unwrap_or(cursor);
            self.happened(&Happening::Delivered { records, failed, cursor, newest });
        } else if turn == Turn::NotDue {
            self.happened(&Happening::Idle);
        }
        if let (Phase::Halted(halted), false) = (&held.phase, halted_before) {
            let text = held.health.text.clone();
            self.happened(&Happening::Halted { code: halted.code.clone(), text });
        }
        Ok(turn)
    }

    /// After a lost race: somebody newer owns the scope, or only the run or the rules moved.
    async fn reload(&self, held: &mut Held, lost: Lost) -> Result<Turn, PortError> {
        held.reader = None;
        match lost {
            Lost::Lease | Lost::Fence | Lost::Run => return Ok(Turn::ClaimLost),
            Lost::RunVersion => {}
            Lost::Rules => match self.rules_in_force().await? {
                Some(record) => held.terms.rules = record.rules.number,
                None => return Ok(Turn::ClaimLost),
            },
        }
        let Some(run) = self.ports.ledger.load(&held.scope, held.procedure).await? else {
            return Ok(Turn::ClaimLost);
        };
        held.run = run.id;
        held.version = run.version;
        held.phase = from_json(&run.phase)?;
        held.health = run.health;
        held.items_checked = None;
        Ok(Turn::Advanced)
    }

    /// Pages grow while they are quick and full, and shrink when they are slow.
    fn adapt(&self, held: &mut Held, command: &Command, done: &Performed, took: Duration) {
        const QUICK: Duration = Duration::from_millis(100);
        const SLOW: Duration = Duration::from_millis(1_000);
        let Command::Deliver { rows_max, .. } = command else { return };
        if *rows_max < held.terms.page_rows {
            return;
        }
        if took > SLOW {
            held.rows = (held.rows / 2).max(1);
        } else if took < QUICK && done.records >= u64::from(held.rows) {
            held.rows = held.rows.saturating_mul(2).min(limits::PAGE_ROWS_MAX);
        }
    }

    /// Trouble of a port: retried, given way to, or an operator's.
    pub(crate) async fn trouble(&mut self, error: PortError) -> Turn {
        let text = limits::bounded(&error.chain()).to_owned();
        let code = error.code.clone();
        let attempts = self.held.as_ref().map_or(0, |held| held.health.attempts);
        let draw = self.ports.entropy.draw();
        let policy = &self.settings.trouble;
        let scope = &self.pipeline.scope;
        tracing::warn!(%scope, %code, class = ?error.class, error = text, "trouble");
        match decide(error.class, policy, attempts, draw, error.retry_after) {
            Decision::GiveWay => {
                let again_in = self.settings.lease_ttl / 3;
                self.happened(&Happening::Lost);
                self.give_back().await;
                Turn::Retry { code, text, again_in }
            }
            Decision::Again(again_in) => {
                self.happened(&Happening::Trouble {
                    code: code.clone(),
                    text: text.clone(),
                    again_in,
                });
                self.note(code.clone(), text.clone(), Some(again_in)).await;
                Turn::Retry { code, text, again_in }
            }
            Decision::Halt => self.halt(code, text).await,
        }
    }

    async fn halt(&mut self, code: Code, text: String) -> Turn {
        let again_in = self.settings.halted_recheck;
        let Some(mut held) = self.held.take() else {
            self.happened(&Happening::Halted { code: code.clone(), text: text.clone() });
            return Turn::Halted(code, text, again_in);
        };
        held.reader = None;
        held.health = RunHealth { code: Some(code.clone()), text: text.clone(), ..held.health };
        let seen = Observation::Refused(code.clone());
        let performed = Performed::fact(seen);
        let turn = self.conclude(&mut held, performed).await;
        self.held = Some(held);
        match turn {
            Ok(Turn::ClaimLost) => Turn::ClaimLost,
            Ok(_) => Turn::Halted(code, text, again_in),
            // The ledger is in trouble as well.
            Err(error) => {
                let text = error.chain();
                Turn::Retry { code: error.code, text, again_in }
            }
        }
    }

    /// Writes trouble down for `status`, unless the ledger itself is the trouble.
    async fn note(&mut self, code: Code, text: String, again_in: Option<Duration>) {
        let Some(mut held) = self.held.take() else { return };
        held.reader = None;
        let now = held.now(self.ports.clock.as_ref());
        let health = RunHealth {
            attempts: held.health.attempts.saturating_add(1),
            code: Some(code),
            text,
            due_at: again_in.map(|length| now.plus(length)),
        };
        let step = truekeep_core::procedure::Step { next: held.phase.clone(), writes: Vec::new() };
        let checkpoint = Checkpoint { step, health: health.clone(), delivered: 0 };
        match held.commit(&self.ports, checkpoint).await {
            Ok(Some(Committed::Lost(lost))) => {
                if let Err(error) = self.reload(&mut held, lost).await {
                    tracing::warn!(code = %error.code, error = error.chain(), "reload");
                }
            }
            Ok(_) => {}
            Err(error) => {
                held.health = health;
                tracing::warn!(code = %error.code, error = error.chain(), "note trouble");
            }
        }
        self.held = Some(held);
    }
}
