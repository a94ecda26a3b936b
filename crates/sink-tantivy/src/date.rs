//! Moments as text: ISO 8601 and what SQLite's own functions write, read to the microsecond.

use tantivy::DateTime;
use tantivy::time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

use crate::spec::DateUnit;

/// Why a value is no moment; the text completes "`name` ...".
pub(crate) type NoMoment = &'static str;

const NO_DATE: NoMoment = "is not a date in ISO 8601";
const OUT_OF_RANGE: NoMoment = "is a date before 1677-09-21 or after 2262-04-11";

/// Reads "2026-11-30", "2026-11-30 19:06", "2026-11-30T19:06:08.123456Z", "...+01:00". A time
/// without an offset is UTC. What is finer than a microsecond is cut off.
pub(crate) fn parse(text: &str) -> Result<DateTime, NoMoment> {
    let moment = read(text).ok_or(NO_DATE)?;
    DateTime::try_from_utc(moment).ok_or(OUT_OF_RANGE)
}

/// A number of units since 1970 as a moment.
pub(crate) fn from_number(number: i64, unit: DateUnit) -> Result<DateTime, NoMoment> {
    let nanoseconds = match unit {
        DateUnit::Text => return Err("is a number, and the field has no `unit`"),
        DateUnit::Seconds => 1_000_000_000,
        DateUnit::Milliseconds => 1_000_000,
        DateUnit::Microseconds => 1_000,
    };
    let since = number.checked_mul(nanoseconds).ok_or(OUT_OF_RANGE)?;
    Ok(DateTime::from_timestamp_nanos(since))
}

fn read(text: &str) -> Option<tantivy::time::OffsetDateTime> {
    let bytes = text.as_bytes();
    // The first ten bytes are ASCII if this is a date at all, so that cutting there is sound.
    if !text.is_ascii() || bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let month = Month::try_from(digits(&text[5..7])? as u8).ok()?;
    let date =
        Date::from_calendar_date(digits(&text[..4])? as i32, month, digits(&text[8..10])? as u8);
    let date = date.ok()?;
    let rest = match &text[10..] {
        "" => return Some(PrimitiveDateTime::new(date, Time::MIDNIGHT).assume_utc()),
        rest => rest.strip_prefix(['T', 't', ' '])?,
    };
    let (time, offset) = match rest.find(['Z', 'z', '+', '-']) {
        None => (rest, UtcOffset::UTC),
        Some(place) => (&rest[..place], self::offset(&rest[place..])?),
    };
    Some(PrimitiveDateTime::new(date, self::time(time)?).assume_offset(offset))
}

fn time(text: &str) -> Option<Time> {
    let (clock, fraction) = match text.split_once('.') {
        None => (text, ""),
        Some((_, "")) => return None,
        Some((clock, fraction)) => (clock, fraction),
    };
    let mut parts = clock.split(':');
    let mut next = || parts.next().filter(|part| part.len() == 2).and_then(digits);
    let (hour, minute) = (next()?, next()?);
    let second = match clock.len() {
        5 if fraction.is_empty() => 0,
        8 => next()?,
        _ => return None,
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = digits(&format!("{fraction:0<6}")[..6])?;
    Time::from_hms_micro(hour as u8, minute as u8, second as u8, micros).ok()
}

fn offset(text: &str) -> Option<UtcOffset> {
    if text.eq_ignore_ascii_case("z") {
        return Some(UtcOffset::UTC);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = match text[1..].split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if text.len() == 5 => text[1..].split_at(2),
        None => return None,
    };
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)? as i8, digits(minutes)? as i8);
    // The type goes on to 25 hours, for the arithmetic of others.
    (hours < 24).then(|| UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()).flatten()
}

/// A number of at most nine digits and nothing else.
fn digits(text: &str) -> Option<u32> {
    let whole = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    whole.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
