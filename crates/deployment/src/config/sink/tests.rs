//! Tables of a server as sinks.

use std::path::Path;

use super::*;
use crate::Config;

/// Pipelines of one source, each with its table and the keys of its sink.
fn parse(source: &str, pipelines: &[(&str, &str)]) -> Result<Config, String> {
    let mut text = format!("[source.app]\nurl = \"{source}\"\n");
    for (number, (table, sink)) in pipelines.iter().enumerate() {
        text += &format!(
            "[pipeline.p{number}]\nsource = \"app\"\ntable = \"{table}\"\nsink = \"s{number}\"\n\
             [sink.s{number}]\nkind = \"postgres\"\n{sink}\n"
        );
    }
    Config::parse(Path::new("truekeep.toml"), &text, &|_| None).map_err(|error| error.to_string())
}

const FILE: &str = "sqlite:app.db";
const SERVER: &str = "postgres://me:s3cr3t@db/shop";
const TABLE: &str = "url = \"postgres://me:s3cr3t@db/shop\"\ntable = \"mirror\"";

#[test]
fn a_table_of_a_server_has_a_schema_and_a_layout() {
    let config = parse(FILE, &[("t", TABLE)]).expect("good");
    let TargetConfig::Table(table) = &config.sinks["s0"].target else { panic!("a table") };
    assert_eq!((table.schema.as_str(), table.table.as_str()), ("public", "mirror"));
    assert_eq!(table.layout, LayoutConfig::Columns);
    assert_eq!(
        config.sinks["s0"].target.to_string(),
        "table `public.mirror` in postgres://me:..@db/shop"
    );
    assert!(!format!("{:?}", config.sinks["s0"]).contains("s3cr3t"));
    let more = format!("{TABLE}\nschema = \"a b\"\nlayout = {{ json = \"document\" }}");
    let config = parse(FILE, &[("t", &more)]).expect("good");
    let TargetConfig::Table(table) = &config.sinks["s0"].target else { panic!("a table") };
    assert_eq!(table.schema, "a b");
    assert_eq!(table.layout, LayoutConfig::Json("document".into()));
}

#[test]
fn what_is_no_table_of_a_server_is_named() {
    for (sink, told) in [
        ("table = \"m\"", "has no `url`"),
        ("url = \"sqlite:a.db\"\ntable = \"m\"", "no address of a Postgres server"),
        ("url = \"postgres://db/shop\"", "has no `table`"),
        ("url = \"postgres://db/shop\"\ntable = \"m\"\nschema = \"\"", "`schema` is empty"),
        ("url = \"postgres://db/shop\"\ntable = \"m\"\npath = \"x\"", "path"),
    ] {
        let error = parse(FILE, &[("t", sink)]).expect_err("it is none");
        assert!(error.contains(told), "{error}");
    }
}

/// Rule 125: one table has one writer, and none is its own source, however it is spelt.
#[test]
fn two_spellings_of_one_table_are_one() {
    let other = "url = \"postgresql://you@DB:5432/shop\"\nschema = \"public\"\ntable = \"mirror\"";
    let error = parse(FILE, &[("t", TABLE), ("u", other)]).expect_err("one table");
    assert!(error.contains("write one sink"), "{error}");
    for table in ["mirror", "public.mirror"] {
        let error = parse(SERVER, &[(table, TABLE)]).expect_err("its own source");
        assert!(error.contains("would write the table that it follows"), "{error}");
    }
    let elsewhere = format!("{TABLE}\nschema = \"mirrors\"");
    parse(SERVER, &[("mirror", &elsewhere)]).expect("another schema");
    parse(SERVER, &[("t", TABLE), ("u", &elsewhere)]).expect("two tables");
}
