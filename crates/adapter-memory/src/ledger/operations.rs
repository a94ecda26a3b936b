//! Operations in memory.

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Cancelled, Discarded, Event, ItemState, Operations, PipelineRecord, PipelineState,
    ProcedureKind, Removal, Removing, Steer, Steered, Steering,
};
use truekeep_core::{
    Fence, Incarnation, Key, PipelineName, RunId, ScopeId, Timestamp, Version, limits,
};

use super::MemoryLedger;
use super::state::LedgerState;

#[async_trait]
impl Operations for MemoryLedger {
    async fn steer(&self, steer: &Steer) -> Result<Steered, PortError> {
        let (mut state, now) = self.transaction();
        state.steer(steer, now)
    }

    async fn cancel(&self, scope: &ScopeId, run: &RunId, by: &str) -> Result<Cancelled, PortError> {
        let (mut state, now) = self.transaction();
        Ok(state.cancel(scope, run, by, now))
    }

    async fn discard(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
    ) -> Result<Discarded, PortError> {
        let (mut state, now) = self.transaction();
        state.discard(scope, key, version, by, now)
    }

    async fn remove(&self, removal: &Removal) -> Result<Option<PipelineRecord>, PortError> {
        let (mut state, now) = self.transaction();
        Ok(state.remove(removal, now))
    }

    async fn drop_part(
        &self,
        pipeline: &PipelineName,
        incarnation: &Incarnation,
        limit: u32,
    ) -> Result<bool, PortError> {
        let limit = limits::rows("drop a pipeline", limit)?;
        let (mut state, now) = self.transaction();
        state.drop_part(pipeline, incarnation, limit as usize, now)
    }

    async fn floor(&self, pipeline: &PipelineName) -> Result<Version, PortError> {
        Ok(self.locked().names.get(pipeline).map_or_else(Version::default, |name| name.newest))
    }
}

impl LedgerState {
    fn steer(&mut self, steer: &Steer, now: Timestamp) -> Result<Steered, PortError> {
        const OPERATION: &str = "pause or resume a pipeline";
        let mut record = self.alive(OPERATION, &steer.pipeline)?.clone();
        let (to, code) = match steer.to {
            Steering::Pause => (PipelineState::Paused, Code::PIPELINE_PAUSED),
            Steering::Resume => (PipelineState::Working, Code::PIPELINE_RESUMED),
        };
        if record.state == to {
            return Ok(Steered::Unchanged(record));
        }
        if record.revision != steer.seen {
            return Ok(Steered::Outpaced(record));
        }
        record.state = to;
        record.revision = record.revision.next();
        self.put(record.clone());
        self.tell(&steer.pipeline, code, &steer.by, now);
        Ok(Steered::Done(record))
    }

    fn cancel(&mut self, id: &ScopeId, run: &RunId, by: &str, now: Timestamp) -> Cancelled {
        let scope = self.scopes.get_mut(id);
        let Some(record) =
            scope.and_then(|scope| scope.runs.iter_mut().find(|record| record.run.id == *run))
        else {
            return Cancelled::Unknown;
        };
        if record.run.procedure == ProcedureKind::Follow {
            return Cancelled::Perpetual;
        }
        if !record.is_open() {
            return Cancelled::Over(record.run());
        }
        record.stop(Code::CANCELLED);
        let ended = record.run();
        let event = Event { code: Code::CANCELLED, text: by.to_owned() };
        self.history.record(id, &event, now);
        Cancelled::Ended(ended)
    }

    fn discard(
        &mut self,
        id: &ScopeId,
        key: &Key,
        version: Version,
        by: &str,
        now: Timestamp,
    ) -> Result<Discarded, PortError> {
        let lease = self.leases.get(id).cloned();
        let Some(scope) = self.scope("discard an item", id)? else {
            return Ok(Discarded::Unknown);
        };
        let Some(record) = scope.items.get_mut(key) else { return Ok(Discarded::Unknown) };
        if let Some(until) = record.tried_until(lease.as_ref(), now) {
            return Ok(Discarded::Leased(until));
        }
        let item = &mut record.item;
        match item.state {
            ItemState::Pending | ItemState::Retry | ItemState::Leased => {
                return Ok(Discarded::Trying);
            }
            ItemState::Parked if item.version != version => {
                return Ok(Discarded::Newer(item.version));
            }
            ItemState::Parked if item.is_discarded() => return Ok(Discarded::Unchanged),
            ItemState::Parked => {}
        }
        let (code, reason) = item.given_up(by);
        let text = format!("{key}: {reason}");
        (item.code, item.changed_at) = (code.clone(), now);
        item.reason = limits::bounded(&reason).to_owned();
        self.history.record(id, &Event { code, text }, now);
        Ok(Discarded::GivenUp)
    }

    /// A pipeline of this life.
    fn life(&self, name: &PipelineName, life: &Incarnation) -> Option<PipelineRecord> {
        self.pipeline(name).filter(|record| record.incarnation == *life).cloned()
    }

    fn remove(&mut self, removal: &Removal, now: Timestamp) -> Option<PipelineRecord> {
        let name = &removal.pipeline;
        let mut record = self.life(name, &removal.incarnation)?;
        let before = match record.state {
            PipelineState::Removing(before) => before,
            PipelineState::Working | PipelineState::Paused => {
                let quiet_at = self.end_leases(name, removal, now);
                self.stop_runs(name, now);
                record.revision = record.revision.next();
                self.tell(name, Code::PIPELINE_REMOVED, &removal.by, now);
                Removing { purge: false, quiet_at, newest: Version::default() }
            }
        };
        let kept = self.names.get_mut(name)?;
        kept.newest = kept.newest.max(removal.newest);
        let (purge, newest) = (before.purge || removal.purge, kept.newest);
        record.state = PipelineState::Removing(Removing { purge, newest, ..before });
        kept.life = Some(record.clone());
        Some(record)
    }

    /// Ends the leases of a pipeline and says from when on nothing of their holders can arrive. A
    /// holder that gave its lease back may have a request under way still; where no lease was ever
    /// taken there is none.
    fn end_leases(&mut self, name: &PipelineName, removal: &Removal, now: Timestamp) -> Timestamp {
        let of_pipeline = |scope: &ScopeId| scope.pipeline() == name;
        let leases = self.leases.iter().filter(|(scope, _)| of_pipeline(scope));
        // An expiry further away than its length means that the clock went back.
        let ends = leases.map(|(_, record)| record.lease.expires_at.min(now.plus(record.ttl)));
        let last = ends.max().map_or(now, |end| end.max(now));
        self.leases.retain(|scope, _| !of_pipeline(scope));
        let Some(name) = self.names.get_mut(name) else { return now };
        if name.fence == Fence::default() {
            return now;
        }
        name.fence = name.fence.next();
        last.plus(removal.request_max)
    }

    fn stop_runs(&mut self, name: &PipelineName, now: Timestamp) {
        for (_, scope) in self.scopes.iter_mut().filter(|(id, _)| id.pipeline() == name) {
            scope.outdate(Code::PIPELINE_REMOVED, now);
            for run in scope.runs.iter_mut().filter(|run| run.is_open()) {
                run.stop(Code::PIPELINE_REMOVED);
            }
        }
    }

    fn drop_part(
        &mut self,
        name: &PipelineName,
        life: &Incarnation,
        limit: usize,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        let Some(record) = self.life(name, life) else { return Ok(true) };
        if !matches!(record.state, PipelineState::Removing(_)) {
            return Err(not_removing(name));
        }
        let mut left = limit;
        for (_, scope) in self.scopes.iter_mut().filter(|(id, _)| id.pipeline() == name) {
            let keys: Vec<Key> = scope.items.keys().take(left).cloned().collect();
            left -= keys.len();
            keys.iter().for_each(|key| drop(scope.items.remove(key)));
        }
        if left == 0 {
            return Ok(false);
        }
        self.scopes.retain(|id, _| id.pipeline() != name);
        if let Some(name) = self.names.get_mut(name) {
            name.life = None;
        }
        self.tell(name, Code::PIPELINE_REMOVED, "it is gone, the name is free", now);
        Ok(true)
    }

    fn put(&mut self, record: PipelineRecord) {
        if let Some(name) = self.names.get_mut(&record.name) {
            name.life = Some(record);
        }
    }

    fn tell(&mut self, name: &PipelineName, code: Code, text: &str, now: Timestamp) {
        let event = Event { code, text: text.to_owned() };
        self.history.record(&ScopeId::whole(name.clone()), &event, now);
    }
}

fn not_removing(pipeline: &PipelineName) -> PortError {
    PortError::new("drop a pipeline", FailureClass::Terminal, Code::UNEXPECTED)
        .detail(format!("nobody removes {pipeline}"))
}
