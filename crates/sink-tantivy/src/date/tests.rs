//! Dates are read in every unit that may be configured.

use super::*;

fn told(text: &str) -> Result<i64, NoMoment> {
    parse(text).map(|moment| moment.into_timestamp_micros())
}

#[test]
fn iso_and_sqlites_forms_are_read_to_the_microsecond() {
    for (text, since_midnight) in [
        ("2026-11-30", 0),
        ("2026-11-30 00:00", 0),
        ("2026-12-01T00:00:01", 86_401_000_000),
        ("2026-11-30T19:06:08.5", 68_768_500_000),
        ("2026-11-30 19:06:08.123456", 68_768_123_456),
        ("2026-11-30t19:06:08.123456789z", 68_768_123_456),
        ("2026-11-30T19:06:08+01:00", 65_168_000_000),
        ("2026-11-30T19:06:08-0130", 74_168_000_000),
    ] {
        let day = parse("2026-11-30").expect("a date").into_timestamp_micros();
        assert_eq!(told(text), Ok(day + since_midnight), "{text}");
    }
    assert_eq!(told("1970-01-01T00:00:00Z"), Ok(0));
    assert_eq!(told("1969-12-31T23:59:59.999999Z"), Ok(-1));
}

#[test]
fn what_is_no_date_is_refused() {
    for text in [
        "",
        "infinity",
        "2026",
        "2026-11",
        "2026-13-01",
        "2026-02-30",
        "2026-11-30T",
        "2026-11-30T25:00",
        "2026-11-30T19:06:60",
        "2026-11-30T19:06:08.",
        "2026-11-30T19:06.5",
        "2026-11-30T19:06:08.x",
        "2026-11-30T19:06:08+1",
        "2026-11-30T19:06:08+25:00",
        "2026-11-30 19:06:08 CET",
        "2026-11-3０",
        "+2026-11-30",
        "20261130",
        "1.5",
    ] {
        assert_eq!(told(text), Err(NO_DATE), "{text}");
    }
}

#[test]
fn moment_that_does_not_fit_is_refused_and_not_clamped() {
    for text in ["1677-09-20", "2262-04-12", "0001-01-01", "9999-12-31T23:59:59Z"] {
        assert_eq!(told(text), Err(OUT_OF_RANGE), "{text}");
    }
    assert!(told("1677-09-22").is_ok() && told("2262-04-11").is_ok());
    for (number, unit) in [
        (i64::MAX, DateUnit::Seconds),
        (i64::MIN, DateUnit::Milliseconds),
        (i64::MAX, DateUnit::Microseconds),
    ] {
        assert_eq!(from_number(number, unit).err(), Some(OUT_OF_RANGE));
    }
}

#[test]
fn number_is_a_moment_only_with_a_unit() {
    for (unit, number) in [
        (DateUnit::Seconds, 86_400),
        (DateUnit::Milliseconds, 86_400_000),
        (DateUnit::Microseconds, 86_400_000_000),
    ] {
        assert_eq!(from_number(number, unit), parse("1970-01-02"));
    }
    assert!(from_number(0, DateUnit::Text).is_err());
}
