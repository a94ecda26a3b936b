//! The rules of every ledger: leases, the guard, runs and rules, items, certificates.
//!
//! Each rule takes an empty ledger and panics where the rule is broken.
//! [`ledger_rules!`](crate::ledger_rules) makes a test of each. What is proven: rules 1 to 7, 9, 11,
//! 12, 15, 17 to 19, 27, 28, 42, 43, 57, 62 to 64, 83, 84, 93, 95, 98 to 107, 109, 110 and 126 as far
//! as a ledger keeps them, and the invariants L1, L2, L3, G1, C2, C3 and C4.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use truekeep_core::certificate::{Certificate, Claim};
use truekeep_core::code::Code;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Acquired, Announced, Announcement, Archive, Commit, Committed, Item, ItemKind, Items, Leases,
    Ledger, LedgerWrite, NewItem, NewRun, Opened, Operations, PipelineRecord, ProcedureKind, Run,
    RunHealth, RunState, Settle,
};
use truekeep_core::{
    CommitToken, Fingerprint, HolderId, Incarnation, Key, LeaseToken, Moment, PipelineName,
    RulesNumber, RunId, RunVersion, ScopeId, Timestamp, Version,
};

mod certificates;
mod commits;
pub mod equality;
mod items;
mod leases;
mod operations;
mod removal;
mod runs;
mod wishes;

pub use certificates::*;
pub use commits::*;
pub use items::*;
pub use leases::*;
pub use operations::*;
pub use removal::*;
pub use runs::*;
pub use wishes::*;

/// A ledger whose clock the rules can move.
pub trait LedgerUnderTest: Debug + Send + Sync {
    /// Its runs and rules.
    fn ledger(&self) -> Arc<dyn Ledger>;
    /// Its leases.
    fn leases(&self) -> Arc<dyn Leases>;
    /// Its items.
    fn items(&self) -> Arc<dyn Items>;
    /// Its certificates and history.
    fn archive(&self) -> Arc<dyn Archive>;
    /// What operators decide about it.
    fn operations(&self) -> Arc<dyn Operations>;
    /// Moves its clock on.
    fn advance(&self, by: Duration);
    /// Moves its clock back.
    fn turn_back(&self, by: Duration);
}

/// Makes a `#[tokio::test]` of every rule; the argument makes an empty ledger and may await.
#[macro_export]
macro_rules! ledger_rules {
    ($make:expr) => {
        $crate::ledger_rules! { @each $make;
            of_claims_at_one_instant_exactly_one_gets_the_lease
            an_alive_lease_is_not_given_and_says_until_when
            an_expired_lease_is_taken_with_a_new_fence_and_the_stored_phase
            after_a_takeover_the_old_owner_is_refused_everywhere
            an_expired_owner_is_refused_though_nobody_took_over
            a_renewal_moves_the_expiry_and_nothing_else
            a_renewal_answers_what_is_lost
            only_the_ledgers_clock_is_asked
            lengths_and_limits_without_sense_are_refused_before_any_write
            a_released_lease_is_free_at_once
            an_old_token_leaves_the_new_lease_alone
            a_fence_is_never_given_twice
            a_clock_that_went_back_ends_the_lease
            a_repeated_acquire_finds_its_lease
            an_unknown_pipeline_has_no_lease_and_no_run
            each_part_of_the_guard_is_compared
            of_commits_at_one_version_exactly_one_lands
            nothing_of_a_refused_commit_is_written
            a_commit_is_written_whole
            a_repeated_commit_lands_once
            a_repeated_commit_landed_though_the_lease_is_lost
            a_repeated_commit_answers_its_own_version
            a_run_ends_once
            writes_are_done_in_their_order
            texts_of_any_length_are_stored_bounded
            the_ledger_keeps_its_identity
            opening_twice_with_one_key_is_one_run
            a_failed_run_comes_back_unchanged_and_blocks_another
            rules_are_numbered_from_one_on
            of_announcements_at_once_exactly_one_is_in_force
            a_repeated_announcement_finds_what_it_did
            new_rules_make_certificates_stale_and_old_writers_lose
            a_newer_item_is_never_replaced_by_an_older
            settling_removes_what_is_at_or_below_its_version
            items_are_claimed_oldest_due_first_and_only_when_due
            a_clock_that_went_back_makes_items_due
            a_claim_is_guarded
            what_a_claim_left_leased_is_claimed_alone
            a_newer_item_survives_the_end_of_an_older_claim
            any_text_is_an_items_key
            lists_are_bounded_and_in_byte_order
            a_parked_item_is_retried_on_a_wish
            only_a_parked_item_is_retried
            a_retry_of_a_leased_item_says_until_when
            a_record_without_an_item_is_requested
            a_request_leaves_a_newer_delivery_alone
            a_certificate_begins_as_never
            a_moment_never_passes_an_unsettled_item
            a_parked_item_makes_partial
            a_moment_never_goes_down
            what_broke_is_stale_at_its_last_moment
            history_is_newest_first_and_pruned
            the_pulse_says_what_an_idle_scope_needs
            nobody_takes_the_lease_of_a_paused_pipeline
            a_pause_leaves_everything_as_it_is
            of_two_who_decide_at_once_one_wins
            a_repeated_decision_changes_nothing
            a_cancelled_run_ends_and_another_may_begin
            what_follows_is_not_cancelled
            a_discarded_item_stays_parked_and_is_told_apart
            only_the_parked_item_that_was_seen_is_discarded
            newer_data_takes_a_discarded_items_place
            everything_is_refused_to_a_pipeline_that_is_being_removed
            a_removal_is_quiet_once_nothing_can_arrive
            a_repeated_removal_only_learns
            a_removed_pipeline_goes_in_parts_and_frees_its_name
            a_new_life_begins_above_the_old_one
            an_old_life_has_no_effect_on_a_new_one
            only_an_operator_gives_a_removed_name_a_new_life
            rules_begin_above_what_the_target_held
        }
    };
    (@each $make:expr; $($rule:ident)*) => {
        $(
            #[tokio::test]
            async fn $rule() {
                let ledger = $make;
                $crate::ledger::$rule(&ledger).await;
            }
        )*
    };
}

const TTL: Duration = Duration::from_secs(30);
const MOMENT: Duration = Duration::from_millis(1);

fn pipeline() -> PipelineName {
    PipelineName::parse("cities").expect("a name")
}

fn scope() -> ScopeId {
    ScopeId::whole(pipeline())
}

fn holder(name: &str) -> HolderId {
    HolderId::parse(name).expect("a token")
}

fn lease_token(name: &str) -> LeaseToken {
    LeaseToken::parse(name).expect("a token")
}

fn at(version: u64) -> Claim {
    Claim::UpTo(Moment::at(Version::new(version)))
}

fn announcement(replaces: Option<u64>, text: &str) -> Announcement {
    Announcement {
        pipeline: pipeline(),
        incarnation: Incarnation::parse("life-1").expect("a token"),
        fingerprint: Fingerprint::parse(&format!("hash-{text}")).expect("a token"),
        text: text.to_owned(),
        replaces: replaces.map(RulesNumber::new),
        above: RulesNumber::default(),
        anew: false,
    }
}

fn new_run(id: &str, key: &str) -> NewRun {
    NewRun {
        id: RunId::parse(id).expect("a token"),
        scope: scope(),
        procedure: ProcedureKind::Follow,
        key: key.to_owned(),
        phase: "\"opening\"".to_owned(),
    }
}

/// Parked, unless `retry_in` is set.
fn new_item(key: &str, version: u64) -> NewItem {
    NewItem {
        key: Key::new(key),
        version: Version::new(version),
        kind: ItemKind::Upsert,
        attempts: 1,
        retry_in: None,
        code: Code::SINK_REFUSED,
        reason: "a reason".to_owned(),
    }
}

fn retry_item(key: &str, version: u64, after: Duration) -> NewItem {
    NewItem { retry_in: Some(after), ..new_item(key, version) }
}

fn parked(key: &str, version: u64) -> LedgerWrite {
    LedgerWrite::Enqueue(vec![new_item(key, version)])
}

fn due(key: &str, version: u64) -> LedgerWrite {
    LedgerWrite::Enqueue(vec![retry_item(key, version, Duration::ZERO)])
}

fn settle(key: &str, version: u64) -> LedgerWrite {
    LedgerWrite::Settle(vec![Settle { key: Key::new(key), version: Version::new(version) }])
}

/// Takes the lease of the scope, which must be free.
async fn acquired(ledger: &dyn LedgerUnderTest, name: &str) -> (Lease, bool) {
    let answer = ledger.leases().acquire(&scope(), &holder(name), &lease_token(name), TTL).await;
    match answer.expect("an answer") {
        Acquired::Ours { lease, after_crash } => (lease, after_crash),
        Acquired::Held { by, until } => panic!("held by {by} until {until}"),
        Acquired::Closed(code) => panic!("closed: {code}"),
    }
}

async fn record(ledger: &dyn LedgerUnderTest) -> PipelineRecord {
    let record = ledger.ledger().pipeline(&pipeline()).await.expect("an answer");
    record.expect("the pipeline is known")
}

/// The codes of the history, newest first.
async fn told(ledger: &dyn LedgerUnderTest) -> Vec<(Code, String)> {
    let events = ledger.archive().history(&scope(), 100).await.expect("an answer");
    events.into_iter().map(|(_, event)| (event.code, event.text)).collect()
}

async fn run(ledger: &dyn LedgerUnderTest) -> Run {
    let run = ledger.ledger().load(&scope(), ProcedureKind::Follow).await.expect("an answer");
    run.expect("there is a run")
}

async fn certificate(ledger: &dyn LedgerUnderTest) -> Certificate {
    let certificate = ledger.archive().certificate(&scope()).await.expect("an answer");
    certificate.expect("the scope is known")
}

async fn item(ledger: &dyn LedgerUnderTest, key: &str) -> Option<Item> {
    ledger.items().item(&scope(), &Key::new(key)).await.expect("an answer")
}

async fn now(ledger: &dyn LedgerUnderTest) -> Timestamp {
    ledger.ledger().now().await.expect("an answer")
}

/// Everything that readers can see of the scope, to show that nothing changed.
async fn seen(ledger: &dyn LedgerUnderTest) -> impl PartialEq + Debug + use<> {
    let all = truekeep_core::ports::ItemFilter::All;
    (
        ledger.ledger().load(&scope(), ProcedureKind::Follow).await.expect("a run"),
        ledger.archive().certificate(&scope()).await.expect("a certificate"),
        ledger.items().list(&scope(), all, None, 100).await.expect("items"),
        ledger.archive().history(&scope(), 100).await.expect("a history"),
        ledger.leases().holder(&scope()).await.expect("a lease").0,
        ledger.ledger().pipeline(&pipeline()).await.expect("a pipeline"),
    )
}

/// The holder of the scope's lease at work on its run.
struct Owner<'l> {
    ledger: &'l dyn LedgerUnderTest,
    run: RunId,
    guard: Guard,
    commits: u32,
}

impl<'l> Owner<'l> {
    /// Announces the first rules, opens a run and takes the lease.
    async fn begin(ledger: &'l dyn LedgerUnderTest) -> Self {
        let announced = ledger.ledger().announce(&announcement(None, "one")).await;
        assert!(matches!(announced, Ok(Announced::InForce(_))));
        let opened = ledger.ledger().open_run(&new_run("run-1", "first")).await;
        assert!(matches!(opened, Ok(Opened::Run(_))));
        Self::take_over(ledger, "owner").await
    }

    /// Takes the lease, which must be free, and loads the run and the rules.
    async fn take_over(ledger: &'l dyn LedgerUnderTest, name: &str) -> Self {
        let (lease, _) = acquired(ledger, name).await;
        let run = run(ledger).await;
        let rules = ledger.ledger().pipeline(&pipeline()).await.expect("an answer");
        let rules = rules.expect("the pipeline is known").rules.number;
        let guard =
            Guard { token: lease.token, fence: lease.fence, run_version: run.version, rules };
        Self { ledger, run: run.id, guard, commits: 0 }
    }

    /// The next commit, with a token of its own.
    fn prepared(&mut self, writes: Vec<LedgerWrite>) -> Commit {
        self.commits += 1;
        let token = format!("{}-{}", self.guard.token, self.commits);
        Commit {
            run: self.run.clone(),
            scope: scope(),
            guard: self.guard.clone(),
            token: CommitToken::parse(&token).expect("a token"),
            phase: format!("\"phase {token}\""),
            state: RunState::Active,
            health: RunHealth::default(),
            delivered: 1,
            writes,
        }
    }

    async fn send(&mut self, commit: &Commit) -> Committed {
        let committed = self.ledger.ledger().commit(commit).await.expect("an answer");
        if let Committed::Landed(version, _) = &committed {
            self.guard.run_version = *version;
        }
        committed
    }

    async fn commit(&mut self, writes: Vec<LedgerWrite>) -> Committed {
        let commit = self.prepared(writes);
        self.send(&commit).await
    }

    /// A commit that must land.
    async fn land(&mut self, writes: Vec<LedgerWrite>) -> RunVersion {
        match self.commit(writes).await {
            Committed::Landed(version, _) => version,
            Committed::Lost(lost) => panic!("the commit lost its {lost:?}"),
        }
    }

    async fn try_claim(&self, limit: u32) -> Result<Vec<Item>, Lost> {
        self.ledger.items().claim(&scope(), &self.guard, limit).await.expect("an answer")
    }

    /// The keys of a claim that must not be refused.
    async fn claim(&self, limit: u32) -> Vec<String> {
        let items = self.try_claim(limit).await.expect("the guard holds");
        items.into_iter().map(|item| item.key.to_string()).collect()
    }
}
