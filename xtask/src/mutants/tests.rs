//! Mutants are read as they are written, and each that lies in the tree can be read.

use super::*;

const PATCH: &str = "Guard: the token\nCaught-by: test -p truekeep-core token\nCaught-by: sim --seeds 9\n--- a/x\n+++ b/x\n";

fn read(text: &str) -> Result<Vec<Patch>, TaskError> {
    Patch::all(&Tree::of(&[("tests/mutants/token.patch", text), ("tests/mutants/README.md", "")]))
}

#[test]
fn a_mutant_says_its_guard_and_what_must_notice() {
    let patches = read(PATCH).expect("read");
    let [patch] = &patches[..] else { panic!("{patches:?}") };
    assert_eq!((patch.name.as_str(), patch.guard.as_str()), ("token", "the token"));
    let said: Vec<String> = patch.checks.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["test -p truekeep-core token", "sim --seeds 9"]);
}

#[test]
fn a_mutant_that_lacks_either_is_refused() {
    for lacks in
        ["Guard: the token\n", "Caught-by: test -p truekeep-core token\nCaught-by: sim --seeds 9\n"]
    {
        assert!(read(&PATCH.replace(lacks, "")).is_err(), "{lacks}");
    }
    assert!(read(&PATCH.replace("sim", "luck")).is_err());
}

#[test]
fn a_check_builds_before_it_runs() {
    let (build, run) = Check::parse("test -p a b").expect("a check").commands();
    assert_eq!(build.join(" "), "test --quiet --locked --no-run -p a b");
    assert_eq!(run.join(" "), "test --quiet --locked -p a b");
    let (build, run) = Check::parse("sim --seeds 9").expect("a check").commands();
    assert!(
        !build.contains(&"--seeds".to_owned())
            && run.ends_with(&["--".into(), "--seeds".into(), "9".into()])
    );
}

#[test]
fn no_more_are_drawn_than_are_wanted() {
    let mut patches: Vec<Patch> = (0..5).flat_map(|_| read(PATCH).expect("read")).collect();
    draw(&mut patches, 3);
    assert_eq!(patches.len(), 3);
}

#[test]
fn every_mutant_of_the_tree_can_be_read() {
    let patches = Patch::all(&Tree::read(&tree::root()).expect("a tree")).expect("readable");
    assert!(patches.len() >= 25, "{} mutants", patches.len());
}
