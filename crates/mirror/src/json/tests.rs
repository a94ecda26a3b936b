//! Every kind of value, as JSON says it.

use super::*;

fn said(value: &Value) -> Result<String, &'static str> {
    let mut out = Vec::new();
    write_value(&mut out, value).map_err(|unsayable| unsayable.0)?;
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

#[test]
fn numbers_keep_every_digit() {
    for (number, text) in [
        (0, "0"),
        (-1, "-1"),
        (9_007_199_254_740_993, "9007199254740993"),
        (i64::MAX, "9223372036854775807"),
        (i64::MIN, "-9223372036854775808"),
    ] {
        assert_eq!(said(&Value::Integer(number)), Ok(text.into()));
    }
    for (number, text) in [
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
    ] {
        assert_eq!(said(&Value::Real(number)), Ok(text.into()));
        let read: f64 = text.parse().expect("a number");
        assert_eq!(read.to_bits(), number.to_bits());
    }
}

#[test]
fn infinities_are_as_sqlite_writes_and_reads_them() {
    let db = rusqlite::Connection::open_in_memory().expect("opened");
    for number in [f64::INFINITY, f64::NEG_INFINITY] {
        let ours = said(&Value::Real(number)).expect("said");
        let theirs: String =
            db.query_row("SELECT json_quote(?1)", [number], |row| row.get(0)).expect("read");
        assert_eq!(ours, theirs);
        let read: f64 = db
            .query_row("SELECT json_extract('[' || ?1 || ']', '$[0]')", [&ours], |row| row.get(0))
            .expect("read");
        assert_eq!(read, number);
    }
}

#[test]
fn what_json_cannot_say_is_refused() {
    assert_eq!(said(&Value::Real(f64::NAN)), Err("is not a number"));
    let bytes = Value::InvalidText([0x61, 0xff].into());
    assert_eq!(said(&bytes), Err("holds text that is not UTF-8"));
}

#[test]
fn text_is_whole() {
    assert_eq!(said(&Value::Null), Ok("null".into()));
    assert_eq!(said(&Value::Text("".into())), Ok("\"\"".into()));
    let text = "a\0b\"\\\n\u{1}\u{7f}\u{2028}é漢\u{10ffff}";
    let json = said(&Value::Text(text.into())).expect("said");
    assert!(json.starts_with(r#""a\u0000b\"\\\n\u0001"#), "{json}");
    assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
}

#[test]
fn blobs_are_base64() {
    // The vectors of RFC 4648, section 10.
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        let blob = Value::Blob(bytes.as_bytes().into());
        assert_eq!(said(&blob), Ok(format!("\"{text}\"")));
    }
    assert_eq!(said(&Value::Blob([0xfb, 0xff, 0].into())), Ok("\"+/8A\"".into()));
}

#[test]
fn json_is_copied() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    for json in [r#"{"a":1, "a":2.50,"b" : 1E400}"#, " null ", &deep] {
        assert_eq!(said(&Value::Json(json.into())), Ok(json.into()));
    }
}
