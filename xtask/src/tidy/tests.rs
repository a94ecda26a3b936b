//! What the checks' tests share, and the test of a finding's form.

use super::*;

/// A world with these files and no packages.
pub fn world_of(files: &[(&str, &str)]) -> World {
    World { tree: Tree::of(files), metadata: Metadata::default() }
}

/// The findings as `path:line`, faults only.
pub fn places(findings: &[Finding]) -> Vec<String> {
    let faults = findings.iter().filter(|finding| finding.weight == Weight::Fault);
    faults.map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
}

#[test]
fn finding_is_path_line_rule_message() {
    let fault = Finding::fault("a/b.rs", 3, "size", "too long");
    assert_eq!(fault.to_string(), "a/b.rs:3: size: too long");
    let note = Finding::note("a/b.rs", 3, "size", "long");
    assert_eq!(note.to_string(), "note: a/b.rs:3: size: long");
}
