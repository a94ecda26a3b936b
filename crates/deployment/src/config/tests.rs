//! What a user sees of a wrong configuration, and what a right one means.

use std::path::Path;
use std::time::Duration;

use super::*;

/// A configuration without a problem; cases replace parts of it.
const GOOD: &str = r#"[source.app]
url = "sqlite:app.db"

[pipeline.cities]
source = "app"
table = "cities"
key = "id"
sink = "mirror"

[sink.mirror]
kind = "sqlite"
url = "sqlite:mirror.db"
table = "cities"
"#;

fn environment(name: &str) -> Option<String> {
    match name {
        "SHOP_DATABASE" => Some("shop.db".to_owned()),
        "SECRET" => Some("hunter2-secret".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, InvalidConfig> {
    Config::parse(Path::new("truekeep.toml"), text, &environment)
}

/// What is told when `from` in the good configuration becomes `to`.
fn told(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    match parse(&GOOD.replacen(from, to, 1)) {
        Ok(config) => format!("accepted\n{}", config.render_warnings(false)),
        Err(error) => error.to_string(),
    }
}

fn all(cases: &[(&str, &str)]) -> String {
    cases.iter().map(|(from, to)| told(from, to) + "\n\n----\n\n").collect()
}

#[test]
fn the_example_is_a_configuration_and_shows_every_key() {
    let config = parse(EXAMPLE).expect("the example parses");
    assert_eq!(config.warnings().len(), 0, "{}", config.render_warnings(false));
    for (table, keys) in schema::ALL {
        for key in *keys {
            let shown = EXAMPLE.lines().map(str::trim_start).any(|line| {
                let at = |part: &str| line.contains(&format!("{part}{key} ="));
                let heads = line.starts_with(&format!("[sink.search.{key}]"));
                !line.starts_with('#')
                    && (line.starts_with(&format!("{key} =")) || at("{ ") || at(", ") || heads)
            });
            assert!(shown, "`{key}` of `{table}` is not in the example");
        }
    }
}

#[test]
fn the_example_states_the_defaults() {
    let least = parse(GOOD).expect("good");
    let example = parse(EXAMPLE).expect("good");
    let products = example.pipeline("products").expect("there");
    let cities = least.pipeline("cities").expect("there");
    assert_eq!(products.page_rows, cities.page_rows);
    assert_eq!(products.normal_form, cities.normal_form);
    assert_eq!(products.document_max, cities.document_max);
    assert_eq!(WorkerConfig { spill: None, ..example.worker }, least.worker);
    assert_eq!(example.ledger, least.ledger);
    let layout = |config: &Config, pipeline| match &config.sink_of(pipeline).target {
        TargetConfig::Mirror(mirror) => mirror.layout.clone(),
        other => panic!("{other}"),
    };
    assert_eq!(layout(&example, products), layout(&least, cities));
}

#[test]
fn paths_are_seen_from_the_configuration() {
    let path = Path::new("/etc/keep/truekeep.toml");
    let config = Config::parse(path, GOOD, &environment).expect("good");
    let cities = config.pipeline("cities").expect("there");
    assert_eq!(
        config.source_of(cities).file().expect("a file").path(),
        Path::new("/etc/keep/app.db")
    );
    let LedgerConfig::Sqlite(ledger) = &config.ledger else { panic!("a file by default") };
    assert_eq!(ledger.path(), Path::new("/etc/keep/truekeep.db"));
    let absolute = GOOD.replace("sqlite:app.db", "sqlite:///srv/app.db");
    let config = Config::parse(path, &absolute, &environment).expect("good");
    assert_eq!(config.sources["app"].file().expect("a file").path(), Path::new("/srv/app.db"));
}

#[test]
fn a_key_that_is_left_out_is_the_primary_key() {
    let config = parse(&GOOD.replace("key = \"id\"\n", "")).expect("good");
    assert!(config.pipelines[0].key.is_empty());
}

#[test]
fn every_problem_is_told_at_once_with_its_place() {
    let text = r#"[ledgre]
url = "sqlite:truekeep.db"

[pipeline.Cities]
source = "ap"
table = ""
sink = 3
page_rows = 0
document_max = "16 megabytes"
live_when = "${NOWHERE}"

[source.app]
uri = "postgres://app"
"#;
    let error = parse(text).expect_err("wrong");
    insta::assert_snapshot!("every_problem", error.to_string());
    let places: Vec<_> = error.placed().iter().map(|p| (p.line, p.column)).collect();
    assert!(places.contains(&(Some(1), Some(2))), "{places:?}");
}

#[test]
fn an_unknown_key_names_the_nearest() {
    insta::assert_snapshot!(
        "unknown_keys",
        all(&[
            ("table = \"cities\"\nkey", "tabel = \"cities\"\nkey"),
            ("key = \"id\"", "key = \"id\"\nwhatever = 1"),
            ("source = \"app\"", "source = \"apps\""),
            ("sink = \"mirror\"", "sink = \"elsewhere\""),
            ("[sink.mirror]", "[sinks.mirror]"),
        ])
    );
}

#[test]
fn a_kind_that_is_not_known_names_those_that_are() {
    insta::assert_snapshot!(
        "unknown_kinds",
        all(&[
            ("kind = \"sqlite\"", "kind = \"kafka\""),
            ("sqlite:app.db", "mysql://localhost/app"),
            ("sqlite:app.db", "app.db"),
            ("sqlite:app.db", "memory:"),
            ("sqlite:app.db", "sqlite::memory:"),
            ("sqlite:app.db", "sqlite:"),
        ])
    );
}

#[test]
fn a_value_of_another_form_names_the_form() {
    insta::assert_snapshot!(
        "wrong_values",
        all(&[
            ("key = \"id\"", "key = []"),
            ("key = \"id\"", "key = [\"id\", \"id\"]"),
            ("key = \"id\"", "key = { a = 1 }"),
            ("key = \"id\"", "key = \"id\"\nnormal_form = \"yes\""),
            ("key = \"id\"", "key = \"id\"\ndocument = \"id\""),
            ("key = \"id\"", "key = \"id\"\ndocument = { json = [\"a\"] }"),
            ("key = \"id\"", "key = \"id\"\nwatch = [{ table = \"names\" }]"),
            (
                "key = \"id\"",
                "key = \"id\"\nwatch = [{ table = \"t\", via = [\"a\", \"b\"], references = \"id\" }]",
            ),
            ("key = \"id\"", "key = \"id\"\npage_rows = \"many\""),
            ("kind = \"sqlite\"", "kind = \"sqlite\"\nlayout = \"json\""),
            (
                "[source.app]",
                "[worker]\nlease = \"2 years\"\nlisten = \"localhost\"\n\n[source.app]"
            ),
            ("[source.app]", "source = 1\n[sources.app]"),
            ("url = \"sqlite:app.db\"", "url = \"sqlite:app.db"),
        ])
    );
}

#[test]
fn two_writers_of_one_place_are_refused() {
    let second = |sink: &str, rest: &str| {
        format!(
            "[pipeline.towns]\nsource = \"app\"\ntable = \"towns\"\nkey = \"id\"\nsink = \"{sink}\"\n\n\
             {rest}[pipeline.cities]"
        )
    };
    let other =
        "[sink.other]\nkind = \"sqlite\"\nurl = \"sqlite:./mirror.db\"\ntable = \"CITIES\"\n\n";
    let another_key = second("other", &other.replace("CITIES", "towns"))
        .replace("table = \"towns\"\nkey = \"id\"", "table = \"Cities\"\nkey = \"name\"");
    insta::assert_snapshot!(
        "conflicts",
        all(&[
            ("[pipeline.cities]", &second("mirror", "")),
            ("[pipeline.cities]", &second("other", other)),
            ("[pipeline.cities]", &another_key),
            ("sqlite:mirror.db", "sqlite:app.db"),
            ("sqlite:mirror.db", "sqlite:truekeep.db"),
            ("sqlite:app.db", "sqlite:truekeep.db"),
        ])
    );
}

#[test]
fn what_is_likely_not_meant_is_a_warning() {
    insta::assert_snapshot!(
        "warnings",
        all(&[
            ("[source.app]", "[ledger]\nurl = \"memory:\"\n\n[source.app]"),
            ("[source.app]", "[source.spare]\nurl = \"sqlite:spare.db\"\n\n[source.app]"),
        ])
    );
    let empty = parse("").expect("nothing is wrong with it");
    insta::assert_snapshot!("warning_of_nothing", empty.render_warnings(false));
}

#[test]
fn a_secret_stands_in_no_debug_and_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("password"), "s3cr3t-word\n").expect("written");
    let path = folder.path().join("truekeep.toml");
    let text = GOOD
        .replace("sqlite:app.db", "sqlite:${SECRET}.db")
        .replace("sqlite:mirror.db", "sqlite:${file:password}.db");
    let config = Config::parse(&path, &text, &environment).expect("good");
    let cities = config.pipeline("cities").expect("there");
    let source = config.source_of(cities).file().expect("a file").path();
    assert!(source.ends_with("hunter2-secret.db"), "{}", source.display());
    let sink = config.sink_of(cities).target.location().expect("a file").path();
    assert!(sink.ends_with("s3cr3t-word.db"), "{}", sink.display());
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("s3cr3t"), "{shown}");
    assert_eq!(config.redact("failed to open hunter2-secret.db"), "failed to open ${SECRET}.db");
    for wrong in ["lease = \"${SECRET}\"", "listen = \"${file:password}\""] {
        let text = format!("[worker]\n{wrong}\n{GOOD}");
        let told = Config::parse(&path, &text, &environment).expect_err("wrong").to_string();
        assert!(!told.contains("hunter2") && !told.contains("s3cr3t"), "{told}");
    }
}

#[test]
fn a_substitution_that_fails_names_what_is_missing() {
    insta::assert_snapshot!(
        "substitutions",
        all(&[
            ("sqlite:app.db", "sqlite:${NOWHERE}"),
            ("sqlite:app.db", "sqlite:${SECRET"),
            ("sqlite:app.db", "sqlite:${file:no-such-file}"),
        ])
    );
    let literal = parse(&GOOD.replacen("key =", "live_when = \"a = '$${b}'\"\nkey =", 1));
    let literal = literal.expect("good").pipelines[0].live_when.clone();
    assert_eq!(literal.as_deref(), Some("a = '${b}'"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = Config::load(&folder.path().join("truekeep.toml")).expect_err("missing");
    assert!(missing.problems()[0].message.contains("No such file"), "{missing}");
    let of_folder = Config::load(folder.path()).expect_err("a folder");
    assert!(of_folder.problems()[0].message.contains("it is a folder"), "{of_folder}");
    let bytes = folder.path().join("bytes.toml");
    std::fs::write(&bytes, [0xff, 0xfe]).expect("written");
    let not_text = Config::load(&bytes).expect_err("not text");
    assert!(not_text.problems()[0].message.contains("UTF-8"), "{not_text}");
}

#[test]
fn a_duration_is_read_with_its_unit() {
    let config = parse(&format!("[worker]\nlease = \"1 s\"\n{GOOD}")).expect("good");
    assert_eq!(config.worker.lease, Duration::from_secs(1));
}

#[cfg(feature = "tantivy")]
mod index {
    use truekeep_sink_tantivy::{Analysis, DateUnit, FieldKind, Language, Split, WRITER_BYTES};

    use super::*;

    const MIRROR: &str = "kind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\ntable = \"cities\"\n";

    fn with(index: &str) -> String {
        GOOD.replace(MIRROR, index)
    }

    fn index(text: &str) -> IndexConfig {
        let config = parse(&with(text)).unwrap_or_else(|error| panic!("{error}"));
        match &config.sinks["mirror"].target {
            TargetConfig::Index(index) => index.clone(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_type_alone_is_a_field_with_defaults() {
        let index = index("kind = \"tantivy\"\npath = \"search\"\nfields = { name = \"text\" }\n");
        assert_eq!(index.location.path(), Path::new("search"));
        assert_eq!(index.spec.writer_bytes, WRITER_BYTES);
        let [name] = &index.spec.fields[..] else { panic!("one field") };
        let words = Analysis { split: Split::Words, fold: false, language: None };
        assert_eq!(name.kind, FieldKind::Text(words));
        assert_eq!(
            (name.indexed, name.stored, name.fast, name.required),
            (true, true, false, false)
        );
    }

    #[test]
    fn each_key_of_a_field_is_read() {
        let index = index(
            r#"kind = "tantivy"
path = "search"
memory = "15 MB"
[sink.mirror.fields]
body = { type = "text", split = "whitespace", fold = true, language = "german", stored = false }
born = { type = "date", unit = "ms", fast = true, required = true }
seen = { type = "json", indexed = false }
"#,
        );
        assert_eq!(index.spec.writer_bytes, 15 << 20);
        let told: Vec<String> = index
            .spec
            .fields
            .iter()
            .map(|field| format!("{} {}", field.name, field.told()))
            .collect();
        assert_eq!(
            told,
            [
                "body text by truekeep1:whitespace:fold:german, indexed",
                "born date in ms, indexed, stored, fast, required",
                "seen json by truekeep1:words, stored",
            ]
        );
        let german =
            Analysis { split: Split::Whitespace, fold: true, language: Some(Language::German) };
        assert_eq!(index.spec.fields[0].kind, FieldKind::Text(german));
        assert_eq!(index.spec.fields[1].kind, FieldKind::Date(DateUnit::Milliseconds));
    }

    #[test]
    fn problems_of_an_index_are_told_with_their_places() {
        let text = with(
            r#"kind = "tantivy"
url = "sqlite:mirror.db"
memory = "1 MB"
[sink.mirror.fields]
"full name" = "text"
_key = "keyword"
title = "txt"
body = { type = "text", langage = "english" }
lead = { type = "text", language = "germn", split = "letters" }
country = { type = "keyword", language = "english" }
born = { type = "i64", unit = "s" }
died = { unit = "s" }
gone = { type = "date", indexed = false, stored = false }
age = 7
"#,
        );
        let error = parse(&text).expect_err("wrong");
        insta::assert_snapshot!("index_problems", error.to_string());
        for index in [
            "kind = \"tantivi\"\n",
            "kind = \"tantivy\"\npath = \"\"\nfields = {}\n",
            "kind = \"tantivy\"\npath = \"search\"\nfields = \"title\"\n",
            "kind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\ntable = \"cities\"\nfields = { a = \"text\" }\n",
        ] {
            let error = parse(&with(index)).expect_err("wrong");
            insta::assert_snapshot!(error.to_string());
        }
    }

    #[test]
    fn two_pipelines_do_not_write_one_index() {
        let index = "kind = \"tantivy\"\npath = \"search\"\nfields = { name = \"text\" }\n";
        let other = r#"
[pipeline.again]
source = "app"
table = "cities"
key = "id"
sink = "other"

[sink.other]
"#;
        let error = parse(&(with(index) + other + index)).expect_err("wrong");
        assert!(error.to_string().contains("write one sink"), "{error}");
    }
}
