//! What changes a fingerprint, and what must not.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::Config;

const GOOD: &str = r#"
[source.app]
url = "sqlite:app.db"
[pipeline.cities]
source = "app"
table = "cities"
key = "id"
document = ["id", "name"]
sink = "mirror"
page_rows = 10
document_max = "1 MB"
[sink.mirror]
kind = "sqlite"
url = "sqlite:mirror.db"
table = "cities"
"#;

fn rules(from: &str, to: &str) -> Rules {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let config = Config::parse(Path::new("truekeep.toml"), &text, &|_| None).expect("good");
    let pipeline = &config.pipelines[0];
    Rules::of(pipeline, config.sink_of(pipeline), &["id INTEGER".to_owned()])
}

#[test]
fn the_text_of_rules_has_a_promised_form() {
    let rules = rules("", "");
    assert_eq!(
        rules.text,
        r#"{"form":1,"table":"cities","key":["id"],"normal_form":false,"document":["id","name"],"live_when":null,"watch":[],"sink":{"kind":"sqlite","table":"cities","layout":"columns"},"source":["id INTEGER"]}"#
    );
    assert_eq!(
        rules.fingerprint.as_str(),
        "f3641b2c4119405c15b5863ba8eaed546176eae9b419e1d5fc92e322ff6370ad"
    );
}

#[test]
fn whatever_decides_a_document_changes_the_fingerprint() {
    let before = rules("", "").fingerprint;
    for (from, to) in [
        ("table = \"cities\"\nkey", "table = \"towns\"\nkey"),
        ("key = \"id\"", "key = \"name\""),
        ("[\"id\", \"name\"]", "[\"name\", \"id\"]"),
        ("document = [\"id\", \"name\"]\n", ""),
        ("document = [\"id\", \"name\"]", "document = { sql = \"SELECT 1\" }"),
        ("key = \"id\"", "key = \"id\"\nnormal_form = true"),
        ("key = \"id\"", "key = \"id\"\nlive_when = \"a\""),
        ("key = \"id\"", "key = \"id\"\nwatch = [{ table = \"n\", key = \"c\" }]"),
        ("db\"\ntable = \"cities\"", "db\"\ntable = \"towns\""),
        ("kind = \"sqlite\"", "kind = \"sqlite\"\nlayout = { json = \"d\" }"),
    ] {
        assert_ne!(rules(from, to).fingerprint, before, "{to}");
    }
    let config = Config::parse(Path::new("truekeep.toml"), GOOD, &|_| None).expect("good");
    let pipeline = &config.pipelines[0];
    let retyped = Rules::of(pipeline, config.sink_of(pipeline), &["id TEXT".to_owned()]);
    assert_ne!(retyped.fingerprint, before, "a column's type");
}

#[test]
fn what_decides_no_document_leaves_the_fingerprint_alone() {
    let before = rules("", "").fingerprint;
    for (from, to) in [
        ("page_rows = 10", "page_rows = 20"),
        ("document_max = \"1 MB\"", "document_max = \"2 MB\""),
        ("sqlite:mirror.db", "sqlite:elsewhere.db"),
        ("sqlite:app.db", "sqlite:moved.db"),
    ] {
        assert_eq!(rules(from, to).fingerprint, before, "{to}");
    }
}

#[test]
fn a_difference_names_its_part() {
    let (before, after) = (rules("", ""), rules("[\"id\", \"name\"]", "[\"id\"]"));
    let found = differences(&before.text, &after.text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].part, "document");
    assert_eq!(found[0].after, json!(["id"]));
    assert!(differences(&before.text, &before.text).is_empty());
    assert_eq!(differences("no JSON", &before.text)[0].part, "document");
}
