//! Tests of the flat list of tokens.

use super::*;

fn texts(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(|token| token.text.as_str()).collect()
}

#[test]
fn tokens_carry_their_lines() {
    let tokens = tokens("fn a() {\n    b!(c::d);\n}\n").unwrap();
    let found = tokens.iter().find(|token| token.text == "d").unwrap();
    assert_eq!(found.line, 2);
}

#[test]
fn comments_are_no_tokens_and_strings_are_one() {
    let tokens = tokens("// sleep\nlet a = \"sleep ( )\";").unwrap();
    assert_eq!(texts(&tokens), ["let", "a", "=", "\"sleep ( )\"", ";"]);
}

#[test]
fn inside_of_a_bracket_ends_at_its_own_close() {
    let tokens = tokens("(a (b) [c]) d").unwrap();
    assert_eq!(texts(inside(&tokens)), ["a", "(", "b", ")", "[", "c", "]"]);
}

#[test]
fn unbalanced_text_has_no_tokens() {
    assert!(tokens("fn a( {").is_err());
}
