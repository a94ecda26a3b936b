//! Durations and sizes with their units, as people write them.

use std::time::Duration;

use truekeep_core::limits::DURATION_MAX;

/// Units of time with their milliseconds.
const TIMES: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Units of size with their bytes; as in storage, a kilobyte is 1,024 bytes.
const SIZES: &[(&str, u64)] = &[("B", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];

/// Parses "30 s", "500ms": a whole number with a unit, from a millisecond to a year.
///
/// # Errors
/// What a duration looks like.
pub fn duration(text: &str) -> Result<Duration, String> {
    let form = || format!("a duration looks like \"30 s\"; units are {}", names(TIMES));
    let length = Duration::from_millis(parse(text, TIMES).ok_or_else(form)?);
    match length {
        Duration::ZERO => Err("a duration is at least 1 ms".to_owned()),
        length if length > DURATION_MAX => Err("a duration is at most 366 d".to_owned()),
        length => Ok(length),
    }
}

/// Parses "16 MB", "4kB": a whole number with a unit, at least a byte.
///
/// # Errors
/// What a size looks like.
pub fn size(text: &str) -> Result<usize, String> {
    let form = || format!("a size looks like \"16 MB\"; units are {}", names(SIZES));
    let bytes = parse(text, SIZES).ok_or_else(form)?;
    match usize::try_from(bytes) {
        Ok(0) => Err("a size is at least 1 B".to_owned()),
        Ok(bytes) if bytes <= 1 << 30 => Ok(bytes),
        _ => Err("a size is at most 1 GB".to_owned()),
    }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

fn names(units: &[(&str, u64)]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_with_a_unit_within_a_year() {
        for (text, ms) in
            [("30 s", 30_000), ("500ms", 500), (" 2 min ", 120_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        let refused = [
            "",
            "s",
            "30",
            "30 sec",
            "1.5 s",
            "-1 s",
            "0 s",
            "367 d",
            "99999999999999999999 s",
            "NaN s",
            "inf s",
            "18446744073709551615 d",
        ];
        for text in refused {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_a_whole_number_with_a_unit_within_a_gigabyte() {
        assert_eq!(size("16 MB"), Ok(16 << 20));
        assert_eq!(size("4kB"), Ok(4 << 10));
        for text in ["", "16", "0 B", "2 GB", "-1 MB", "1 mb", "18446744073709551615 GB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
