//! Documents become fields, or are refused with the field that does not fit.

use tantivy::schema::Value as _;
use truekeep_core::{RulesNumber, Version};

use super::*;
use crate::spec::{IndexSpec, WRITER_BYTES_MIN};

fn layout(kind: FieldKind) -> Layout {
    let (indexed, stored, fast, required) = (true, true, false, false);
    let field = FieldSpec { name: "f".into(), kind, indexed, stored, fast, required };
    Layout::wanted(&IndexSpec { fields: vec![field], writer_bytes: WRITER_BYTES_MIN })
}

fn rank() -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(1) }
}

fn digest(layout: &Layout, document: &Document) -> Result<Vec<u8>, Unfit> {
    let made = Maker::new(layout).live(&Key::new("k"), rank(), document)?;
    let digest = made.get_first(layout.digest).and_then(|digest| digest.as_bytes().map(Vec::from));
    Ok(digest.expect("every live record has one"))
}

fn made(layout: &Layout, value: Value) -> Result<Vec<u8>, Unfit> {
    let names = Arc::new(["f".into()]);
    digest(layout, &Document::new(names, vec![value]))
}

fn json(text: &str) -> Value {
    Value::Json(text.into())
}

#[test]
fn digest_is_of_the_values_and_not_of_their_form() {
    let layout = layout(FieldKind::Json(crate::analysis::Analysis {
        split: crate::analysis::Split::Words,
        fold: false,
        language: None,
    }));
    let one = made(&layout, json(r#"{"a":1,"b":[ ]}"#));
    assert_eq!(one, made(&layout, json(r#"{ "b" : [], "a" : 1 }"#)));
    for other in [r#"{"a":1}"#, r#"{"a":1,"b":null}"#, r#"{"a":"1","b":[]}"#, "null"] {
        assert_ne!(one, made(&layout, json(other)), "{other}");
    }
}

#[test]
fn digest_tells_values_apart_that_look_alike() {
    let layout = layout(FieldKind::Keyword);
    let values = [
        Value::Null,
        Value::Text("".into()),
        Value::Text("ab".into()),
        json(r#"["ab"]"#),
        json(r#"["a","b"]"#),
        json(r#"["","ab"]"#),
        json(r#"["a","",  "b"]"#),
    ];
    let digests: Vec<Vec<u8>> =
        values.iter().map(|value| made(&layout, value.clone()).expect("it fits")).collect();
    for (place, digest) in digests.iter().enumerate() {
        let same: Vec<usize> = (0..digests.len()).filter(|p| digests[*p] == *digest).collect();
        // A list of one is that one: the index holds the same.
        let expected = if (2..4).contains(&place) { vec![2, 3] } else { vec![place] };
        assert_eq!(same, expected);
    }
}

#[test]
fn document_that_is_one_json_object_is_read_by_its_names() {
    let layout = layout(FieldKind::Signed);
    let document =
        |name: &str, text: &str| Document::new(Arc::new([name.into()]), vec![json(text)]);
    let made = |document: &Document| digest(&layout, document);
    let seven = made(&document("f", "7"));
    assert_eq!(seven, made(&document("whole", r#"{"f":7,"other":[1]}"#)));
    let missing = made(&document("whole", "{}"));
    assert!(missing.is_ok() && missing != seven);
    assert_ne!(missing, made(&document("whole", r#"{"f":null}"#)), "NULL is a value");
    for text in ["[7]", "7", "{", r#"{"f":"7"}"#] {
        made(&document("whole", text)).expect_err(text);
    }
}

#[test]
fn document_without_a_field_is_refused_by_its_name() {
    let layout = layout(FieldKind::Signed);
    let document = Document::new(Arc::new(["g".into()]), vec![Value::Integer(1)]);
    let refused = Maker::new(&layout).live(&Key::new("k"), rank(), &document).expect_err("unfit");
    assert_eq!(refused.0, "the document has no value `f`");
}
