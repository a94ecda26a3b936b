//! The example does what it shows.

use std::process::Command;

#[test]
fn an_application_reads_its_own_writes() {
    let output = Command::new(env!("CARGO_BIN_EXE_truekeep-example-embedded")).output();
    let output = output.expect("it is built");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("complete: true"), "{output:?}");
}
