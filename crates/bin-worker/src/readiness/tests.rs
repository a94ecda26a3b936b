//! When a pipeline counts as worked on.

use truekeep_core::follow::Halted;
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    PipelineRecord, PipelineState, ProcedureKind, Removing, RulesRecord, Run, RunHealth, RunState,
};
use truekeep_core::{
    Epoch, Fence, Fingerprint, HolderId, Incarnation, LeaseToken, LedgerId, PipelineName, Revision,
    RulesNumber, RunId, RunVersion, ScopeId, Timestamp, Version,
};

use super::*;

const TTL: Duration = Duration::from_secs(30);
const NOW: Duration = Duration::from_secs(1_000);

fn scope() -> ScopeId {
    ScopeId::whole(PipelineName::parse("cities").expect("valid"))
}

fn nobody() -> Known {
    Known {
        ledger: LedgerId::parse("l").expect("valid"),
        now: Timestamp::from_ms(0),
        scope: scope(),
        record: None,
        certificate: None,
        run: None,
        phase: None,
        reconcile: None,
        lease: None,
        removed: false,
    }
}

fn held(fence: u64) -> Known {
    let lease = Lease {
        holder: HolderId::parse("h").expect("valid"),
        token: LeaseToken::parse("t").expect("valid"),
        fence: Fence::new(fence),
        expires_at: Timestamp::from_ms(10),
    };
    Known { lease: Some(lease), ..nobody() }
}

fn halted(known: Known, code: Code, text: &str) -> Known {
    let run = Run {
        id: RunId::parse("r").expect("valid"),
        scope: scope(),
        procedure: ProcedureKind::Follow,
        key: String::new(),
        epoch: Epoch::new(0),
        version: RunVersion::new(1),
        phase: String::new(),
        state: RunState::Active,
        health: RunHealth { text: text.into(), ..RunHealth::default() },
        token: None,
        delivered: 0,
    };
    let phase =
        Phase::Halted(Halted { code, since: Timestamp::from_ms(0), before: None, suspect: None });
    Known { run: Some(run), phase: Some(phase), ..known }
}

fn ours(fence: u64, heard_at: Duration) -> Facts {
    let fence = Some(Fence::new(fence));
    Facts { condition: Condition::Working, fence, heard_at, ..Facts::default() }
}

fn code(facts: &Facts, known: Known) -> Option<Code> {
    unready(facts, &Ok(known), TTL, NOW).map(|ailment| ailment.code)
}

#[test]
fn a_lease_of_ours_or_of_another_living_worker_is_ready() {
    assert_eq!(code(&ours(3, NOW), held(3)), None);
    assert_eq!(code(&Facts::default(), held(3)), None);
}

#[test]
fn a_pipeline_that_nobody_holds_is_not_ready() {
    assert_eq!(code(&Facts::default(), nobody()), Some(Code::NOT_WORKED_ON));
    let ended = Known { now: Timestamp::from_ms(10), ..held(3) };
    assert_eq!(code(&ours(3, NOW), ended), Some(Code::NOT_WORKED_ON), "the lease has ended");
    let ailment = Ailment { code: Code::SOURCE_UNAVAILABLE, text: String::new() };
    let facts = Facts { condition: Condition::Troubled(ailment), ..Facts::default() };
    assert_eq!(code(&facts, nobody()), Some(Code::SOURCE_UNAVAILABLE), "and it is known why");
    assert_eq!(code(&facts, held(3)), None, "another worker may be able to");
}

#[test]
fn a_pipeline_that_is_halted_is_not_ready_whoever_halted_it() {
    let ailment = Ailment { code: Code::MIRROR_MISMATCH, text: String::new() };
    let facts = Facts { condition: Condition::Halted(ailment), ..ours(3, NOW) };
    assert_eq!(code(&facts, held(3)), Some(Code::MIRROR_MISMATCH));
    let known = halted(held(7), Code::CAPTURE_MISSING, "no triggers");
    let found = unready(&Facts::default(), &Ok(known), TTL, NOW).expect("not ready");
    assert_eq!((found.code, found.text.as_str()), (Code::CAPTURE_MISSING, "no triggers"));
}

#[test]
fn a_worker_with_other_rules_is_not_ready_even_if_another_one_works() {
    let ailment = Ailment { code: Code::RULES_CHANGED, text: String::new() };
    let facts = Facts { condition: Condition::Troubled(ailment), ..Facts::default() };
    assert_eq!(code(&facts, held(3)), Some(Code::RULES_CHANGED));
}

#[test]
fn a_turn_that_hangs_is_not_ready() {
    assert_eq!(code(&ours(3, NOW - SILENCE_MAX), held(3)), None);
    let hung = ours(3, NOW - SILENCE_MAX - Duration::from_millis(1));
    assert_eq!(code(&hung, held(3)), Some(Code::NOT_WORKED_ON));
    assert_eq!(code(&hung, held(4)), None, "another worker has taken over");
    let retrying = Facts { quiet_until: NOW, ..hung };
    assert_eq!(code(&retrying, held(3)), None, "the next try is due only now");
}

fn standing(state: PipelineState) -> Known {
    let record = PipelineRecord {
        name: scope().pipeline().clone(),
        incarnation: Incarnation::parse("i").expect("valid"),
        rules: RulesRecord {
            number: RulesNumber::new(1),
            fingerprint: Fingerprint::parse("f").expect("valid"),
            text: String::new(),
            announced_at: Timestamp::from_ms(0),
        },
        state,
        revision: Revision::new(1),
    };
    Known { record: Some(record), ..nobody() }
}

#[test]
fn a_paused_pipeline_holds_no_roll_out_up_and_a_removed_one_is_told() {
    let facts = Facts::default();
    assert_eq!(code(&facts, standing(PipelineState::Working)), Some(Code::NOT_WORKED_ON));
    assert_eq!(code(&facts, standing(PipelineState::Paused)), None);
    let removing =
        Removing { purge: false, quiet_at: Timestamp::from_ms(0), newest: Version::new(0) };
    let removed = standing(PipelineState::Removing(removing));
    assert_eq!(code(&facts, removed), Some(Code::PIPELINE_REMOVED));
}

#[test]
fn a_ledger_that_does_not_answer_is_not_ready() {
    use truekeep_core::failure::FailureClass;
    let error = PortError::new("read", FailureClass::Retry, Code::LEDGER_LOCKED);
    let found = unready(&ours(3, NOW), &Err(error), TTL, NOW).expect("not ready");
    assert_eq!(found.code, Code::LEDGER_LOCKED);
}
