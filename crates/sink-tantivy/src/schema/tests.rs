//! An index is told from one of other fields.

use super::*;
use crate::analysis::{Language, Split};
use crate::spec::{DateUnit, WRITER_BYTES_MIN};

const WORDS: Analysis = Analysis { split: Split::Words, fold: false, language: None };

fn field(name: &str, kind: FieldKind) -> FieldSpec {
    let (indexed, stored, fast, required) = (true, true, false, false);
    FieldSpec { name: name.into(), kind, indexed, stored, fast, required }
}

fn layout(fields: Vec<FieldSpec>) -> Layout {
    Layout::wanted(&IndexSpec { fields, writer_bytes: WRITER_BYTES_MIN })
}

fn all() -> Vec<FieldSpec> {
    [
        ("text", FieldKind::Text(WORDS)),
        ("keyword", FieldKind::Keyword),
        ("facet", FieldKind::Facet),
        ("date", FieldKind::Date(DateUnit::Text)),
        ("i64", FieldKind::Signed),
        ("u64", FieldKind::Unsigned),
        ("f64", FieldKind::Real),
        ("bool", FieldKind::Boolean),
        ("json", FieldKind::Json(WORDS)),
    ]
    .map(|(name, kind)| field(name, kind))
    .into()
}

#[test]
fn order_of_the_fields_is_no_difference() {
    let mut fields = all();
    let found = layout(fields.clone()).schema;
    fields.reverse();
    let over = layout(fields).over(&found).expect("it fits");
    for (spec, place) in &over.fields {
        assert_eq!(found.get_field_name(*place), spec.name);
    }
}

#[test]
fn every_change_of_a_field_is_a_difference() {
    let found = layout(all()).schema;
    for place in 0..all().len() {
        let change = |change: fn(&mut FieldSpec)| {
            let mut fields = all();
            change(&mut fields[place]);
            (fields[place].name.clone(), layout(fields).over(&found))
        };
        let mut changes = vec![change(|field| field.stored = false)];
        if !matches!(all()[place].kind, FieldKind::Facet) {
            changes.push(change(|field| field.indexed = false));
            changes.push(change(|field| field.fast = true));
        }
        for (name, over) in changes {
            let error = over.expect_err("it differs");
            assert_eq!(error.code, Code::INDEX_MISMATCH);
            assert!(error.detail.starts_with(&format!("field `{name}` is ")), "{}", error.detail);
        }
    }
}

#[test]
fn differences_are_told_field_by_field() {
    let found = layout(all()).schema;
    let mut fields = all();
    fields[0].kind = FieldKind::Text(Analysis { language: Some(Language::English), ..WORDS });
    fields[4].kind = FieldKind::Unsigned;
    fields.remove(1);
    fields.push(field("new", FieldKind::Boolean));
    let error = layout(fields).over(&found).expect_err("it differs");
    assert_eq!(
        error.detail,
        "field `text` is text by `truekeep1:words`, stored, not text by \
         `truekeep1:words:english`, stored; \
         field `i64` is i64, stored, not u64, stored; \
         it lacks field `new` (bool, stored); \
         it has field `keyword` (keyword, stored) too many"
    );
}

#[test]
fn index_of_another_program_differs() {
    let mut builder = SchemaBuilder::default();
    builder.add_text_field("body", tantivy::schema::TEXT);
    let error = layout(all()).over(&builder.build()).expect_err("it differs");
    assert!(error.detail.contains("it lacks field `_key`"), "{}", error.detail);
}
