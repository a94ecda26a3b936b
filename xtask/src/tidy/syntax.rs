//! Rust source as a flat list of tokens with their lines: comments and strings cannot be mistaken for code, and the
//! inside of a macro is seen too.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A token: an identifier, one character of punctuation, a literal as written, or a bracket.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    /// As written.
    pub text: String,
    /// From one.
    pub line: usize,
}

/// The tokens of a file, or the line and the reason when it has none.
///
/// # Errors
/// When the text is not Rust: unbalanced brackets, an unfinished string.
pub fn tokens(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let stream: TokenStream = text
        .parse()
        .map_err(|error: proc_macro2::LexError| (error.span().start().line, error.to_string()))?;
    let mut flat = Vec::new();
    flatten(stream, &mut flat);
    Ok(flat)
}

/// Does `tokens` begin with these texts?
pub fn begins_with(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(own, text)| own.text == *text)
}

/// The tokens inside the bracket that opens at the first one.
pub fn inside(tokens: &[Token]) -> &[Token] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return tokens.get(1..index).unwrap_or_default();
        }
    }
    &[]
}

// The depth of recursion is the depth of brackets, which the compiler bounds too.
fn flatten(stream: TokenStream, flat: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => flatten_group(&group, flat),
            TokenTree::Ident(ident) => push(flat, ident.to_string(), ident.span()),
            TokenTree::Punct(punct) => push(flat, punct.as_char().to_string(), punct.span()),
            TokenTree::Literal(literal) => push(flat, literal.to_string(), literal.span()),
        }
    }
}

fn flatten_group(group: &Group, flat: &mut Vec<Token>) {
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => return flatten(group.stream(), flat),
    };
    push(flat, open.to_owned(), group.span_open());
    flatten(group.stream(), flat);
    push(flat, close.to_owned(), group.span_close());
}

fn push(flat: &mut Vec<Token>, text: String, span: proc_macro2::Span) {
    flat.push(Token { text, line: span.start().line });
}

#[cfg(test)]
mod tests;
