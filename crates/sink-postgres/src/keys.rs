//! Keys as text that Postgres can hold: it holds every character but NUL.
//!
//! NUL and the character after it are escaped by that one, so that different keys stay different and
//! their order is that of their bytes still. Every other key is written as it is.

use std::borrow::Cow;

use truekeep_core::Key;

const ESCAPE: char = '\u{1}';

/// The key as a column holds it.
pub(crate) fn stored(key: &Key) -> Cow<'_, str> {
    let key = key.as_str();
    if !key.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(key);
    }
    let mut text = String::with_capacity(key.len() + 1);
    for c in key.chars() {
        match c {
            '\0' => text.extend([ESCAPE, '\u{1}']),
            ESCAPE => text.extend([ESCAPE, '\u{2}']),
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

/// The key that a column holds; none if no key of ours is held so.
pub(crate) fn read(text: &str) -> Option<Key> {
    if !text.contains(ESCAPE) {
        return Some(Key::new(text));
    }
    let mut key = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        key.push(match (c, c == ESCAPE) {
            (other, false) => other,
            (_, true) => match chars.next()? {
                '\u{1}' => '\0',
                '\u{2}' => ESCAPE,
                _ => return None,
            },
        });
    }
    Some(Key::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X22: every key can be held, is read as itself, and stands in the order of its bytes.
    #[test]
    fn keys_stay_distinct_and_in_their_order() {
        let parts = ["", "\0", "\u{1}", "\u{2}", "a", "\u{10ffff}"];
        let mut keys: Vec<String> = Vec::new();
        for a in parts {
            for b in parts {
                keys.extend(parts.map(|c| [a, b, c].concat()));
            }
        }
        keys.sort();
        keys.dedup();
        let held: Vec<String> =
            keys.iter().map(|key| stored(&Key::new(key.as_str())).into_owned()).collect();
        assert!(held.is_sorted_by(|one, next| one < next), "{held:?}");
        for (key, held) in keys.iter().zip(&held) {
            assert!(!held.contains('\0'));
            assert_eq!(read(held), Some(Key::new(key.as_str())));
        }
        for foreign in ["\u{1}", "a\u{1}", "\u{1}\u{3}", "\u{1}a"] {
            assert_eq!(read(foreign), None, "{foreign:?}");
        }
    }
}
