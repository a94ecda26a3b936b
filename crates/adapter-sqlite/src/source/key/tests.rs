//! SQL and Rust write the same text, and the way back is exact.

use rusqlite::Connection;

use super::*;

const FORMS: [Form; 8] = [
    Form::Integer,
    Form::Bytes,
    Form::Text { fold: Fold::None, blobs: false },
    Form::Text { fold: Fold::None, blobs: true },
    Form::Text { fold: Fold::Case, blobs: true },
    Form::Text { fold: Fold::Trailing, blobs: true },
    Form::Any { fold: Fold::None },
    Form::Any { fold: Fold::Case },
];

fn parts() -> Vec<Part> {
    let text = |text: &str| Part::Text(text.as_bytes().to_vec());
    let mut all = vec![Part::Null, Part::Blob(vec![]), Part::Blob(vec![0, 255, 58])];
    all.extend([0, 1, -1, 10, i64::MIN, i64::MAX].map(Part::Integer));
    all.extend(
        ["", "a", "A b ", "é", "b:", "n:", "u:", "x:", "t:", "r:", "a\0", "\"\\", "\n", "[1]"]
            .map(text),
    );
    all.push(Part::Text(vec![0xff, b'A']));
    let powers = (-70..125).map(|power| 1.1 * 2f64.powi(power));
    let reals = powers.chain([
        0.5,
        -0.25,
        0.1,
        1e18 + 0.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e-300,
        1e300,
        -0.0,
    ]);
    all.extend(reals.flat_map(|real| [real, -real]).map(Part::Real));
    all
}

fn fits(form: Form, part: &Part) -> bool {
    match form {
        Form::Integer => matches!(part, Part::Integer(_)),
        Form::Bytes => matches!(part, Part::Blob(_)),
        Form::Text { blobs, .. } => {
            matches!(part, Part::Text(_)) || (blobs && matches!(part, Part::Blob(_)))
        }
        Form::Any { .. } => true,
    }
}

/// The text that SQL makes of values.
fn by_sql(db: &Connection, shape: &KeyShape, parts: &[Part]) -> Vec<u8> {
    let columns: Vec<String> =
        (1..=parts.len()).map(|n| format!("?{n} AS {}", shape.columns[n - 1].sql)).collect();
    let sql = format!("SELECT {} FROM (SELECT {}) AS x", shape.text("x."), columns.join(", "));
    let mut statement = db.prepare(&sql).expect("prepared");
    statement
        .query_row(rusqlite::params_from_iter(parts), |row| Ok(bytes(row, 0)?.to_vec()))
        .expect("a text")
}

fn check(db: &Connection, shape: &KeyShape, parts: &[Part]) {
    let text = by_sql(db, shape, parts);
    let shown = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(text, shape.render(parts), "{parts:?}: {shown}");
    let back = shape.parse_stored(&text).unwrap_or_else(|| panic!("{parts:?}: {shown}"));
    if back.contains(&Part::Unspeakable) {
        assert!(!speakable(&key(&text), &back));
        return;
    }
    assert_eq!(by_sql(db, shape, &back), text, "{parts:?} as {back:?}");
    for (part, back) in parts.iter().zip(&back) {
        if let (Part::Real(real), Part::Real(back)) = (part, back) {
            assert_eq!(real.to_bits(), back.to_bits());
        }
    }
    assert_eq!(*stored(&key(&text)), *text, "through a key and back");
    assert_eq!(shape.parse(&key(&text)), Some(back));
}

#[test]
fn sql_and_rust_write_the_same_text() {
    let db = Connection::open_in_memory().expect("opened");
    let column = |name: &str, form, nullable| KeyColumn { sql: name.into(), form, nullable };
    for form in FORMS {
        for part in parts() {
            let nullable = part == Part::Null;
            if !nullable && !fits(form, &part) {
                continue;
            }
            let one = KeyShape { columns: vec![column("a", form, nullable)] };
            check(&db, &one, std::slice::from_ref(&part));
            for other in [Part::Integer(7), Part::Text(b"a,\"]".to_vec())] {
                let any = Form::Any { fold: Fold::None };
                let two = KeyShape {
                    columns: vec![column("a", form, nullable), column("b", any, false)],
                };
                check(&db, &two, &[part.clone(), other]);
            }
        }
    }
}

#[test]
fn a_text_that_sql_would_not_write_is_no_key() {
    let shape =
        |form| KeyShape { columns: vec![KeyColumn { sql: "a".into(), form, nullable: true }] };
    let any = shape(Form::Any { fold: Fold::None });
    for text in [
        "", "01", "+1", "-0", "1.0", "a", "x:61", "x:", "b:0", "b:ff", "r:1:0:0", "r:0:1", "R:0:0",
        "r:nan", "u:61", "i:1",
    ] {
        assert_eq!(any.parse(&Key::new(text)), None, "{text}");
    }
    let text = shape(Form::Text { fold: Fold::Case, blobs: false });
    for strange in ["A", "x:61", "x:", "b:61", "u:FF"] {
        let parsed = text.parse(&Key::new(strange));
        let broken = strange == "u:FF";
        assert_eq!(parsed, broken.then(|| vec![Part::Text(vec![0xff])]), "{strange}");
    }
}
