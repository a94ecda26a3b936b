//! What a ledger knows of a pipeline: its certificate, its run and who holds it. Reads the ledger only.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use truekeep_core::certificate::{Certificate, State};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::follow::{Command, Follow, Phase, SourceWentBack, Terms};
use truekeep_core::lease::{self, Lease};
use truekeep_core::ports::{
    Archive, Consumer, Items, Leases, Ledger, Operations, PipelineRecord, PipelineState,
    ProcedureKind, Run,
};
use truekeep_core::procedure::{Due, Procedure};
use truekeep_core::retry::RetryPolicy;
use truekeep_core::{LedgerId, Moment, PipelineName, Place, ScopeId, Timestamp, limits};

use crate::reconcile::Standing;
use crate::removal::removed_at;

/// The ports of one ledger.
#[derive(Debug, Clone)]
pub struct LedgerPorts {
    /// Runs, rules and checkpoints.
    pub ledger: Arc<dyn Ledger>,
    /// Who may try.
    pub leases: Arc<dyn Leases>,
    /// Deliveries that did not go straight through.
    pub items: Arc<dyn Items>,
    /// What readers ask for.
    pub archive: Arc<dyn Archive>,
    /// What operators decide.
    pub operations: Arc<dyn Operations>,
    /// Whether this is an empty one that stands in for a ledger that is not there yet.
    pub stands_in: bool,
}

impl LedgerPorts {
    /// The ports of something that is all of them.
    pub fn of<L: Ledger + Leases + Items + Archive + Operations + 'static>(ledger: L) -> Self {
        let ledger = Arc::new(ledger);
        Self {
            leases: Arc::clone(&ledger) as Arc<dyn Leases>,
            items: Arc::clone(&ledger) as Arc<dyn Items>,
            archive: Arc::clone(&ledger) as Arc<dyn Archive>,
            operations: Arc::clone(&ledger) as Arc<dyn Operations>,
            ledger,
            stands_in: false,
        }
    }
}

/// Everything a ledger knows of one pipeline, read together.
#[derive(Debug, Clone)]
pub struct Known {
    /// Which ledger.
    pub ledger: LedgerId,
    /// The ledger's now.
    pub now: Timestamp,
    /// The one scope of the pipeline.
    pub scope: ScopeId,
    /// The pipeline with the rules in force, once it was announced.
    pub record: Option<PipelineRecord>,
    /// What readers may rely on.
    pub certificate: Option<Certificate>,
    /// The run that follows.
    pub run: Option<Run>,
    /// Where that run is.
    pub phase: Option<Phase>,
    /// How the newest reconcile stands.
    pub reconcile: Option<Standing>,
    /// The lease, in force or not.
    pub lease: Option<Lease>,
    /// Whether there is no pipeline because it was removed: only an operator makes it anew.
    pub removed: bool,
}

impl Known {
    /// Reads it.
    ///
    /// # Errors
    /// The ledger's, and `UNEXPECTED` for a phase that this program cannot read.
    pub async fn read(ports: &LedgerPorts, name: &PipelineName) -> Result<Self, PortError> {
        let scope = ScopeId::whole(name.clone());
        let record = ports.ledger.pipeline(name).await?;
        let certificate = ports.archive.certificate(&scope).await?;
        let run = ports.ledger.load(&scope, ProcedureKind::Follow).await?;
        let phase = run.as_ref().map(phase).transpose()?;
        let reconcile = ports.ledger.load(&scope, ProcedureKind::Reconcile).await?;
        let reconcile = reconcile.as_ref().map(Standing::of).transpose()?;
        let (lease, now) = match record {
            Some(_) => ports.leases.holder(&scope).await?,
            None => (None, ports.ledger.now().await?),
        };
        let ledger = ports.ledger.identity().await?;
        let removed = record.is_none() && removed_at(ports, name).await?.is_some();
        Ok(Self { ledger, now, scope, record, certificate, run, phase, reconcile, lease, removed })
    }

    /// What the certificate says; one of other rules than those in force counts as stale, and a
    /// first delivery that is halted as failed. `None` if the ledger does not know the pipeline.
    pub fn state(&self) -> Option<State> {
        let (record, certificate) = (self.record.as_ref()?, self.certificate.as_ref()?);
        let halted = matches!(self.phase, Some(Phase::Halted(_)));
        Some(match certificate.state {
            State::Complete | State::Partial if certificate.rules != record.rules.number => {
                State::Stale
            }
            // Nothing is delivered, and there is nothing good to show.
            State::Running if halted => State::Failed,
            state => state,
        })
    }

    /// Whether it is worked on, paused, being removed or removed, in a word; `unknown` if the ledger
    /// never knew it.
    pub fn standing(&self) -> &'static str {
        match self.record.as_ref().map(|record| record.state) {
            None if self.removed => "removed",
            None => "unknown",
            Some(PipelineState::Working) => "working",
            Some(PipelineState::Paused) => "paused",
            Some(PipelineState::Removing(_)) => "removing",
        }
    }

    /// Why nobody may work on it, if an operator has decided so.
    pub fn closed(&self) -> Option<Code> {
        match self.record.as_ref().map(|record| record.state) {
            None if self.removed => Some(Code::PIPELINE_REMOVED),
            None | Some(PipelineState::Working) => None,
            Some(PipelineState::Paused) => Some(Code::PIPELINE_PAUSED),
            Some(PipelineState::Removing(_)) => Some(Code::PIPELINE_REMOVED),
        }
    }

    /// The moment that the certificate vouches for.
    pub fn moment(&self) -> Option<&Moment> {
        self.certificate.as_ref().and_then(|certificate| certificate.moment.as_ref())
    }

    /// Who we are in the source and in the sink, once the pipeline was announced.
    pub fn consumer(&self) -> Option<Consumer> {
        let pipeline = self.record.as_ref()?.incarnation.clone();
        Some(Consumer { ledger: self.ledger.clone(), pipeline })
    }

    /// Every change before it was delivered under the rules in force, or is an item.
    pub fn cursor(&self) -> Place {
        let rules = self.record.as_ref().map(|record| record.rules.number);
        let tail = self.phase.as_ref().and_then(Phase::tail);
        let tail = tail.filter(|tail| Some(tail.rules) == rules);
        tail.map_or(Place::START, |tail| tail.cursor.clone())
    }

    /// The lease, if somebody holds it now. `ttl` is the longest that a lease may run.
    pub fn holder(&self, ttl: Duration) -> Option<&Lease> {
        self.lease.as_ref().filter(|held| lease::in_force(held, self.now, ttl))
    }
}

fn phase(run: &Run) -> Result<Phase, PortError> {
    serde_json::from_str(&run.phase).map_err(|error| {
        PortError::new("read a run's phase", FailureClass::Terminal, Code::UNEXPECTED)
            .caused_by(error)
    })
}

/// A pipeline's state as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineStatus {
    /// Its name.
    pub pipeline: String,
    /// `unknown`, or a certificate's state.
    pub state: &'static str,
    /// `working`, `paused`, `removing`, `removed` or `unknown`.
    pub standing: &'static str,
    /// Why it is not complete.
    pub code: Option<String>,
    /// The moment that is vouched for.
    pub moment: Option<String>,
    /// When the certificate last changed, by the ledger's clock.
    pub changed_at: Option<String>,
    /// Records that are parked.
    pub parked: u64,
    /// Records that are still being tried.
    pub unsettled: u64,
    /// The number of the rules in force.
    pub rules: Option<u64>,
    /// Records delivered by the run so far.
    pub delivered: u64,
    /// Where the run is: `opening`, `tailing`, `halted`.
    pub phase: Option<&'static str>,
    /// Every change before this place was delivered.
    pub cursor: String,
    /// How far the reconcile is that is under way.
    pub reconcile: Option<Standing>,
    /// What ails the run.
    pub health: Option<Health>,
    /// Who holds the lease.
    pub holder: Option<Holder>,
}

/// The trouble a run is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The code of the last failure.
    pub code: String,
    /// Its text.
    pub text: String,
    /// Failures in a row.
    pub attempts: u32,
    /// When it is tried again.
    pub due_at: Option<String>,
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The process.
    pub holder: String,
    /// When it ends unless it is renewed, by the ledger's clock.
    pub until: String,
    /// Orders the holders.
    pub fence: u64,
}

/// The word for a state; `unknown` where there is none.
pub fn word(state: Option<State>) -> &'static str {
    state.map_or("unknown", State::as_str)
}

impl PipelineStatus {
    /// The state, of what was read; `ttl` is the longest that a lease may run.
    pub fn of(known: &Known, ttl: Duration) -> Self {
        let certificate = known.certificate.as_ref();
        let health = known.run.as_ref().map(|run| &run.health);
        let halted = match &known.phase {
            Some(Phase::Halted(halted)) => Some(&halted.code),
            Some(Phase::Opening(_) | Phase::Tailing(_) | Phase::Repairing(_)) | None => None,
        };
        let of_certificate = certificate.and_then(|certificate| certificate.code.as_ref());
        let removed = known.removed.then_some(&Code::PIPELINE_REMOVED);
        Self {
            pipeline: known.scope.pipeline().to_string(),
            state: word(known.state()),
            standing: known.standing(),
            code: of_certificate.or(halted).or(removed).map(Code::to_string),
            moment: known.moment().map(Moment::to_string),
            changed_at: certificate.map(|certificate| certificate.changed_at.to_string()),
            parked: certificate.map_or(0, |certificate| certificate.parked),
            unsettled: certificate.map_or(0, |certificate| certificate.unsettled),
            rules: known.record.as_ref().map(|record| record.rules.number.get()),
            delivered: known.run.as_ref().map_or(0, |run| run.delivered),
            phase: known.phase.as_ref().map(Phase::name),
            cursor: known.cursor().to_string(),
            reconcile: known.reconcile.clone().filter(|standing| standing.active),
            health: health.and_then(|health| {
                Some(Health {
                    code: health.code.as_ref()?.to_string(),
                    text: health.text.clone(),
                    attempts: health.attempts,
                    due_at: health.due_at.map(|at| at.to_string()),
                })
            }),
            holder: known.holder(ttl).map(|lease| Holder {
                holder: lease.holder.to_string(),
                until: lease.expires_at.to_string(),
                fence: lease.fence.get(),
            }),
        }
    }
}

/// What is due in a run, in words: the same function that the worker asks.
pub fn due(known: &Known, page_rows: u32) -> String {
    let (Some(record), Some(consumer), Some(phase)) =
        (&known.record, known.consumer(), &known.phase)
    else {
        let why = if known.removed { "it was removed" } else { "no worker has begun" };
        return format!("nothing: {why}");
    };
    match record.state {
        PipelineState::Working => {}
        PipelineState::Paused => return "nothing: an operator has paused it".to_owned(),
        PipelineState::Removing(_) => return "nothing: it is being removed".to_owned(),
    }
    let terms = Terms {
        rules: record.rules.number,
        consumer,
        page_rows,
        delivery: RetryPolicy::DELIVERY,
        register_every: limits::REGISTER_EVERY,
        halted_recheck: limits::HALTED_RECHECK,
        source_went_back: SourceWentBack::Halt,
    };
    match Follow::due(&terms, phase, known.now) {
        Due::At(at) => format!("look again at {at}"),
        Due::Now(Command::Open) => {
            "look whether source, sink and ledger belong together".to_owned()
        }
        Due::Now(Command::Register(registration)) => {
            format!("tell the source that everything up to {} was consumed", registration.passed)
        }
        Due::Now(Command::BeginAgain { above }) => {
            format!("let the source's numbers go on above {above}: it went back")
        }
        Due::Now(Command::Fill) => "number the next rows of the source anew".to_owned(),
        Due::Now(Command::Arm) => "mark the next page as one that may kill a worker".to_owned(),
        Due::Now(Command::Deliver { after, rows_max }) => {
            format!("deliver at most {rows_max} changes after {after}, once there are any")
        }
        Due::Now(Command::Isolate { after }) => {
            format!("park the record after {after}: it killed too many workers")
        }
    }
}
