//! What a ledger holds, as plain values, and what opens runs and puts rules in force.

use std::collections::BTreeMap;
use std::time::Duration;

use truekeep_core::certificate::{Certificate, State, Tally};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::guard::Held;
use truekeep_core::lease::{Lease, in_force};
use truekeep_core::ports::{
    Announced, Announcement, Event, Item, ItemState, NewRun, Opened, PipelineRecord, PipelineState,
    ProcedureKind, Pulse, RulesRecord, Run, RunHealth, RunState,
};
use truekeep_core::{
    CommitToken, Epoch, Fence, Key, LeaseToken, PipelineName, Revision, RulesNumber, RunVersion,
    ScopeId, Timestamp, Version, limits,
};

/// Everything a ledger holds; a clone is a backup.
#[derive(Debug, Clone, Default)]
pub struct LedgerState {
    pub(super) names: BTreeMap<PipelineName, Name>,
    pub(super) leases: BTreeMap<ScopeId, LeaseRecord>,
    pub(super) scopes: BTreeMap<ScopeId, Scope>,
    pub(super) history: History,
}

/// A pipeline's name. What its lives had is kept, so that nothing of it is given twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Name {
    /// None once it was removed.
    pub(super) life: Option<PipelineRecord>,
    /// The greatest rules number that was given.
    rules: RulesNumber,
    /// The greatest fence that was given.
    pub(super) fence: Fence,
    /// The newest version that the feeds of removed lives had.
    pub(super) newest: Version,
}

/// What happened, by scope. It outlives a pipeline.
#[derive(Debug, Clone, Default)]
pub(super) struct History(BTreeMap<ScopeId, Vec<(Timestamp, Event)>>);

impl History {
    /// By time, then in the order of their coming.
    pub(super) fn of(&self, scope: &ScopeId) -> &[(Timestamp, Event)] {
        self.0.get(scope).map_or(&[], Vec::as_slice)
    }

    pub(super) fn record(&mut self, scope: &ScopeId, event: &Event, now: Timestamp) {
        let event =
            Event { code: event.code.clone(), text: limits::bounded(&event.text).to_owned() };
        let events = self.0.entry(scope.clone()).or_default();
        let place = events.partition_point(|(at, _)| *at <= now);
        events.insert(place, (now, event));
        let old = events.iter().take_while(|(at, _)| now.since(*at) > limits::HISTORY_KEPT);
        let old = old.take(limits::HISTORY_PRUNED_MAX as usize).count();
        events.drain(..old);
    }
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

    /// Ends it for a reason. Its version moves: what its owner still commits is refused.
    pub(super) fn stop(&mut self, code: Code) {
        self.run.state = RunState::Stopped(code);
        self.run.version = self.run.version.next();
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

    /// What was vouched for is so no longer. What never was complete stays as it is.
    pub(super) fn outdate(&mut self, code: Code, now: Timestamp) {
        let certificate = &mut self.certificate;
        if matches!(certificate.state, State::Complete | State::Partial) {
            certificate.state = State::Stale;
            certificate.code = Some(code);
            certificate.changed_at = now;
        }
    }

    pub(super) fn open(&mut self, procedure: ProcedureKind) -> Option<&mut RunRecord> {
        self.runs.iter_mut().find(|run| run.run.procedure == procedure && run.is_open())
    }
}

impl LedgerState {
    pub(super) fn pipeline(&self, name: &PipelineName) -> Option<&PipelineRecord> {
        self.names.get(name)?.life.as_ref()
    }

    /// A pipeline that is not being removed.
    pub(super) fn alive(
        &self,
        operation: &'static str,
        name: &PipelineName,
    ) -> Result<&PipelineRecord, PortError> {
        let record = self.pipeline(name).ok_or_else(|| unknown(operation, name))?;
        match record.state {
            PipelineState::Working | PipelineState::Paused => Ok(record),
            PipelineState::Removing(_) => Err(removed(operation, name)),
        }
    }

    /// The scope, if the ledger knows it and nobody removes its pipeline.
    pub(super) fn scope(
        &mut self,
        operation: &'static str,
        scope: &ScopeId,
    ) -> Result<Option<&mut Scope>, PortError> {
        if self.pipeline(scope.pipeline()).is_some() {
            self.alive(operation, scope.pipeline())?;
        }
        Ok(self.scopes.get_mut(scope))
    }

    pub(super) fn announce(
        &mut self,
        new: &Announcement,
        now: Timestamp,
    ) -> Result<Announced, PortError> {
        let found = self.pipeline(&new.pipeline).cloned();
        if found.as_ref().map(|record| record.rules.number) != new.replaces {
            return Ok(Announced::Outpaced(found));
        }
        const OPERATION: &str = "announce rules";
        if found.is_some() {
            self.alive(OPERATION, &new.pipeline)?;
        } else if self.names.contains_key(&new.pipeline) && !new.anew {
            return Err(removed(OPERATION, &new.pipeline));
        }
        let name = self.names.entry(new.pipeline.clone()).or_default();
        name.rules = name.rules.max(new.above).next();
        let rules = RulesRecord {
            number: name.rules,
            fingerprint: new.fingerprint.clone(),
            text: new.text.clone(),
            announced_at: now,
        };
        let record = match found {
            Some(record) => PipelineRecord { rules, ..record },
            None => PipelineRecord {
                name: new.pipeline.clone(),
                incarnation: new.incarnation.clone(),
                rules,
                state: PipelineState::Working,
                revision: Revision::default(),
            },
        };
        name.life = Some(record.clone());
        for (_, scope) in self.scopes.iter_mut().filter(|(id, _)| *id.pipeline() == new.pipeline) {
            scope.outdate(Code::RULES_CHANGED, now);
            for run in scope.runs.iter_mut().filter(|run| run.is_open()) {
                run.run.epoch = run.run.epoch.next();
            }
        }
        Ok(Announced::InForce(record))
    }

    pub(super) fn open_run(&mut self, new: &NewRun, now: Timestamp) -> Result<Opened, PortError> {
        let rules = self.alive("open a run", new.scope.pipeline())?.rules.number;
        let scope = self.scopes.entry(new.scope.clone()).or_insert_with(|| Scope {
            certificate: Certificate::never(rules, now),
            runs: Vec::new(),
            items: BTreeMap::new(),
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
        self.newest(scope, procedure).filter(|run| run.is_open())
    }

    /// The newest run of a scope; an open one has none after it.
    pub(super) fn newest(&self, scope: &ScopeId, procedure: ProcedureKind) -> Option<&RunRecord> {
        let runs = &self.scopes.get(scope)?.runs;
        runs.iter().rfind(|run| run.run.procedure == procedure)
    }

    pub(super) fn pulse(
        &self,
        scope: &ScopeId,
        procedure: ProcedureKind,
        now: Timestamp,
    ) -> Option<Pulse> {
        let run = self.open(scope, procedure)?;
        let record = self.pipeline(scope.pipeline())?;
        let scope = self.scopes.get(scope)?;
        let unsettled = scope.items.values().filter(|i| i.item.state != ItemState::Parked);
        Some(Pulse {
            run_version: run.run.version,
            rules: record.rules.number,
            paused: record.state == PipelineState::Paused,
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

fn removed(operation: &'static str, pipeline: &PipelineName) -> PortError {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_REMOVED)
        .detail(format!("{pipeline} is being removed, or was removed"))
}

pub(super) fn unknown(operation: &'static str, pipeline: &PipelineName) -> PortError {
    PortError::new(operation, FailureClass::Terminal, Code::PIPELINE_UNKNOWN)
        .detail(format!("the ledger does not know {pipeline}"))
}
