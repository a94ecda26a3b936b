//! Rules of leases.

use super::*;
use truekeep_core::failure::FailureClass;
use truekeep_core::limits::{DURATION_MAX, PAGE_ROWS_MAX};
use truekeep_core::ports::ItemFilter;

async fn announced(ledger: &dyn LedgerUnderTest) {
    let answer = ledger.ledger().announce(&announcement(None, "one")).await;
    assert!(matches!(answer, Ok(Announced::InForce(_))));
}

async fn acquire(ledger: &dyn LedgerUnderTest, name: &str) -> Acquired {
    let answer = ledger.leases().acquire(&scope(), &holder(name), &lease_token(name), TTL).await;
    answer.expect("an answer")
}

async fn held_by(ledger: &dyn LedgerUnderTest) -> Option<Lease> {
    ledger.leases().holder(&scope()).await.expect("an answer").0
}

/// Rule 1 and L1: of eight workers that claim at once one gets the lease, and all others are told
/// who has it.
pub async fn of_claims_at_one_instant_exactly_one_gets_the_lease(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let mut claims = Vec::new();
    for n in 0..8 {
        let leases = ledger.leases();
        claims.push(tokio::spawn(async move {
            let name = format!("w{n}");
            leases.acquire(&scope(), &holder(&name), &lease_token(&name), TTL).await
        }));
    }
    let (mut ours, mut by_whom) = (Vec::new(), Vec::new());
    for claim in claims {
        match claim.await.expect("no panic").expect("an answer") {
            Acquired::Ours { lease, .. } => ours.push(lease),
            Acquired::Held { by, .. } => by_whom.push(by),
            Acquired::Closed(code) => panic!("closed: {code}"),
        }
    }
    assert_eq!(ours.len(), 1);
    assert_eq!(by_whom.len(), 7);
    assert!(by_whom.iter().all(|by| *by == ours[0].holder));
    assert_eq!(held_by(ledger).await.as_ref(), ours.first());
}

/// Rule 2: an alive lease is not given, also not to its own holder under another token.
pub async fn an_alive_lease_is_not_given_and_says_until_when(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let (lease, _) = acquired(ledger, "a").await;
    ledger.advance(TTL - MOMENT);
    let held = Acquired::Held { by: holder("a"), until: lease.expires_at };
    assert_eq!(acquire(ledger, "b").await, held);
    let again = ledger.leases().acquire(&scope(), &holder("a"), &lease_token("a2"), TTL).await;
    assert_eq!(again.expect("an answer"), held);
    assert_eq!(held_by(ledger).await, Some(lease));
}

/// Rules 3 and 29: who takes over gets a fence never given before and goes on at what was stored.
pub async fn an_expired_lease_is_taken_with_a_new_fence_and_the_stored_phase(
    ledger: &dyn LedgerUnderTest,
) {
    let mut owner = Owner::begin(ledger).await;
    let commit = owner.prepared(Vec::new());
    owner.send(&commit).await;
    ledger.advance(TTL);
    let (lease, after_crash) = acquired(ledger, "rival").await;
    assert!(lease.fence > owner.guard.fence);
    assert!(after_crash, "the holder before did not release it");
    let run = run(ledger).await;
    assert_eq!((run.phase, run.token), (commit.phase, Some(commit.token)));
}

/// Rule 4: after a takeover the old owner renews, commits, claims and releases in vain.
pub async fn after_a_takeover_the_old_owner_is_refused_everywhere(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![due("k", 1)]).await;
    ledger.advance(TTL);
    acquired(ledger, "rival").await;
    let before = seen(ledger).await;
    let token = owner.guard.token.clone();
    let lost = ledger.leases().renew(&holder("owner"), std::slice::from_ref(&token), TTL).await;
    assert_eq!(lost.expect("an answer"), std::slice::from_ref(&token));
    let certify = vec![settle("k", 1), LedgerWrite::Certify(at(1))];
    assert_eq!(owner.commit(certify).await, Committed::Lost(Lost::Lease));
    assert_eq!(owner.try_claim(10).await, Err(Lost::Lease));
    assert!(!ledger.leases().release(&scope(), &token).await.expect("an answer"));
    assert_eq!(seen(ledger).await, before, "nothing changed");
}

/// Rules 5 and 6: at its expiry a lease is over, whether or not somebody took it.
pub async fn an_expired_owner_is_refused_though_nobody_took_over(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    ledger.advance(TTL - MOMENT);
    owner.land(vec![due("k", 1)]).await;
    ledger.advance(MOMENT);
    let before = seen(ledger).await;
    let token = owner.guard.token.clone();
    assert_eq!(owner.commit(vec![settle("k", 1)]).await, Committed::Lost(Lost::Lease));
    assert_eq!(owner.try_claim(10).await, Err(Lost::Lease));
    let lost = ledger.leases().renew(&holder("owner"), std::slice::from_ref(&token), TTL).await;
    assert_eq!(lost.expect("an answer"), std::slice::from_ref(&token));
    assert!(!ledger.leases().release(&scope(), &token).await.expect("an answer"));
    assert_eq!(seen(ledger).await, before, "nothing changed");
}

/// Rule 9: a lease that is renewed every third of its length outlives it; the run does not move.
pub async fn a_renewal_moves_the_expiry_and_nothing_else(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    for _ in 0..6 {
        ledger.advance(TTL / 3);
        let token = owner.guard.token.clone();
        let lost = ledger.leases().renew(&holder("owner"), &[token], TTL).await;
        assert_eq!(lost.expect("an answer"), []);
        let lease = held_by(ledger).await.expect("a lease");
        assert_eq!(lease.expires_at, now(ledger).await.plus(TTL));
        assert_eq!(lease.fence, owner.guard.fence);
        assert!(matches!(acquire(ledger, "rival").await, Acquired::Held { .. }));
    }
    owner.land(Vec::new()).await;
}

/// Rules 9 and 10: a renewal answers exactly the tokens that are no longer this holder's.
pub async fn a_renewal_answers_what_is_lost(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let other = PipelineName::parse("towns").expect("a name");
    let new = Announcement { pipeline: other.clone(), ..announcement(None, "towns") };
    ledger.ledger().announce(&new).await.expect("an answer");
    acquired(ledger, "a").await;
    let (towns, second) = (ScopeId::whole(other), lease_token("b"));
    let answer = ledger.leases().acquire(&towns, &holder("a"), &second, TTL).await;
    assert!(matches!(answer, Ok(Acquired::Ours { .. })));
    let tokens = [lease_token("a"), second.clone(), lease_token("never")];
    let renew = async |name: &str| {
        ledger.leases().renew(&holder(name), &tokens, TTL).await.expect("an answer")
    };
    assert_eq!(renew("a").await, [lease_token("never")]);
    assert_eq!(renew("b").await, tokens, "another holder's");
    assert!(ledger.leases().release(&towns, &second).await.expect("an answer"));
    assert_eq!(renew("a").await, [second, lease_token("never")]);
}

/// Rule 11: expiry and now come from the ledger's clock; no port takes a caller's time.
pub async fn only_the_ledgers_clock_is_asked(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let (lease, _) = acquired(ledger, "a").await;
    let (found, then) = ledger.leases().holder(&scope()).await.expect("an answer");
    assert_eq!(found.as_ref(), Some(&lease));
    assert_eq!(lease.expires_at, then.plus(TTL));
    ledger.advance(TTL);
    assert_eq!(ledger.leases().holder(&scope()).await.expect("an answer"), (found, then.plus(TTL)));
}

/// Rule 12: no lease of no length or of more than a year; no page of no rows or without bound.
pub async fn lengths_and_limits_without_sense_are_refused_before_any_write(
    ledger: &dyn LedgerUnderTest,
) {
    let owner = Owner::begin(ledger).await;
    ledger.advance(TTL);
    let before = seen(ledger).await;
    let (leases, items, archive) = (ledger.leases(), ledger.items(), ledger.archive());
    for ttl in [Duration::ZERO, Duration::from_micros(999), DURATION_MAX + MOMENT, Duration::MAX] {
        let answer = leases.acquire(&scope(), &holder("b"), &lease_token("b"), ttl).await;
        assert_eq!(answer.expect_err("refused").class, FailureClass::Terminal);
        let answer = leases.renew(&holder("owner"), &[lease_token("owner")], ttl).await;
        assert_eq!(answer.expect_err("refused").class, FailureClass::Terminal);
    }
    for limit in [0, PAGE_ROWS_MAX + 1] {
        let answer = items.claim(&scope(), &owner.guard, limit).await;
        assert_eq!(answer.expect_err("refused").class, FailureClass::Terminal);
        let answer = items.list(&scope(), ItemFilter::All, None, limit).await;
        assert_eq!(answer.expect_err("refused").class, FailureClass::Terminal);
        let answer = archive.history(&scope(), limit).await;
        assert_eq!(answer.expect_err("refused").class, FailureClass::Terminal);
    }
    assert_eq!(seen(ledger).await, before, "nothing changed");
}

/// Rules 15 and 30: what is released can be taken at once, and that is no crash.
pub async fn a_released_lease_is_free_at_once(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    let token = owner.guard.token.clone();
    assert!(ledger.leases().release(&scope(), &token).await.expect("an answer"));
    assert_eq!(held_by(ledger).await, None);
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::Lease));
    assert!(!ledger.leases().release(&scope(), &token).await.expect("an answer"), "only once");
    let (lease, after_crash) = acquired(ledger, "b").await;
    assert!(lease.fence > owner.guard.fence);
    assert!(!after_crash);
}

/// Rule 17: a token that was released is no key to the next lease.
pub async fn an_old_token_leaves_the_new_lease_alone(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let (old, _) = acquired(ledger, "a").await;
    assert!(ledger.leases().release(&scope(), &old.token).await.expect("an answer"));
    let (new, _) = acquired(ledger, "b").await;
    assert!(!ledger.leases().release(&scope(), &old.token).await.expect("an answer"));
    let lost = ledger.leases().renew(&holder("a"), std::slice::from_ref(&old.token), TTL).await;
    assert_eq!(lost.expect("an answer"), [old.token]);
    assert_eq!(held_by(ledger).await, Some(new));
}

/// L2: fences grow with each taking, after a release, an expiry and an announcement as well.
pub async fn a_fence_is_never_given_twice(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let mut fences = Vec::new();
    for n in 0..6_u64 {
        let (lease, _) = acquired(ledger, &format!("w{n}")).await;
        fences.push(lease.fence);
        if n % 2 == 0 {
            ledger.leases().release(&scope(), &lease.token).await.expect("an answer");
        } else {
            ledger.advance(TTL);
        }
        let new = announcement(Some(n + 1), "more");
        assert!(matches!(ledger.ledger().announce(&new).await, Ok(Announced::InForce(_))));
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// L3: an expiry further away than the lease's length means that the clock went back: the lease
/// can be taken, and its holder is refused. The length is that of the last renewal.
pub async fn a_clock_that_went_back_ends_the_lease(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    ledger.advance(MOMENT);
    ledger
        .leases()
        .renew(&holder("owner"), &[lease_token("owner")], TTL / 2)
        .await
        .expect("renewed");
    ledger.turn_back(MOMENT);
    assert_eq!(owner.commit(Vec::new()).await, Committed::Lost(Lost::Lease));
    let lost = ledger.leases().renew(&holder("owner"), &[lease_token("owner")], TTL).await;
    assert_eq!(lost.expect("an answer"), [lease_token("owner")]);
    let token = owner.guard.token.clone();
    assert!(!ledger.leases().release(&scope(), &token).await.expect("an answer"));
    let (lease, after_crash) = acquired(ledger, "b").await;
    assert!(after_crash && lease.fence > owner.guard.fence);
    let held = Acquired::Held { by: holder("b"), until: lease.expires_at };
    assert_eq!(acquire(ledger, "c").await, held, "the new lease has its own length");
}

/// A repeat after a lost answer finds what the first try took; nobody else does with its token.
pub async fn a_repeated_acquire_finds_its_lease(ledger: &dyn LedgerUnderTest) {
    announced(ledger).await;
    let (lease, _) = acquired(ledger, "a").await;
    ledger.advance(MOMENT);
    assert_eq!(acquired(ledger, "a").await, (lease.clone(), false));
    let other = ledger.leases().acquire(&scope(), &holder("b"), &lease.token, TTL).await;
    let held = Acquired::Held { by: holder("a"), until: lease.expires_at };
    assert_eq!(other.expect("an answer"), held);
}

/// Rule 101: what was never announced is not found, with a code that says so.
pub async fn an_unknown_pipeline_has_no_lease_and_no_run(ledger: &dyn LedgerUnderTest) {
    let answer = ledger.leases().acquire(&scope(), &holder("a"), &lease_token("a"), TTL).await;
    let error = answer.expect_err("refused");
    assert_eq!((error.class, error.code), (FailureClass::Terminal, Code::PIPELINE_UNKNOWN));
    let error = ledger.ledger().open_run(&new_run("run-1", "a")).await.expect_err("refused");
    assert_eq!((error.class, error.code), (FailureClass::Terminal, Code::PIPELINE_UNKNOWN));
    assert_eq!(ledger.ledger().pipeline(&pipeline()).await.expect("an answer"), None);
    assert_eq!(ledger.archive().certificate(&scope()).await.expect("an answer"), None);
    assert_eq!(ledger.archive().pipelines().await.expect("an answer"), []);
    assert_eq!(held_by(ledger).await, None);
}
