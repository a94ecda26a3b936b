//! Tests of the order of steps and of the table.

use super::*;

const SAMPLE: &[Step] = &[
    Step { name: "one", deed: Deed::Cargo("one") },
    Step { name: "two", deed: Deed::Cargo("two") },
    Step { name: "three", deed: Deed::Cargo("three") },
];

#[test]
fn all_steps_run_in_order() {
    let mut seen = Vec::new();
    let (outcomes, result) = run_steps(SAMPLE, |step| {
        seen.push(step.name);
        Ok(())
    });
    assert!(result.is_ok());
    assert_eq!(seen, ["one", "two", "three"]);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Passed(_))));
}

#[test]
fn first_failure_ends_the_run_and_is_named() {
    let (outcomes, result) = run_steps(SAMPLE, |step| match step.name {
        "two" => Err(TaskError::Untidy { findings: 1 }),
        _ => Ok(()),
    });
    assert_eq!(result.unwrap_err().to_string(), "failed at step two");
    assert!(matches!(outcomes[..], [Outcome::Passed(_), Outcome::Failed(_), Outcome::NotRun]));
}

#[test]
fn table_shows_every_step_and_the_total() {
    let rows = [
        ("fmt", Outcome::Passed(Duration::from_millis(1_200))),
        ("tidy", Outcome::Failed(Duration::from_millis(300))),
        ("clippy", Outcome::NotRun),
    ];
    let expected = "\
step               seconds
fmt                    1.2
tidy                   0.3  failed
clippy                   -  not run
total                  1.5";
    assert_eq!(table::render(&rows), expected);
}

#[test]
fn step_names_are_unique() {
    let mut names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), STEPS.len());
}
