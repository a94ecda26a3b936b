//! Properties of the delay.

use proptest::prelude::*;

use super::*;

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        (0.0..4.0f64).prop_map(Jitter::Additive),
        Just(Jitter::Full),
        Just(Jitter::Equal),
    ]
}

const JUST_UNDER_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

proptest! {
    /// R1, R3.
    #[test]
    fn a_delay_never_exceeds_the_cap_and_never_overflows(
        base_ms in 0..u64::MAX, cap_ms in 0..u64::MAX, attempt in any::<u32>(),
        draw in prop_oneof![0.0..1.0f64, Just(0.0), Just(JUST_UNDER_ONE)], jitter in jitters(),
    ) {
        let policy = RetryPolicy {
            base: Duration::from_millis(base_ms), cap: Duration::from_millis(cap_ms), attempts_max: 5, jitter,
        };
        prop_assert!(policy.delay(attempt, draw) <= policy.cap);
    }

    /// R2.
    #[test]
    fn a_delay_grows_with_the_attempt_before_the_cap(
        base_ms in 1..10_000u64, attempt in 0..31u32, draw in 0.0..1.0f64, jitter in jitters(),
    ) {
        let policy = RetryPolicy {
            base: Duration::from_millis(base_ms), cap: Duration::MAX, attempts_max: 5, jitter,
        };
        prop_assert!(policy.delay(attempt, draw) <= policy.delay(attempt + 1, draw));
    }
}

#[test]
fn draws_at_both_ends_stay_in_bounds() {
    let policy = RetryPolicy::DELIVERY;
    assert_eq!(policy.delay(0, 0.0), Duration::from_secs(1));
    assert!(policy.delay(0, JUST_UNDER_ONE) < Duration::from_millis(1_251));
    assert_eq!(policy.delay(u32::MAX, JUST_UNDER_ONE), policy.cap);
    for odd in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(policy.delay(3, odd) <= policy.cap);
    }
}

#[test]
fn a_server_that_asks_for_time_gets_it() {
    let asked = Duration::from_secs(7);
    let decision = decide(FailureClass::Retry, &RetryPolicy::DELIVERY, 0, 0.0, Some(asked));
    assert_eq!(decision, Decision::Again(asked));
}

#[test]
fn each_class_has_its_own_answer() {
    let answer = |class| decide(class, &RetryPolicy::DELIVERY, 0, 0.0, None);
    assert_eq!(answer(FailureClass::Unknown), Decision::Again(Duration::from_secs(1)));
    assert_eq!(answer(FailureClass::Fenced), Decision::GiveWay);
    assert_eq!(answer(FailureClass::Halted), Decision::Halt);
    assert_eq!(answer(FailureClass::Terminal), Decision::Halt);
}
