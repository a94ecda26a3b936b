//! Random calls, by which two ledgers are held against each other.

mod draws;

use std::time::Duration;

use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::guard::Guard;
use truekeep_core::ports::{
    Announcement, Commit, ItemCursor, ItemFilter, ItemKind, NewRun, ProcedureKind, Removal, Run,
    RunHealth, RunState, Steer, Steering,
};
use truekeep_core::{
    CommitToken, Fence, Fingerprint, HolderId, Incarnation, Key, LeaseToken, PipelineName,
    Revision, RulesNumber, RunId, RunVersion, ScopeId, Timestamp, Version, limits,
};

use super::LedgerUnderTest;
use draws::Draws;

/// Calls of a sequence.
const CALLS: u32 = 80;

const FOLLOW: ProcedureKind = ProcedureKind::Follow;

/// What of some sequences came through: draws that are mostly refused show little.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Commits that landed.
    pub landed: usize,
    /// Claims that got items.
    pub claimed: usize,
    /// Wishes that made an item pending.
    pub wished: usize,
    /// Decisions of operators that changed something.
    pub decided: usize,
}

/// Makes a sequence of random calls to both ledgers, which are empty and whose clocks show the same.
/// `alike` takes out of an answer, as text, what may differ.
///
/// # Panics
/// If an answer differs, or in the end what readers see.
pub async fn equal_answers(
    seed: u64,
    subject: &dyn LedgerUnderTest,
    reference: &dyn LedgerUnderTest,
    alike: impl Fn(&str) -> String,
    counts: &mut Counts,
) {
    let mut caller = Caller { draws: Draws(seed), calls: 0, last: None };
    for number in 0..CALLS {
        let call = caller.next(reference).await;
        let expected = answer(reference, &call).await;
        let got = answer(subject, &call).await;
        assert_eq!(alike(&got), alike(&expected), "seed {seed}, call {number}: {call:?}");
        counts.landed += usize::from(expected.starts_with("Landed"));
        counts.claimed += usize::from(expected.starts_with("Ok([Item"));
        counts.wished += usize::from(expected == "Pending");
        let decisions = ["Done", "Ended", "GivenUp", "Some(PipelineRecord", "true"];
        let operation = !matches!(call, Call::Announce(_) | Call::Open(_) | Call::Release(..));
        let decided = operation && decisions.iter().any(|d| expected.starts_with(d));
        counts.decided += usize::from(decided);
    }
    for (got, expected) in seen(subject).await.iter().zip(seen(reference).await) {
        assert_eq!(alike(got), alike(&expected), "seed {seed}, at the end");
    }
}

#[derive(Debug, Clone)]
enum Call {
    Announce(Announcement),
    Open(NewRun),
    Acquire(ScopeId, HolderId, LeaseToken, Duration),
    Renew(HolderId, Vec<LeaseToken>, Duration),
    Release(ScopeId, LeaseToken),
    Commit(Box<Commit>),
    Claim(ScopeId, Guard, u32),
    Retry(ScopeId, Key),
    Request(ScopeId, Key, Version, ItemKind),
    List(ScopeId, ItemFilter, Option<ItemCursor>, u32),
    Item(ScopeId, Key),
    Steer(Steer),
    Cancel(ScopeId, RunId, String),
    Discard(ScopeId, Key, Version, String),
    Remove(Removal),
    Drop(PipelineName, Incarnation, u32),
    Floor(PipelineName),
    Advance(Duration),
    TurnBack(Duration),
}

/// What a caller knows: drawn mostly right, so that calls get far, and sometimes wrong.
struct Caller {
    draws: Draws,
    calls: u32,
    last: Option<Commit>,
}

impl Caller {
    fn token(&mut self) -> String {
        format!("t{}", self.draws.below(4))
    }

    fn lease_token(&mut self) -> LeaseToken {
        LeaseToken::parse(&self.token()).expect("a token")
    }

    fn holder(&mut self) -> HolderId {
        let name = self.draws.of(&["h1", "h2"]);
        HolderId::parse(name).expect("a token")
    }

    async fn guard(
        &mut self,
        subject: &dyn LedgerUnderTest,
        scope: &ScopeId,
        run: Option<&Run>,
    ) -> Guard {
        let (lease, _) = subject.leases().holder(scope).await.expect("a lease");
        let rules = subject.ledger().pipeline(scope.pipeline()).await.expect("a pipeline");
        let mut guard = Guard {
            token: lease.as_ref().map_or(self.lease_token(), |lease| lease.token.clone()),
            fence: lease.map_or(Fence::new(1), |lease| lease.fence),
            run_version: run.map_or(RunVersion::new(0), |run| run.version),
            rules: rules.map_or(RulesNumber::new(1), |record| record.rules.number),
        };
        match self.draws.below(20) {
            0 => guard.token = self.lease_token(),
            1 => guard.fence = guard.fence.next(),
            2 => guard.run_version = guard.run_version.next(),
            3 => guard.rules = guard.rules.next(),
            _ => {}
        }
        guard
    }

    async fn commit(&mut self, subject: &dyn LedgerUnderTest, scope: ScopeId) -> Commit {
        if let Some(last) = self.last.clone().filter(|_| self.draws.one_in(5)) {
            return last;
        }
        let kind = *self.draws.of(&[FOLLOW, FOLLOW, ProcedureKind::Reconcile]);
        let run = subject.ledger().load(&scope, kind).await.expect("a run");
        let absent = RunId::parse("absent").expect("a token");
        let states = [
            RunState::Failed(Code::SINK_REFUSED),
            RunState::Succeeded,
            RunState::Stopped(Code::SINK_AHEAD),
        ];
        let commit = Commit {
            guard: self.guard(subject, &scope, run.as_ref()).await,
            run: run.map_or(absent, |run| run.id),
            scope,
            token: CommitToken::parse(&format!("commit-{}", self.calls)).expect("a token"),
            phase: format!("\"phase {}\"", self.calls),
            state: if self.draws.one_in(30) {
                self.draws.of(&states).clone()
            } else {
                RunState::Active
            },
            health: RunHealth {
                attempts: self.draws.below(3) as u32,
                code: self.draws.of(&[None, Some(Code::SINK_UNAVAILABLE)]).clone(),
                text: self.draws.text(),
                due_at: self.draws.of(&[None, Some(Timestamp::from_ms(7))]).to_owned(),
            },
            delivered: self.draws.below(100),
            writes: (0..self.draws.below(4)).map(|_| self.draws.write()).collect(),
        };
        self.last = Some(commit.clone());
        commit
    }

    async fn next(&mut self, subject: &dyn LedgerUnderTest) -> Call {
        self.calls += 1;
        let scope = self.draws.scope();
        // A beginning that mostly gets somewhere.
        let kind = match self.calls {
            1 | 2 => 0,
            3 => 2,
            4 => 4,
            _ => self.draws.below(42),
        };
        match kind {
            0..2 => {
                let found = subject.ledger().pipeline(scope.pipeline()).await.expect("a pipeline");
                let present = found.map(|record| record.rules.number);
                Call::Announce(Announcement {
                    pipeline: scope.pipeline().clone(),
                    incarnation: Incarnation::parse(&self.token()).expect("a token"),
                    fingerprint: Fingerprint::parse(&self.token()).expect("a token"),
                    text: self.token(),
                    replaces: *self.draws.of(&[present, present, None, Some(RulesNumber::new(1))]),
                    above: RulesNumber::new(*self.draws.of(&[0, 0, 0, 3])),
                    anew: !self.draws.one_in(4),
                })
            }
            2..4 => Call::Open(NewRun {
                id: RunId::parse(&format!("run-{}", self.calls)).expect("a token"),
                scope,
                procedure: *self.draws.of(&[FOLLOW, ProcedureKind::Reconcile]),
                key: format!("key {}", self.draws.below(2)),
                phase: "\"new\"".to_owned(),
            }),
            4..7 => Call::Acquire(scope, self.holder(), self.lease_token(), self.draws.ttl()),
            7..10 => {
                let tokens = vec![self.lease_token(), self.lease_token()];
                Call::Renew(self.holder(), tokens, self.draws.ttl())
            }
            10 => Call::Release(scope, self.lease_token()),
            11..22 => Call::Commit(Box::new(self.commit(subject, scope).await)),
            22..26 => {
                let run = subject.ledger().load(&scope, FOLLOW).await.expect("a run");
                let guard = self.guard(subject, &scope, run.as_ref()).await;
                Call::Claim(scope, guard, self.draws.below(4) as u32)
            }
            26..28 => Call::Retry(scope, self.draws.key()),
            28..30 => {
                Call::Request(scope, self.draws.key(), self.draws.version(), self.draws.kind())
            }
            30..32 => self.list(scope),
            32 => Call::Item(scope, self.draws.key()),
            33..38 => {
                let month = self.draws.one_in(20).then_some(limits::HISTORY_KEPT / 2);
                let step = Duration::from_millis(*self.draws.of(&[1, 10, 300]));
                Call::Advance(month.unwrap_or(step))
            }
            38 if self.draws.one_in(3) => {
                Call::TurnBack(Duration::from_millis(self.draws.below(2_000)))
            }
            39..41 => self.operation(subject, scope).await,
            // The lease, if it is free, so that most of what follows is not refused.
            _ => Call::Acquire(scope, self.holder(), self.lease_token(), Duration::from_secs(5)),
        }
    }
}

impl Caller {
    /// A page of items.
    fn list(&mut self, scope: ScopeId) -> Call {
        let filters =
            [ItemFilter::All, ItemFilter::Parked, ItemFilter::Discarded, ItemFilter::Unsettled];
        let after = Some(ItemCursor(self.draws.key())).filter(|_| self.draws.one_in(2));
        Call::List(scope, *self.draws.of(&filters), after, self.draws.below(4) as u32)
    }

    /// What an operator may want.
    async fn operation(&mut self, subject: &dyn LedgerUnderTest, scope: ScopeId) -> Call {
        let name = scope.pipeline().clone();
        let found = subject.ledger().pipeline(&name).await.expect("a pipeline");
        let by = self.draws.text();
        let life = Incarnation::parse(&self.token()).expect("a token");
        let life = found.as_ref().map_or(life, |record| record.incarnation.clone());
        match self.draws.below(20) {
            0..9 => {
                let seen = found.map_or(Revision::new(0), |record| record.revision);
                let seen = if self.draws.one_in(5) { seen.next() } else { seen };
                let to = *self.draws.of(&[Steering::Pause, Steering::Resume, Steering::Resume]);
                Call::Steer(Steer { pipeline: name, to, seen, by })
            }
            9..12 => {
                let kind = *self.draws.of(&[FOLLOW, ProcedureKind::Reconcile]);
                let run = subject.ledger().load(&scope, kind).await.expect("a run");
                let absent = RunId::parse("absent").expect("a token");
                Call::Cancel(scope, run.map_or(absent, |run| run.id), by)
            }
            12..15 => {
                let key = self.draws.key();
                let item = subject.items().item(&scope, &key).await.expect("an item");
                let version = item.map_or(self.draws.version(), |item| item.version);
                Call::Discard(scope, key, version, by)
            }
            15 => Call::Remove(Removal {
                pipeline: name,
                incarnation: life,
                purge: self.draws.one_in(2),
                newest: self.draws.version(),
                request_max: Duration::from_millis(self.draws.below(100)),
                by,
            }),
            // What is being removed is mostly removed soon.
            16..19 => Call::Drop(name, life, self.draws.below(4) as u32),
            _ => Call::Floor(name),
        }
    }
}

/// The answer as text; of a failure its class and code are promised.
fn shown<T: std::fmt::Debug>(answer: Result<T, PortError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?} {}", error.class, error.code),
    }
}

async fn answer(subject: &dyn LedgerUnderTest, call: &Call) -> String {
    let (ledger, leases, items) = (subject.ledger(), subject.leases(), subject.items());
    let operations = subject.operations();
    match call {
        Call::Announce(new) => shown(ledger.announce(new).await),
        Call::Open(new) => shown(ledger.open_run(new).await),
        Call::Acquire(scope, holder, token, ttl) => {
            shown(leases.acquire(scope, holder, token, *ttl).await)
        }
        Call::Renew(holder, tokens, ttl) => shown(leases.renew(holder, tokens, *ttl).await),
        Call::Release(scope, token) => shown(leases.release(scope, token).await),
        Call::Commit(commit) => shown(ledger.commit(commit).await),
        Call::Claim(scope, guard, limit) => shown(items.claim(scope, guard, *limit).await),
        Call::Retry(scope, key) => shown(items.retry(scope, key).await),
        Call::Request(scope, key, version, kind) => {
            shown(items.request(scope, key, *version, *kind).await)
        }
        Call::List(scope, filter, after, limit) => {
            shown(items.list(scope, *filter, after.clone(), *limit).await)
        }
        Call::Item(scope, key) => shown(items.item(scope, key).await),
        Call::Steer(steer) => shown(operations.steer(steer).await),
        Call::Cancel(scope, run, by) => shown(operations.cancel(scope, run, by).await),
        Call::Discard(scope, key, version, by) => {
            shown(operations.discard(scope, key, *version, by).await)
        }
        Call::Remove(removal) => shown(operations.remove(removal).await),
        Call::Drop(name, life, limit) => shown(operations.drop_part(name, life, *limit).await),
        Call::Floor(name) => shown(operations.floor(name).await),
        Call::Advance(by) => {
            subject.advance(*by);
            String::new()
        }
        Call::TurnBack(by) => {
            subject.turn_back(*by);
            String::new()
        }
    }
}

/// Everything that a reader can see.
async fn seen(subject: &dyn LedgerUnderTest) -> Vec<String> {
    let mut seen = vec![shown(subject.archive().pipelines().await)];
    for name in ["cities", "towns"] {
        let scope = ScopeId::whole(PipelineName::parse(name).expect("a name"));
        seen.extend([
            shown(subject.ledger().load(&scope, FOLLOW).await),
            shown(subject.ledger().load(&scope, ProcedureKind::Reconcile).await),
            shown(subject.ledger().pulse(&scope, FOLLOW).await),
            shown(subject.leases().holder(&scope).await),
            shown(subject.archive().certificate(&scope).await),
            shown(subject.archive().history(&scope, 1_000).await),
            shown(subject.items().list(&scope, ItemFilter::All, None, 1_000).await),
        ]);
    }
    seen
}
