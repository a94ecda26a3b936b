//! Which values columns take, and how they are written.

use super::*;

fn text(declared: &str, value: Value) -> Option<String> {
    of_value(ColumnType::of_postgres(declared), &value).ok()
}

/// Different means different: a number that a column would hold otherwise is refused.
#[test]
fn numbers_are_written_exactly_or_not_at_all() {
    let json = |text: &str| Value::Json(text.into());
    for canonical in ["0", "-1", "0.00", "1.50", "-0.1", "99999999999999999999999999999999999999.5"]
    {
        assert_eq!(text("numeric", json(canonical)).as_deref(), Some(canonical));
    }
    for other in ["-0", "-0.00", "01", "1e3", "1.", ".5", "+1", "", "-", "1.5.2", "NaN"] {
        assert_eq!(text("numeric", json(other)), None, "{other}");
    }
    assert_eq!(text("numeric", Value::Text("NaN".into())).as_deref(), Some("NaN"));
    assert_eq!(text("smallint", Value::Integer(32_767)).as_deref(), Some("32767"));
    assert_eq!(text("smallint", Value::Integer(32_768)), None);
    assert_eq!(text("oid", Value::Integer(-1)), None);
    assert_eq!(text("bigint", Value::Integer(i64::MIN)).as_deref(), Some("-9223372036854775808"));
    assert_eq!(text("bigint", Value::Text("1".into())), None);
    for (number, said) in [
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1e300, "1e300"),
        (5e-324, "5e-324"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(text("double precision", Value::Real(number)).as_deref(), Some(said));
    }
    assert_eq!(text("real", Value::Real(0.1)).as_deref(), Some("0.1"));
    assert_eq!(text("real", Value::Real(0.1 + 1e-12)), None);
    assert_eq!(text("real", Value::Real(1e300)), None);
}

#[test]
fn kinds_of_values_are_not_mixed_up() {
    assert_eq!(text("boolean", Value::Json("true".into())).as_deref(), Some("true"));
    assert_eq!(text("boolean", Value::Integer(1)), None);
    assert_eq!(text("text", Value::Blob(b"hi".as_slice().into())), None);
    assert_eq!(text("text", Value::Integer(5)), None);
    assert_eq!(text("bytea", Value::Blob([0, 255].into())).as_deref(), Some("\\x00ff"));
    assert_eq!(text("bytea", Value::Text("\\x00ff".into())), None);
    assert_eq!(text("json", Value::Text("5".into())).as_deref(), Some("\"5\""));
    assert_eq!(text("json", Value::Integer(5)).as_deref(), Some("5"));
    assert_eq!(text("json", Value::Real(f64::NAN)), None);
    assert_eq!(text("mood", Value::Text("sad".into())).as_deref(), Some("sad"));
}
