//! What a search finds, beside a writer.

use truekeep_core::Value;
use truekeep_core::ports::Sink;
use truekeep_sink_tantivy::{
    Analysis, BadQuery, DateUnit, FieldKind, FieldSpec, Language, SearchError, SearchIndex,
    SearchRequest, Split, TantivySink,
};

use crate::fixture::{WORDS, batch, delete, field, spec, text, upsert};

struct Shelf {
    _folder: tempfile::TempDir,
    sink: TantivySink,
    index: SearchIndex,
}

fn fields() -> Vec<FieldSpec> {
    let english = Analysis { language: Some(Language::English), ..WORDS };
    let fold = Analysis { fold: true, ..WORDS };
    let grams = Analysis { split: Split::Grams, ..WORDS };
    vec![
        field("title", FieldKind::Text(english)),
        field("city", FieldKind::Text(fold)),
        field("native", FieldKind::Text(grams)),
        field("code", FieldKind::Keyword),
        field("kind", FieldKind::Facet),
        field("made", FieldKind::Date(DateUnit::Text)),
        FieldSpec { fast: true, ..field("number", FieldKind::Signed) },
        field("fine", FieldKind::Boolean),
        field("more", FieldKind::Json(WORDS)),
        FieldSpec { indexed: false, ..field("note", FieldKind::Keyword) },
    ]
}

async fn shelf() -> Shelf {
    let folder = tempfile::tempdir().expect("a folder");
    let sink = TantivySink::new(folder.path(), &spec(fields())).expect("named");
    sink.prepare().await.expect("prepared");
    let index = SearchIndex::open(folder.path()).expect("opened").expect("it is there");
    let shelf = Shelf { _folder: folder, sink, index };
    let json = |text: &str| Value::Json(text.into());
    let book = |key: &str, title: &str, city: &str, number: i64| {
        upsert(
            key,
            1,
            &[
                ("title", text(title)),
                ("city", text(city)),
                ("native", json(r#"["東京都","京都市"]"#)),
                ("code", text(&format!("X-{number}"))),
                ("kind", text(&format!("/book/{city}"))),
                ("made", text(&format!("20{number:02}-06-01"))),
                ("number", Value::Integer(number)),
                ("fine", Value::Integer(number % 2)),
                ("more", json(&format!(r#"{{"pages":{number},"lang":"en"}}"#))),
                ("note", text("a note")),
            ],
        )
    };
    let books = vec![
        book("a", "Running with horses", "São Paulo", 1),
        book("b", "The horse and his boy", "Århus", 2),
        book("c", "A runner's world", "Paris", 3),
        delete("d", 1),
    ];
    shelf.sink.apply(batch(1, books)).await.expect("applied");
    shelf
}

impl Shelf {
    fn keys(&self, query: &str) -> Vec<String> {
        let request = SearchRequest { query, fields: &[], limit: 10 };
        let found =
            self.index.search(&request).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let mut keys: Vec<String> = found.hits.iter().map(|hit| hit.key.to_string()).collect();
        assert_eq!(found.count, keys.len() as u64);
        keys.sort();
        keys
    }

    fn bad(&self, query: &str) -> BadQuery {
        let request = SearchRequest { query, fields: &[], limit: 10 };
        match self.index.search(&request) {
            Err(SearchError::Query(bad)) => bad,
            other => panic!("{query}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn each_kind_of_field_is_searched_as_it_was_understood() {
    let shelf = shelf().await;
    for (query, keys) in [
        ("horse", &["a", "b"][..]),
        ("horses run", &["a"]),
        ("title:boy", &["b"]),
        ("sao", &["a"]),
        ("city:ARHUS", &["b"]),
        ("native:京都", &["a", "b", "c"]),
        ("code:X-2", &["b"]),
        ("X-3", &["c"]),
        ("\"his boy\"", &["b"]),
        ("\"boy his\"", &[]),
        ("horse -boy", &["a"]),
        ("paulo OR paris", &["a", "c"]),
        ("kind:\"/book\"", &["a", "b", "c"]),
        ("kind:\"/book/Paris\"", &["c"]),
        ("number:[2 TO 3]", &["b", "c"]),
        ("number:{1 TO 3}", &["b"]),
        ("made:[2002-01-01T00:00:00Z TO 2002-12-31T00:00:00Z]", &["b"]),
        ("fine:true", &["a", "c"]),
        ("more.pages:2", &["b"]),
        ("more.lang:EN", &["a", "b", "c"]),
        ("*", &["a", "b", "c"]),
        ("* -horse", &["c"]),
        ("nothing", &[]),
    ] {
        assert_eq!(shelf.keys(query), keys, "{query}");
    }
}

#[tokio::test]
async fn change_is_found_by_a_search_that_was_open_before() {
    let shelf = shelf().await;
    assert_eq!(shelf.keys("title:horse"), ["a", "b"]);
    for number in 2..20 {
        let word = format!("number{number}");
        let fields: Vec<_> = fields().into_iter().map(|field| field.name).collect();
        let values: Vec<(&str, Value)> = fields
            .iter()
            .map(|name| (&**name, if name == "title" { text(&word) } else { Value::Null }))
            .collect();
        let sent = vec![upsert("a", number, &values)];
        shelf.sink.apply(batch(number, sent)).await.expect("applied");
        assert_eq!(shelf.keys(&word), ["a"]);
        assert_eq!(shelf.keys("title:horse"), ["b"], "what was there before is gone");
    }
    shelf.sink.apply(batch(20, vec![delete("b", 30)])).await.expect("applied");
    assert_eq!(shelf.keys("title:horse"), [] as [&str; 0]);
    assert_eq!(shelf.keys("*"), ["a", "c"], "no tombstone is found");
}

#[tokio::test]
async fn hit_shows_what_is_stored_and_where_the_words_stand() {
    let shelf = shelf().await;
    let request = SearchRequest { query: "horse boy", fields: &[], limit: 10 };
    let found = shelf.index.search(&request).expect("searched");
    let [hit] = &found.hits[..] else { panic!("{found:?}") };
    assert_eq!(
        serde_json::Value::Object(hit.fields.clone()),
        serde_json::json!({
            "title": "The horse and his boy", "city": "Århus", "native": ["東京都", "京都市"],
            "code": "X-2", "kind": "/book/Århus", "made": "2002-06-01T00:00:00Z", "number": 2,
            "fine": false, "more": {"lang": "en", "pages": 2}, "note": "a note",
        })
    );
    let [snippet] = &hit.snippets[..] else { panic!("{hit:?}") };
    let marked: Vec<&str> =
        snippet.marked.iter().map(|range| &snippet.text[range.clone()]).collect();
    assert_eq!((snippet.field.as_str(), marked), ("title", vec!["horse", "boy"]));
}

#[tokio::test]
async fn best_hits_come_first_and_no_more_than_asked_for() {
    let shelf = shelf().await;
    for limit in 0..4 {
        let request = SearchRequest { query: "horse OR world", fields: &[], limit };
        let found = shelf.index.search(&request).expect("searched");
        assert_eq!((found.count, found.hits.len()), (3, limit as usize));
        assert!(found.hits.is_sorted_by(|one, next| one.score >= next.score));
    }
}

#[tokio::test]
async fn words_without_a_field_are_looked_for_where_it_was_said() {
    let shelf = shelf().await;
    let keys = |fields: &[&str]| {
        let fields: Vec<String> = fields.iter().map(|name| (*name).to_owned()).collect();
        let request = SearchRequest { query: "paris", fields: &fields, limit: 10 };
        shelf.index.search(&request).map(|found| found.count)
    };
    assert_eq!(keys(&["city"]).expect("searched"), 1);
    assert_eq!(keys(&["title", "code"]).expect("searched"), 0);
    for (name, told) in
        [("town", "the index has no field `town`"), ("note", "field `note` cannot be searched")]
    {
        match keys(&[name]) {
            Err(SearchError::Query(bad)) => assert_eq!((&*bad.message, bad.at), (told, None)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn bad_query_is_told_with_its_place() {
    let shelf = shelf().await;
    for (query, at, told) in [
        ("", Some(0), "empty"),
        ("horse AND town:x", Some(10), "no field `town`"),
        ("note:x", Some(0), "`note` cannot be searched"),
        ("number:two", None, "valid integer"),
        ("made:yesterday", None, "date"),
        ("kind:book", None, "facet"),
        ("-horse", None, "Only excluding"),
        ("(horse", Some(6), ""),
        ("\"horse", Some(6), ""),
    ] {
        let bad = shelf.bad(query);
        assert!(bad.message.contains(told), "{query}: {bad:?}");
        assert_eq!(bad.at, at, "{query}: {bad:?}");
    }
}

/// Brackets are parsed one in another, and a parser that goes back doubles its work with each.
#[tokio::test]
async fn query_that_is_as_deep_and_as_long_as_can_be_is_answered() {
    let shelf = shelf().await;
    for unit in ["(", "+(", "title:("] {
        let query = format!("{}horse{}", unit.repeat(50), ")".repeat(50));
        assert_eq!(shelf.keys(&query), ["a", "b"]);
    }
    let long = "horse ".repeat(1_600);
    assert_eq!(shelf.keys(&long), ["a", "b"]);
    let words = (0..900).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" OR ");
    assert_eq!(shelf.keys(&words), [] as [&str; 0]);
}

#[test]
fn folder_without_an_index_has_nothing_to_search() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(SearchIndex::open(folder.path()).expect("looked").is_none());
    assert!(SearchIndex::open(&folder.path().join("none")).expect("looked").is_none());
}
