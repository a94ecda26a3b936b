//! Values as the text that a column's type reads.

use truekeep_core::{Document, Value};
use truekeep_mirror::{Cell, Converter, Unfit, write_value};

use crate::types::{ColumnType, Form};

/// What a column is to hold, as text; none is NULL.
pub(crate) type Written = Option<String>;

/// What the columns of a document are to hold.
pub(crate) fn written(
    converter: &mut Converter<'_>,
    columns: &[(&str, ColumnType)],
    document: &Document,
) -> Result<Vec<Written>, Unfit> {
    let mut all = Vec::with_capacity(columns.len());
    converter.convert(document, |column, name, cell| {
        let text = match cell {
            Cell::Json(text) => Some(utf8(text.to_vec())),
            Cell::Value(Value::Null) => None,
            Cell::Value(value) => Some(of_value(columns[column].1, value).map_err(|what| {
                let what = what.unwrap_or_else(|| format!("is no {}", columns[column].1.name()));
                Unfit(format!("`{name}` {what}"))
            })?),
        };
        if text.as_ref().is_some_and(|text| text.contains('\0')) {
            let reason = "holds a NUL character, which Postgres cannot";
            return Err(Unfit(format!("`{name}` {reason}")));
        }
        all.push(text);
        Ok(())
    })?;
    Ok(all)
}

fn utf8(text: Vec<u8>) -> String {
    String::from_utf8(text).expect("JSON is made of text")
}

/// A value as text; why not, if that is not just that it is none of the type's.
fn of_value(kind: ColumnType, value: &Value) -> Result<String, Option<String>> {
    match (kind.form(), value) {
        (Form::Integer(least, most), Value::Integer(number)) if (least..=most).contains(number) => {
            Ok(number.to_string())
        }
        (Form::Single, Value::Real(number)) => single(*number).ok_or(None),
        (Form::Double, Value::Real(number)) => Ok(double(*number)),
        (Form::Number, Value::Json(text)) if is_canonical(text) => Ok(text.to_string()),
        (Form::Number, Value::Text(text)) if is_special(text) => Ok(text.to_string()),
        (Form::Boolean, Value::Json(text)) if ["true", "false"].contains(&&**text) => {
            Ok(text.to_string())
        }
        (Form::Text | Form::Time | Form::Written, Value::Text(text)) => Ok(text.to_string()),
        (Form::Bytes, Value::Blob(bytes)) => Ok(hex(bytes)),
        (Form::Json, Value::Json(text)) => Ok(text.to_string()),
        (Form::Json, other) => {
            let mut text = Vec::new();
            write_value(&mut text, other).map_err(|what| Some(what.0.to_owned()))?;
            Ok(utf8(text))
        }
        (Form::Written, Value::Json(text)) => Ok(text.to_string()),
        (Form::Written, Value::Integer(number)) => Ok(number.to_string()),
        (Form::Written, Value::Real(number)) => Ok(double(*number)),
        (Form::Written, Value::Blob(bytes)) => Ok(hex(bytes)),
        (Form::Text | Form::Written, Value::InvalidText(_)) => {
            Err(Some("holds text that is not UTF-8".to_owned()))
        }
        _ => Err(None),
    }
}

/// The fewest digits that read back as the same number.
fn double(number: f64) -> String {
    if number.is_infinite() {
        return infinity(number < 0.0);
    }
    format!("{number:?}")
}

/// The same for 32 bits; none if the number is not one that a column of 32 bits reads as.
fn single(number: f64) -> Option<String> {
    if number.is_infinite() {
        return Some(infinity(number < 0.0));
    }
    #[expect(clippy::cast_possible_truncation, reason = "what is lost is looked for")]
    let text = format!("{:?}", number as f32);
    let read: f64 = text.parse().ok()?;
    (read.to_bits() == number.to_bits() || (read.is_nan() && number.is_nan())).then_some(text)
}

fn infinity(negative: bool) -> String {
    (if negative { "-Infinity" } else { "Infinity" }).to_owned()
}

fn is_special(text: &str) -> bool {
    ["NaN", "Infinity", "-Infinity"].contains(&text)
}

/// Whether Postgres would write the number just so.
fn is_canonical(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let zero = !digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    are_digits(whole)
        && fraction.is_none_or(are_digits)
        && (whole == "0" || !whole.starts_with('0'))
        && !(zero && number.starts_with('-'))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    text
}

#[cfg(test)]
mod tests;
