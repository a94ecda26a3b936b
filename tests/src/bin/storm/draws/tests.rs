//! Seeds.

use super::*;

fn first(root: u64, scenario: &str, round: u64) -> [u64; 4] {
    let mut draws = Draws::of(root, scenario, round);
    std::array::from_fn(|_| draws.next())
}

#[test]
fn a_seed_repeats_its_draws() {
    assert_eq!(first(7, "power", 3), first(7, "power", 3));
}

#[test]
fn seeds_scenarios_and_rounds_have_draws_of_their_own() {
    let one = first(7, "power", 3);
    for other in [first(8, "power", 3), first(7, "kills", 3), first(7, "power", 4)] {
        assert!(one.iter().all(|draw| !other.contains(draw)), "{one:?} {other:?}");
    }
}

#[test]
fn draws_stay_within_their_bounds_and_reach_them() {
    let mut draws = Draws::of(1, "", 0);
    let seen: std::collections::BTreeSet<_> = (0..1_000).map(|_| draws.below(5)).collect();
    assert_eq!(seen, (0..5).collect());
    assert!((0..1_000).all(|_| {
        let drawn = draws.millis(10, 20);
        drawn >= Duration::from_millis(10) && drawn < Duration::from_millis(20)
    }));
}
