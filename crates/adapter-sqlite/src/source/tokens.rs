//! SQL text cut into tokens, as far as finding names and the parts of an index needs it.
//!
//! Quoted names, strings and comments are never mistaken for structure.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bare word: a keyword, a name or a number.
    Word,
    /// A quoted name or a string, quotes included.
    Quoted,
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// `,`.
    Comma,
    /// Any other character.
    Other,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub start: usize,
    pub end: usize,
}

/// Cuts SQL into tokens; white space and comments are left out.
pub(super) fn tokens(sql: &str) -> Vec<Token<'_>> {
    let bytes = sql.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &sql[at..];
        let kind = match bytes[at] {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if rest.starts_with("--") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                continue;
            }
            quote @ (b'"' | b'\'' | b'`' | b'[') => {
                at = quoted_end(bytes, at, if quote == b'[' { b']' } else { quote });
                Kind::Quoted
            }
            b'(' => {
                at += 1;
                Kind::Open
            }
            b')' => {
                at += 1;
                Kind::Close
            }
            b',' => {
                at += 1;
                Kind::Comma
            }
            b if is_word(b) => {
                at += bytes[at..].iter().take_while(|b| is_word(**b)).count();
                Kind::Word
            }
            _ => {
                at += 1;
                Kind::Other
            }
        };
        all.push(Token { kind, text: &sql[start..at], start, end: at });
    }
    all
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

/// The place after the closing quote; a doubled quote is part of the text.
fn quoted_end(bytes: &[u8], start: usize, close: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        if bytes[at] == close {
            if close == b']' || bytes.get(at + 1) != Some(&close) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    bytes.len()
}

/// The name that a token spells, if it is one.
pub(super) fn name(token: &Token<'_>) -> Option<String> {
    match token.kind {
        Kind::Word => Some(token.text.to_owned()),
        Kind::Quoted if token.text.len() >= 2 => {
            let quote = &token.text[..1];
            let inner = &token.text[1..token.text.len() - 1];
            Some(if quote == "[" {
                inner.to_owned()
            } else {
                inner.replace(&quote.repeat(2), quote)
            })
        }
        Kind::Quoted | Kind::Open | Kind::Close | Kind::Comma | Kind::Other => None,
    }
}

/// The terms of a CREATE INDEX, without order and collation, and its condition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexText {
    pub terms: Vec<String>,
    pub condition: Option<String>,
}

/// Takes a CREATE INDEX apart; `None` if it does not look like one.
pub(super) fn index_text(sql: &str) -> Option<IndexText> {
    let all = tokens(sql);
    let (terms, rest) = list(&all)?;
    let condition = match rest {
        [] => None,
        [word, condition @ ..] if word.text.eq_ignore_ascii_case("where") => {
            Some(span(sql, condition)?)
        }
        _ => return None,
    };
    let terms = terms.into_iter().map(|term| span(sql, bare(term))).collect::<Option<_>>()?;
    Some(IndexText { terms, condition })
}

/// The expression of a generated column in a CREATE TABLE, in its parentheses.
pub(super) fn generated(sql: &str, column: &str) -> Option<String> {
    let all = tokens(sql);
    let (definitions, _) = list(&all)?;
    let definition = definitions.into_iter().find(|definition| {
        let first = definition.first().and_then(name);
        first.is_some_and(|first| first.eq_ignore_ascii_case(column))
    })?;
    let mut depth = 0_usize;
    let mut from = None;
    for (place, token) in definition.iter().enumerate() {
        match token.kind {
            Kind::Open => {
                let after_as = place > 1 && definition[place - 1].text.eq_ignore_ascii_case("as");
                if depth == 0 && after_as {
                    from = Some(place);
                }
                depth += 1;
            }
            Kind::Close => {
                depth -= 1;
                if let Some(from) = from.filter(|_| depth == 0) {
                    return span(sql, &definition[from..=place]);
                }
            }
            Kind::Comma | Kind::Word | Kind::Quoted | Kind::Other => {}
        }
    }
    None
}

/// The parts of the first list in parentheses, and what stands behind it.
fn list<'a, 'b>(all: &'b [Token<'a>]) -> Option<(Vec<&'b [Token<'a>]>, &'b [Token<'a>])> {
    let open = all.iter().position(|token| token.kind == Kind::Open)?;
    let mut depth = 0_usize;
    let mut begin = open + 1;
    let mut parts = Vec::new();
    for (place, token) in all.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth -= 1,
            Kind::Comma | Kind::Word | Kind::Quoted | Kind::Other => {}
        }
        let end = depth == 0;
        if end || (depth == 1 && token.kind == Kind::Comma) {
            parts.push(&all[begin..place]);
            begin = place + 1;
        }
        if end {
            return Some((parts, &all[begin..]));
        }
    }
    None
}

/// A term without its order and its collation.
fn bare<'a, 'b>(mut term: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let is = |token: &Token<'_>, word: &str| token.text.eq_ignore_ascii_case(word);
    if let [before @ .., last] = term
        && (is(last, "asc") || is(last, "desc"))
    {
        term = before;
    }
    if let [before @ .., collate, _] = term
        && is(collate, "collate")
    {
        term = before;
    }
    term
}

fn span(sql: &str, tokens: &[Token<'_>]) -> Option<String> {
    let (first, last) = (tokens.first()?, tokens.last()?);
    Some(sql[first.start..last.end].to_owned())
}

#[cfg(test)]
mod tests;
