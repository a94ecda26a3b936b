//! Which rules a comment names, and what a document lacks.

use super::*;

fn rules(text: &str) -> Vec<String> {
    named(text).iter().map(Rule::to_string).collect()
}

#[test]
fn a_comment_names_rules_in_any_of_our_ways() {
    assert_eq!(rules("Rule 117a: a late delete"), ["117"]);
    assert_eq!(rules("Q1, rules 51 to 54 and X14."), ["51", "52", "53", "54", "X14"]);
    assert_eq!(rules("Rules 4, 6 and 26, X1: of 8 workers"), ["4", "6", "26", "X1"]);
    assert_eq!(rules("X1, rule 2: and 3 more"), ["2", "X1"]);
    assert_eq!(rules("under 7 rules of ours"), [""; 0]);
}

#[test]
fn tests_and_the_suites_functions_prove_rules_and_nothing_else_does() {
    let text = "/// Rule 1.\n#[test]\nfn one() {}\n\n/// Rule 2.\nfn two() {}\n";
    let suite = "/// Rule 3.\npub async fn three(ledger: &dyn Ledger) {}\n";
    let tree = Tree::of(&[("tests/a.rs", text), ("crates/conformance/src/b.rs", suite)]);
    let proofs = proofs(&tree);
    let found: Vec<String> =
        proofs.iter().map(|(rule, names)| format!("{rule} {names:?}")).collect();
    assert_eq!(found, [r#"1 {"one"}"#, r#"3 {"three"}"#]);
}

#[test]
fn each_rule_has_one_row_with_its_tests_or_a_reason() {
    let proofs = Proofs::from([(Rule::Behaviour(1), BTreeSet::from(["one".to_owned()]))]);
    let excused = |rule: Rule| format!("- **{rule}** not yet: later\n");
    let text: String = Rule::all().map(excused).collect();
    let said: Vec<String> = faults(&text, &proofs).into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, ["tests and rows differ: run `cargo xtask rules`"]);
    let text = rewritten(&text, &proofs);
    assert!(text.starts_with("- **1** `one`\n- **2** not yet: later\n"));
    assert_eq!(faults(&text, &proofs), []);
    let removed = faults(&text, &Proofs::new());
    assert!(removed[0].1.starts_with("no test names 1"), "{removed:?}");
    let cut = text.replace("- **X70** not yet: later\n", "- **X69** not yet: twice\n");
    let said: Vec<String> = faults(&cut, &proofs).into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, ["X69 has a row already, or is no rule", "X70 has no row"]);
}
