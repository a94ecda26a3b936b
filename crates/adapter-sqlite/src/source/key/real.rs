//! Doubles as text, exactly, with arithmetic that every SQLite does alike.
//!
//! No library's decimal printing is trusted: it differs between versions of SQLite, and the text
//! is made by the application's one. Each step here (truncation, the fraction left, a product with
//! a power of two) is exact in binary floating point.

/// 2^62, as an integer: SQLite turns it into a double without rounding.
const TWO_62: i64 = 1 << 62;
/// 2^60: above this, less one over it has bits that the text does not hold.
const TWO_60: i64 = 1 << 60;
/// 2^52.
const TWO_52: i64 = 1 << 52;

/// The text as SQL; `string` wraps what is no plain integer.
pub(super) fn sql(value: &str, string: &dyn Fn(String) -> String) -> String {
    let split = |whole: &str| {
        let part = format!("CAST({whole} AS INTEGER)");
        let high = format!("({whole} - {part}) * {TWO_62}");
        (part, format!("CAST({high} AS INTEGER)"), high)
    };
    let (part, high_bits, high) = split(value);
    let low_bits = format!("CAST(({high} - {high_bits}) * {TWO_52} AS INTEGER)");
    let scaled = format!("({value} / {TWO_62})");
    let (scaled_part, scaled_bits, _) = split(&scaled);
    format!(
        "CASE WHEN {value} = {part} THEN CAST({part} AS TEXT) \
         WHEN abs({value}) < {TWO_60} AND abs({value}) * {TWO_60} >= 1 \
         THEN {} \
         WHEN {value} * 0.5 = {value} THEN CASE WHEN {value} > 0 THEN {} ELSE {} END \
         WHEN abs({value}) >= {TWO_62} AND abs({value}) / {TWO_62} < {TWO_62} THEN {} \
         ELSE {} END",
        string(format!("'r:' || {part} || ':' || {high_bits} || ':' || {low_bits}")),
        string("'r:inf'".into()),
        string("'r:-inf'".into()),
        string(format!("'R:' || {scaled_part} || ':' || {scaled_bits}")),
        string("'r:?'".into()),
    )
}

/// The integer that a double equals, or else its text.
pub(super) fn text(real: f64) -> Result<i64, String> {
    let (two_60, two_62) = (TWO_60 as f64, TWO_62 as f64);
    // The cast saturates, so 2^63 would seem equal to the greatest integer.
    if (real as i64) as f64 == real && real < 9_223_372_036_854_775_808.0 {
        return Ok(real as i64);
    }
    let part = real.trunc();
    let high = (real - part) * two_62;
    let low = (high - high.trunc()) * TWO_52 as f64;
    Err(if real.abs() < two_60 && real.abs() * two_60 >= 1.0 {
        format!("r:{}:{}:{}", part as i64, high as i64, low as i64)
    } else if real.is_infinite() {
        format!("r:{real}")
    } else if real.abs() >= two_62 && real.abs() / two_62 < two_62 {
        let scaled = real / two_62;
        format!("R:{}:{}", scaled as i64, ((scaled - scaled.trunc()) * two_62) as i64)
    } else {
        "r:?".into()
    })
}

/// The double of a text; the caller checks that the text is the double's.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    let (two_52, two_62) = (TWO_52 as f64, TWO_62 as f64);
    let numbers = |text: &str| -> Option<Vec<f64>> {
        text.split(':').map(|n| n.parse::<i64>().ok().map(|n| n as f64)).collect()
    };
    match text {
        "r:inf" => return Some(f64::INFINITY),
        "r:-inf" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("r:") {
        let [part, high, low] = numbers(rest)?[..] else { return None };
        return Some(part + (high / two_62 + low / two_52 / two_62));
    }
    let [part, high] = numbers(text.strip_prefix("R:")?)?[..] else { return None };
    Some((part + high / two_62) * two_62)
}
