//! Queries find what was written, and bad ones say where they are bad.

use super::*;

#[test]
fn query_that_would_be_parsed_for_long_is_refused() {
    assert!(bounded("a (b c)").is_ok());
    let deep = format!("{}a", "(".repeat(QUERY_DEPTH_MAX + 1));
    assert_eq!(bounded(&deep).expect_err("too deep").at, Some(QUERY_DEPTH_MAX));
    assert!(
        bounded(&format!("{}a{}", "(".repeat(QUERY_DEPTH_MAX), ")".repeat(QUERY_DEPTH_MAX)))
            .is_ok()
    );
    assert!(bounded(&"a".repeat(QUERY_BYTES_MAX + 1)).is_err());
    for empty in ["", " \t"] {
        assert_eq!(bounded(empty).expect_err("empty").message, "the query is empty");
    }
}
