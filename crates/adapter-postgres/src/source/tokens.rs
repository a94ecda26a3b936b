//! SQL text cut into what matters here: names, and parameters of the form `:name`.
//!
//! Strings, comments, quoted names and casts are never mistaken for either.

use std::ops::Range;

/// A part of SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A name, as Postgres reads it: a bare one in lower case.
    Name(String),
    /// `:name`, and where it stands.
    Parameter(String, Range<usize>),
}

/// Cuts SQL into its names and parameters.
pub(super) fn parts(sql: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < sql.len() {
        let rest = &sql[at..];
        let first = rest.chars().next().expect("not at the end");
        let mut taken = first.len_utf8();
        match first {
            '-' if rest.starts_with("--") => taken = rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => taken = comment(rest),
            '\'' => taken = quoted(rest, '\'', false),
            'e' | 'E' if rest[1..].starts_with('\'') => taken = 1 + quoted(&rest[1..], '\'', true),
            '"' => {
                taken = quoted(rest, '"', false);
                let inner = rest.get(1..taken.max(2) - 1).unwrap_or_default();
                all.push(Part::Name(inner.replace("\"\"", "\"")));
            }
            '$' => taken = dollar(rest).unwrap_or(1),
            ':' if rest.starts_with("::") || rest.starts_with(":=") => taken = 2,
            ':' => {
                let name = word(&rest[1..]);
                // A number after a colon is the end of an array's slice.
                if name.starts_with(|c: char| !c.is_ascii_digit()) {
                    taken = 1 + name.len();
                    all.push(Part::Parameter(name.to_owned(), at..at + taken));
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                taken = word(rest).len();
                all.push(Part::Name(rest[..taken].to_lowercase()));
            }
            _ => {}
        }
        at += taken.max(1);
    }
    all
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    &text[..end.unwrap_or(text.len())]
}

/// The length of a comment; such comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a text in quotes; a doubled quote is part of it, and after a backslash any.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if escapes && c == '\\' {
            characters.next();
        } else if c == quote {
            if characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
            } else {
                return at + 1;
            }
        }
    }
    text.len()
}

/// The length of a text between `$tag$`; none if it is none.
fn dollar(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[..end];
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    let inner = &tag[1..end - 1];
    if !inner.chars().all(plain) || inner.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some(text[end..].find(tag).map_or(text.len(), |found| end + found + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(sql: &str) -> Vec<String> {
        let name = |part| match part {
            Part::Parameter(name, at) => Some(format!("{name}={}", &sql[at])),
            Part::Name(_) => None,
        };
        parts(sql).into_iter().filter_map(name).collect()
    }

    #[test]
    fn only_parameters_are_parameters() {
        let sql = "SELECT a::text, ':no', E'\\':no', \":no\", $x$ :no $x$, $$:no$$, 'it''s :no' /* :no /* */ :no */
            FROM t WHERE id = :id AND b[1:2] = :ärger -- :no
            AND a := 1 AND x = $1";
        assert_eq!(parameters(sql), ["id=:id", "ärger=:ärger"]);
    }

    #[test]
    fn names_are_read_as_postgres_reads_them() {
        let names: Vec<_> = parts("Select \"A\"\"b\".C FROM d1")
            .into_iter()
            .map(|part| if let Part::Name(name) = part { name } else { panic!("{part:?}") })
            .collect();
        assert_eq!(names, ["select", "A\"b", "c", "from", "d1"]);
    }
}
