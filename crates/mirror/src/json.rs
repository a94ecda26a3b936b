//! A document as JSON text: every value as exact as JSON can say it, or not at all.
//!
//! Integers have all their digits, reals the fewest that read back as the same number. Infinities
//! are written as SQLite writes them, which is a number of JSON. Blobs are base64. JSON is copied, never parsed: its
//! duplicate keys, its number forms and its depth stay. What JSON cannot say is refused.

use truekeep_core::Value;

/// A value that cannot be said; the text completes "`name` ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsayable(pub &'static str);

/// What SQLite's own functions write for infinities, and read as such.
const INFINITY: &[u8] = b"9.0e+999";

/// Appends a value.
///
/// # Errors
/// What JSON cannot say.
pub fn write_value(out: &mut Vec<u8>, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Integer(number) => write_serialized(out, number),
        Value::Real(number) if number.is_nan() => return Err(Unsayable("is not a number")),
        Value::Real(number) if number.is_infinite() => {
            if *number < 0.0 {
                out.push(b'-');
            }
            out.extend_from_slice(INFINITY);
        }
        Value::Real(number) => write_serialized(out, number),
        Value::Text(text) => write_serialized(out, text),
        Value::InvalidText(_) => return Err(Unsayable("holds text that is not UTF-8")),
        Value::Blob(bytes) => write_base64(out, bytes),
        Value::Json(text) => out.extend_from_slice(text.as_bytes()),
    }
    Ok(())
}

/// Appends text in quotes, or a finite number. Writing these into memory cannot fail.
pub(crate) fn write_serialized<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "text and finite numbers are JSON");
}

/// RFC 4648, section 4, with padding, in quotes.
fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4 + 2);
    out.push(b'"');
    for chunk in bytes.chunks(3) {
        let mut three = [0; 4];
        three[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(three);
        for sextet in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * sextet) & 63) as usize];
            out.push(if sextet <= chunk.len() { letter } else { b'=' });
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
