//! The rows of a table as lanes: stretches that an index walks in the order of their keys' texts.
//!
//! Integers of one sign and one number of digits rise, or fall, as their texts do; so do texts, and
//! blobs in hex. A lane begins after any place in that order, and each row is in one lane.

use crate::source::key::{Fold, Form, KeyColumn, Part};
use crate::source::names::from_hex;

/// One lane: the values of the key's column, and what its first parameter is.
#[derive(Debug)]
pub(super) struct Lane {
    pub sql: String,
    pub begin: Part,
}

/// Whether rows can be walked by lanes.
pub(super) fn walkable(column: &KeyColumn) -> bool {
    match column.form {
        Form::Integer | Form::Bytes | Form::Text { fold: Fold::None, .. } => true,
        Form::Text { .. } | Form::Any { .. } => false,
    }
}

/// The lanes of a table after a place. A lane may begin with rows that are not after it.
pub(super) fn lanes(table: &str, column: &KeyColumn, after: Option<&[u8]>) -> Vec<Lane> {
    let name = &column.sql;
    let lane = |condition: String, begin| Lane {
        sql: format!("SELECT {name} FROM {table} WHERE {name} {condition}"),
        begin,
    };
    let texts = |name: &str| format!(">= ?1 AND {name} < x'' ORDER BY {name}");
    let blobs = |prefix: &[u8]| {
        let begin = first_blob(after.unwrap_or_default(), prefix)?;
        Some(lane(format!(">= ?1 ORDER BY {name}"), Part::Blob(begin)))
    };
    match column.form {
        Form::Integer => integers(after)
            .map(|stretch| match stretch {
                Stretch { begin, end, falling: false } => {
                    lane(format!("BETWEEN ?1 AND {end} ORDER BY {name}"), Part::Integer(begin))
                }
                Stretch { begin, end, falling: true } => {
                    let condition = format!("BETWEEN {end} AND ?1 ORDER BY {name} DESC");
                    lane(condition, Part::Integer(begin))
                }
            })
            .collect(),
        Form::Text { blobs: also, .. } => {
            let text = lane(texts(name), Part::Text(after.unwrap_or_default().to_vec()));
            std::iter::once(text).chain(blobs(b"b:").filter(|_| also)).collect()
        }
        Form::Bytes => blobs(b"").into_iter().collect(),
        Form::Any { .. } => Vec::new(),
    }
}

/// The least blob whose place, the prefix and its bytes in hex, can be after a place.
fn first_blob(after: &[u8], prefix: &[u8]) -> Option<Vec<u8>> {
    let Some(rest) = after.strip_prefix(prefix) else {
        return (after < prefix).then(Vec::new);
    };
    let digits = rest.iter().take_while(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    from_hex(&rest[..digits.count() / 2 * 2])
}

/// Integers whose texts rise from the first to the last.
struct Stretch {
    begin: i64,
    end: i64,
    falling: bool,
}

/// The digits of the longest integers.
const DIGITS_MAX: u32 = 19;

fn integers(after: Option<&[u8]>) -> impl Iterator<Item = Stretch> {
    let after = after.unwrap_or_default();
    // All texts with a minus come before those with a digit.
    let negative = match after.strip_prefix(b"-") {
        Some(rest) => Some(rest),
        None => (after < b"-".as_slice()).then_some(b"".as_slice()),
    };
    let falling = negative.into_iter().flat_map(|after| {
        (1..=DIGITS_MAX).filter_map(move |digits| {
            let (begin, end) = magnitudes(digits, after)?;
            let end = 0i64.checked_sub_unsigned(end).unwrap_or(i64::MIN);
            Some(Stretch { begin: 0i64.checked_sub_unsigned(begin.max(1))?, end, falling: true })
        })
    });
    let rising = (1..=DIGITS_MAX).filter_map(move |digits| {
        let (begin, end) = magnitudes(digits, after)?;
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        Some(Stretch { begin: i64::try_from(begin).ok()?, end, falling: false })
    });
    falling.chain(rising)
}

/// The least number of so many digits whose text is after a place, and the greatest of all.
fn magnitudes(digits: u32, after: &[u8]) -> Option<(u64, u64)> {
    let power = |digits: u32| 10u64.pow(digits);
    let (low, high) = (if digits == 1 { 0 } else { power(digits - 1) }, power(digits) - 1);
    let mut begin = 0;
    for (place, rest) in (0..digits).rev().enumerate() {
        begin = match after.get(place) {
            Some(digit @ b'0'..=b'9') => begin * 10 + u64::from(digit - b'0'),
            // Whatever follows, it is after a place that ends here, or goes on with less.
            None | Some(..b'0') => return Some(((begin * power(rest + 1)).max(low), high)),
            Some(_) => {
                begin = (begin + 1) * power(rest + 1);
                return (begin <= high).then_some((begin.max(low), high));
            }
        };
    }
    let begin = (begin + 1).max(low);
    (begin <= high).then_some((begin, high))
}

#[cfg(test)]
mod tests;
