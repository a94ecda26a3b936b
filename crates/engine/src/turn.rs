//! A turn: what is due is performed, what was seen is committed.
//!
//! Invariants: P1, P2, G1.

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::{Follow, Observation, Phase};
use truekeep_core::guard::Lost;
use truekeep_core::ports::{Committed, Pulse};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::{HolderId, Timestamp, limits};

use crate::commit::{Checkpoint, from_json};
use crate::observer::Happening;
use crate::perform::{Performed, Setback};
use crate::scope::{Held, Runner};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Nobody may work on it, or not under this configuration.
    Inactive(Code),
    /// Somebody else has the lease: who, until when, and how long that is.
    HeldBy(HolderId, Timestamp, Duration),
    /// The lease, or a race, was lost; nothing was written.
    ClaimLost,
    /// Something was done, and more may be due at once.
    Advanced,
    /// Nothing is due until something changes.
    NotDue,
    /// More is to come that could not be read yet; nothing says when.
    Deferred,
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
    /// One turn under a lease that is ours.
    pub(crate) async fn turn(&mut self) -> Turn {
        let Some(mut held) = self.held.take() else { return Turn::ClaimLost };
        let before = held.cursor().cloned();
        let turn = match self.turn_of(&mut held).await {
            Err(Setback::Lost(lost)) => self.reload(&mut held, lost).await,
            Err(Setback::Trouble(error)) => Err(error),
            Ok(turn) => Ok(turn),
        };
        if held.cursor() != before.as_ref() || matches!(turn, Ok(Turn::NotDue)) {
            self.failures = 0;
        }
        self.held = Some(held);
        match turn {
            Ok(turn) => turn,
            Err(error) => self.trouble(error).await,
        }
    }

    async fn turn_of(&mut self, held: &mut Held) -> Result<Turn, Setback> {
        if let Some(after_crash) = held.took_over {
            let health = held.health.clone();
            let told = Performed::fact(Observation::TookOver { after_crash }).ailing(health);
            let turn = self.conclude(held, told).await?;
            // What a first look changes, or does not, is nothing to wait for.
            return Ok(if turn == Turn::NotDue { Turn::Advanced } else { turn });
        }
        // What an operator wants is looked for whether anything is due or not.
        if let Some(turn) = self.refresh(held).await? {
            return Ok(turn);
        }
        let now = held.now(self.ports.clock.as_ref());
        let command = match Follow::due(&held.terms, &held.phase, now) {
            Due::Now(command) => command,
            Due::At(at) => return Ok(self.not_yet(held, at.since(now))),
        };
        let began = self.ports.clock.monotonic();
        let performed = self.perform(held, command.clone()).await?;
        let took = self.ports.clock.monotonic().saturating_sub(began);
        self.adapt(held, &performed, took);
        let more = performed.more;
        let opened = matches!(performed.seen, Observation::Opened(_));
        let numbering = matches!(performed.seen, Observation::Filled { done: false });
        let turn = self.conclude(held, performed).await?;
        if opened {
            if let Some(lost) = self.find_beside(held).await? {
                return Ok(lost);
            }
            self.distrust_beside(held);
        }
        let turn = self.beside(held, turn).await?;
        Ok(match turn {
            Turn::NotDue if numbering => Turn::Advanced,
            Turn::NotDue if more => Turn::Deferred,
            // The feed had its turn; the next one is the items'.
            Turn::NotDue if held.items_due(now) => Turn::Advanced,
            turn => turn,
        })
    }

    fn not_yet(&self, held: &Held, left: Duration) -> Turn {
        match &held.phase {
            Phase::Halted(halted) => {
                Turn::Halted(halted.code.clone(), held.why_halted(&halted.code), left)
            }
            Phase::Opening(_) | Phase::Tailing(_) | Phase::Repairing(_) => Turn::NotDue,
        }
    }

    /// Looks now and then whether an operator paused or removed the pipeline, or changed the run or
    /// the rules.
    async fn refresh(&mut self, held: &mut Held) -> Result<Option<Turn>, PortError> {
        let (then, _) = held.said;
        let now = held.now(self.ports.clock.as_ref());
        if now.since(then) < self.settings.idle_every {
            return Ok(None);
        }
        let Some(pulse) = self.look(held).await? else { return Ok(Some(Turn::ClaimLost)) };
        if pulse.paused {
            return Ok(Some(Turn::Inactive(Code::PIPELINE_PAUSED)));
        }
        if pulse.rules != held.terms.rules {
            return self.reload(held, Lost::Rules).await.map(Some);
        }
        if pulse.run_version != held.version {
            return self.reload(held, Lost::RunVersion).await.map(Some);
        }
        self.find_beside(held).await
    }

    /// Takes the ledger's time and the scope's items as they are. `None` if the run is gone.
    pub(crate) async fn look(&self, held: &mut Held) -> Result<Option<Pulse>, PortError> {
        let pulse = self.ports.ledger.pulse(&held.scope, held.procedure).await?;
        if let Some(pulse) = &pulse {
            held.said = (pulse.now, self.ports.clock.monotonic());
            held.tally = pulse.tally;
            held.items_checked = Some(pulse.next_due);
        }
        Ok(pulse)
    }

    /// Commits what follows from what was seen.
    pub(crate) async fn conclude(
        &self,
        held: &mut Held,
        performed: Performed,
    ) -> Result<Turn, PortError> {
        let Performed { seen, records, failed, newest, health, more: _ } = performed;
        let now = held.now(self.ports.clock.as_ref());
        let halted_before = matches!(held.phase, Phase::Halted(_));
        let settles = matches!(seen, Observation::Redelivered(_));
        let step = Follow::on(&held.terms, held.phase.clone(), seen, now).map_err(|misplaced| {
            PortError::new("take an observation", FailureClass::Terminal, Code::UNEXPECTED)
                .caused_by(misplaced)
        })?;
        if settles && matches!(step.next, Phase::Tailing(_)) {
            held.claimed.clear();
        }
        let checkpoint = Checkpoint { step, health, delivered: records };
        let committed = held.commit(&self.ports, checkpoint).await?;
        let turn = match committed {
            None => Turn::NotDue,
            Some(Committed::Landed(..)) => Turn::Advanced,
            Some(Committed::Lost(lost)) => return self.reload(held, lost).await,
        };
        held.took_over = None;
        held.unpruned = held.unpruned.saturating_add(records);
        if records + failed > 0 {
            let cursor = held.cursor().cloned().unwrap_or_default();
            let newest = newest.unwrap_or_else(|| cursor.passed.clone());
            self.happened(&Happening::Delivered { records, failed, cursor, newest });
        } else if turn == Turn::NotDue && newest.is_some() {
            // Only the feed says that nothing is due.
            self.happened(&Happening::Idle);
        }
        if let (Phase::Halted(halted), false) = (&held.phase, halted_before) {
            let text = held.why_halted(&halted.code);
            self.happened(&Happening::Halted { code: halted.code.clone(), text });
        }
        Ok(turn)
    }

    /// After a lost race: somebody newer owns the scope, or only the run or the rules moved.
    pub(crate) async fn reload(&self, held: &mut Held, lost: Lost) -> Result<Turn, PortError> {
        held.reader = None;
        match lost {
            Lost::Lease | Lost::Fence | Lost::Run => return Ok(Turn::ClaimLost),
            Lost::RunVersion => {}
            Lost::Rules => match self.workable().await? {
                Ok(record) => held.terms.rules = record.rules.number,
                Err(_) => return Ok(Turn::ClaimLost),
            },
        }
        let run = self.ports.ledger.load(&held.scope, held.procedure).await?;
        let (Some(run), Some(_)) = (run, self.look(held).await?) else {
            return Ok(Turn::ClaimLost);
        };
        held.phase = from_json(&run.phase)?;
        held.run = run.id;
        held.version = run.version;
        held.health = run.health;
        Ok(Turn::Advanced)
    }

    /// Pages grow while they are not the last and one of twice the size is not slow either, and
    /// shrink when they are slow. A wait for a lock or a disk costs a small page as much as a large
    /// one, and a page that passed many outdated numbers has few records: whoever is behind does not
    /// stay with small ones because of either.
    fn adapt(&self, held: &mut Held, done: &Performed, took: Duration) {
        const SLOW: Duration = Duration::from_millis(1_000);
        let probing = held.phase.tail().is_some_and(|tail| tail.probe.is_some());
        if probing || !matches!(done.seen, Observation::Page(_)) {
            return;
        }
        if took > SLOW {
            held.rows = (held.rows / 2).max(1);
        } else if took < SLOW / 2 && held.reader.is_some() {
            held.rows = held.rows.saturating_mul(2).min(limits::PAGE_ROWS_MAX);
        }
    }
}
