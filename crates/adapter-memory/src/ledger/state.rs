//! What a ledger holds, as plain values, and what opens runs and puts rules in force.

use std::collections::BTreeMap;
use std::time::Duration;

use truekeep_core::certificate::{Certificate, State, Tally};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::guard::Held;
use truekeep_core::lease::{Lease, in_force};
use truekeep_core::ports::{
    Announced, Announcement, Event, Item, ItemState, NewRun, Opened, PipelineRecord, ProcedureKind,
    Pulse, RulesRecord, Run, RunHealth, RunState,
};
use truekeep_core::{
    CommitToken, Epoch, Fence, Incarnation, Key, LeaseToken, PipelineName, RulesNumber, RunVersion,
    ScopeId, Timestamp,
};

/// Everything a ledger holds; a clone is a backup.
#[derive(Debug, Clone, Default)]
pub struct LedgerState {
    pub(super) pipelines: BTreeMap<PipelineName, Pipeline>,
    pub(super) leases: BTreeMap<ScopeId, LeaseRecord>,
    pub(super) scopes: BTreeMap<ScopeId, Scope>,
}

#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    incarnation: Incarnation,
    /// By number less one.
    rules: Vec<RulesRecord>,
    /// The greatest fence that was given.
    pub(super) fence: Fence,
}

/// A lease that was taken and not released.
#[derive(Debug, Clone)]
pub(super) struct LeaseRecord {
    pub(super) lease: Lease,
    /// The length it was last taken or renewed with.
    pub(super) ttl: Duration,
}

impl LeaseRecord {
    pub(super) fn in_force(&self, now: Timestamp) -> bool {
        in_force(&self.lease, now, self.ttl)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) certificate: Certificate,
    /// In the order of their opening.
    pub(super) runs: Vec<RunRecord>,
    pub(super) items: BTreeMap<Key, ItemRecord>,
    /// By time, then in the order of their coming.
    pub(super) events: Vec<(Timestamp, Event)>,
}

#[derive(Debug, Clone)]
pub(super) struct RunRecord {
    /// Its `token` is unused: see `landed`.
    pub(super) run: Run,
    /// The last commit and the version it made. An operator's wish moves the version past it.
    pub(super) landed: Option<(CommitToken, RunVersion)>,
}

#[derive(Debug, Clone)]
pub(super) struct ItemRecord {
    pub(super) item: Item,
    /// The lease under which it is being tried.
    pub(super) lease: Option<LeaseToken>,
}

impl RunRecord {
    /// A failed run stays open: it blocks another until it is reopened. A succeeded one is gone.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.run.state, RunState::Active | RunState::Failed(_))
    }

    /// The run with the token of the commit that made its version.
    pub(super) fn run(&self) -> Run {
        let token = match &self.landed {
            Some((token, version)) if *version == self.run.version => Some(token.clone()),
            _ => None,
        };
        Run { token, ..self.run.clone() }
    }
}

impl Scope {
    pub(super) fn tally(&self) -> Tally {
        let parked = self.items.values().filter(|i| i.item.state == ItemState::Parked).count();
        Tally { parked: parked as u64, unsettled: (self.items.len() - parked) as u64 }
    }

    pub(super) fn open(&mut self, procedure: ProcedureKind) -> Option<&mut RunRecord> {
        self.runs.iter_mut().find(|run| run.run.procedure == procedure && run.is_open())
    }
}

impl LedgerState {
    pub(super) fn pipeline(&self, name: &PipelineName) -> Option<PipelineRecord> {
        let pipeline = self.pipelines.get(name)?;
        Some(PipelineRecord {
            name: name.clone(),
            incarnation: pipeline.incarnation.clone(),
            rules: pipeline.rules.last()?.clone(),
        })
    }

    pub(super) fn announce(&mut self, new: &Announcement, now: Timestamp) -> Announced {
        let found = self.pipeline(&new.pipeline);
        if found.as_ref().map(|record| record.rules.number) != new.replaces {
            return Announced::Outpaced(found);
        }
        let rules = RulesRecord {
            number: new.replaces.unwrap_or_default().next(),
            fingerprint: new.fingerprint.clone(),
            text: new.text.clone(),
            announced_at: now,
        };
        let pipeline = self.pipelines.entry(new.pipeline.clone()).or_insert_with(|| Pipeline {
            incarnation: new.incarnation.clone(),
            rules: Vec::new(),
            fence: Fence::default(),
        });
        pipeline.rules.push(rules.clone());
        let incarnation = pipeline.incarnation.clone();
        for (_, scope) in self.scopes.iter_mut().filter(|(id, _)| *id.pipeline() == new.pipeline) {
            let certificate = &mut scope.certificate;
            if matches!(certificate.state, State::Complete | State::Partial) {
                certificate.state = State::Stale;
                certificate.code = Some(Code::RULES_CHANGED);
                certificate.changed_at = now;
            }
            for run in scope.runs.iter_mut().filter(|run| run.is_open()) {
                run.run.epoch = run.run.epoch.next();
            }
        }
        Announced::InForce(PipelineRecord { name: new.pipeline.clone(), incarnation, rules })
    }

    pub(super) fn open_run(&mut self, new: &NewRun, now: Timestamp) -> Result<Opened, PortError> {
        let rules = self.rules("open a run", new.scope.pipeline())?;
        let scope = self.scopes.entry(new.scope.clone()).or_insert_with(|| Scope {
            certificate: Certificate::never(rules, now),
            runs: Vec::new(),
            items: BTreeMap::new(),
            events: Vec::new(),
        });
        let of_procedure = || scope.runs.iter().filter(|run| run.run.procedure == new.procedure);
        if let Some(same) = of_procedure().find(|run| run.run.key == new.key) {
            return Ok(Opened::Run(same.run()));
        }
        if let Some(other) = of_procedure().find(|run| run.is_open()) {
            return Ok(Opened::Conflict(other.run()));
        }
        let epoch = scope.runs.iter().map(|run| run.run.epoch).max().unwrap_or_default();
        let run = Run {
            id: new.id.clone(),
            scope: new.scope.clone(),
            procedure: new.procedure,
            key: new.key.clone(),
            epoch: Epoch::next(epoch),
            version: RunVersion::default(),
            phase: new.phase.clone(),
            state: RunState::Active,
            health: RunHealth::default(),
            token: None,
            delivered: 0,
        };
        scope.runs.push(RunRecord { run: run.clone(), landed: None });
        Ok(Opened::Run(run))
    }

    /// The open run of a scope.
    pub(super) fn open(&self, scope: &ScopeId, procedure: ProcedureKind) -> Option<&RunRecord> {
        let runs = &self.scopes.get(scope)?.runs;
        runs.iter().find(|run| run.run.procedure == procedure && run.is_open())
    }

    pub(super) fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
        now: Timestamp,
    ) -> Option<Pulse> {
        let run = self.open(scope, procedure)?;
        let rules = self.pipeline(scope.pipeline())?.rules.number;
        let scope = self.scopes.get(scope)?;
        let unsettled = scope.items.values().filter(|i| i.item.state != ItemState::Parked);
        Some(Pulse {
            run_version: run.run.version,
            rules,
            tally: scope.tally(),
            next_due: unsettled.map(|i| i.due_at(now)).min(),
            now,
        })
    }

    /// The rules in force.
    pub(super) fn rules(
        &self,
        operation: &'static str,
        pipeline: &PipelineName,
    ) -> Result<RulesNumber, PortError> {
        let record = self.pipeline(pipeline).ok_or_else(|| unknown(operation, pipeline))?;
        Ok(record.rules.number)
    }

    /// What the guard of a write to this scope is compared with.
    pub(super) fn held(
        &self,
        scope: &ScopeId,
        run_version: Option<RunVersion>,
        rules: RulesNumber,
        now: Timestamp,
    ) -> Held<'_> {
        let lease = self.leases.get(scope).filter(|record| record.in_force(now));
        Held {
            lease: lease.map(|record| (&record.lease.token, record.lease.fence)),
            run_version,
            rules,
        }
    }
}

pub(super) fn unknown(operation: &'static str, pipeline: &PipelineName) -> PortError {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_UNKNOWN)
        .detail(pipeline.to_string())
}
