//! Wishing for a reconcile or a rebuild, and how it stands: the run is a row of the ledger that whichever worker
//! holds the lease works on.

use serde::Serialize;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Entropy, Ledger, NewRun, Opened, ProcedureKind, Run, RunState};
use truekeep_core::reconcile::{Report, Stored, Terms};
use truekeep_core::{PipelineName, ScopeId};

/// A reconcile that was wished for.
#[derive(Debug, Clone)]
pub struct Wish {
    scope: ScopeId,
    key: String,
}

/// How a reconcile stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The pipeline.
    pub pipeline: String,
    /// What it does: `reconcile` or `rebuild`.
    pub procedure: &'static str,
    /// The phase it is in, or ended in.
    pub phase: &'static str,
    /// Why it stopped, if it did.
    pub code: Option<Code>,
    /// Whether it goes on.
    pub active: bool,
    /// How often it began anew because the rules had changed.
    pub restarts: u32,
    /// What was found so far.
    pub report: Report,
    /// What it works under.
    #[serde(skip)]
    pub terms: Terms,
}

impl Wish {
    /// Wishes for a reconcile under these terms; joins the one that is under way, if there is one,
    /// whatever its terms are.
    ///
    /// # Errors
    /// The ledger's; `PIPELINE_UNKNOWN` for a pipeline that was never announced.
    pub async fn make(
        ledger: &dyn Ledger,
        entropy: &dyn Entropy,
        pipeline: &PipelineName,
        terms: Terms,
    ) -> Result<Self, PortError> {
        let scope = ScopeId::whole(pipeline.clone());
        let id = entropy.run_id();
        let new = NewRun {
            key: format!("wish-{id}"),
            id,
            scope: scope.clone(),
            procedure: ProcedureKind::Reconcile,
            phase: serde_json::to_string(&Stored::first(terms)).map_err(unreadable)?,
        };
        match ledger.open_run(&new).await? {
            Opened::Run(run) | Opened::Conflict(run) => Ok(Self { scope, key: run.key }),
        }
    }

    /// How it stands.
    ///
    /// # Errors
    /// The ledger's, and `UNEXPECTED` for a phase that this program cannot read.
    pub async fn standing(
        &self,
        ledger: &dyn Ledger,
        entropy: &dyn Entropy,
    ) -> Result<Standing, PortError> {
        // Opening a run under a key that is known finds it, ended or not.
        let known = NewRun {
            id: entropy.run_id(),
            scope: self.scope.clone(),
            procedure: ProcedureKind::Reconcile,
            key: self.key.clone(),
            phase: serde_json::to_string(&Stored::first(Terms::default())).map_err(unreadable)?,
        };
        match ledger.open_run(&known).await? {
            Opened::Run(run) | Opened::Conflict(run) => Standing::of(&run),
        }
    }
}

impl Standing {
    /// How a run of reconcile stands.
    ///
    /// # Errors
    /// `UNEXPECTED` for a phase that this program cannot read.
    pub fn of(run: &Run) -> Result<Self, PortError> {
        let stored: Stored = serde_json::from_str(&run.phase).map_err(unreadable)?;
        let code = match &run.state {
            RunState::Active | RunState::Succeeded => None,
            RunState::Failed(code) | RunState::Stopped(code) => Some(code.clone()),
        };
        Ok(Self {
            pipeline: run.scope.pipeline().to_string(),
            procedure: if stored.terms.rebuild.is_some() { "rebuild" } else { "reconcile" },
            phase: stored.phase.name(),
            code,
            active: run.state == RunState::Active,
            restarts: stored.terms.restarts,
            report: stored.phase.report().cloned().unwrap_or_default(),
            terms: stored.terms,
        })
    }

    /// Whether the run does what these terms ask for. If it was joined and does not, the wish is
    /// made again when it has ended.
    pub fn serves(&self, terms: &Terms) -> bool {
        let Terms { confirmed, deep, rebuild, .. } = self.terms;
        confirmed >= terms.confirmed && deep >= terms.deep && rebuild >= terms.rebuild
    }
}

fn unreadable(error: serde_json::Error) -> PortError {
    PortError::new("read a run's phase", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
}
