//! The table.

use super::*;

#[test]
fn a_row_has_a_cell_for_each_heading() {
    let cells = |line: &str| line.matches('|').count();
    let row = Row("power", &Tally::default()).to_string();
    let heads: Vec<_> = HEADING.lines().map(cells).collect();
    assert_eq!(heads, [cells(&row); 2], "{row}");
}

#[test]
fn take_overs_are_told_by_their_least_middle_and_most() {
    assert_eq!(spread(&[]), "0");
    let times = [3_000, 1_000, 2_250].map(Duration::from_millis);
    assert_eq!(spread(&times), "3 (1.00 / 2.25 / 3.00 s)");
}

#[test]
fn counts_add_up() {
    let one =
        Tally { rounds: 1, cuts: 2, lies: 3, takeovers: vec![Duration::ZERO], ..Tally::default() };
    let mut sum = one.clone();
    sum.add(&one);
    assert_eq!((sum.rounds, sum.cuts, sum.lies, sum.takeovers.len()), (2, 4, 6, 2));
}
