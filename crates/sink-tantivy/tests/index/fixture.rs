//! Indexes of tests, and a look into them past the port.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tantivy::collector::DocSetCollector;
use tantivy::query::TermQuery;
use tantivy::schema::document::OwnedValue;
use tantivy::schema::{Document as _, IndexRecordOption};
use tantivy::{Index, IndexWriter, TantivyDocument, Term};
use truekeep_core::ports::{Batch, Body, Delivery, Mark};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_sink_tantivy::{Analysis, FieldKind, FieldSpec, IndexSpec, Split, WRITER_BYTES_MIN};

pub const WORDS: Analysis = Analysis { split: Split::Words, fold: false, language: None };

pub fn field(name: &str, kind: FieldKind) -> FieldSpec {
    let (indexed, stored, fast, required) = (true, true, false, false);
    FieldSpec { name: name.into(), kind, indexed, stored, fast, required }
}

pub fn spec(fields: Vec<FieldSpec>) -> IndexSpec {
    IndexSpec { fields, writer_bytes: WRITER_BYTES_MIN }
}

pub fn mark(number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(1),
        number: MarkNumber::new(number),
        removed: false,
    }
}

pub fn batch(number: u64, deliveries: Vec<Delivery>) -> Batch {
    let follows = if number > 1 { mark(number - 1).batch() } else { BatchName::default() };
    Batch { mark: mark(number), follows, deliveries }
}

pub fn rank(version: u64) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version) }
}

pub fn upsert(key: &str, version: u64, fields: &[(&str, Value)]) -> Delivery {
    let names = fields.iter().map(|(name, _)| (*name).into()).collect();
    let values = fields.iter().map(|(_, value)| value.clone()).collect();
    let body = Body::Upsert(Arc::new(Document::new(names, values)));
    Delivery { key: Key::new(key), rank: rank(version), body }
}

pub fn delete(key: &str, version: u64) -> Delivery {
    Delivery { key: Key::new(key), rank: rank(version), body: Body::Delete }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// The live documents of an index with their stored fields, as tantivy tells them.
pub fn raw_documents(folder: &Path) -> BTreeMap<Key, BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if !folder.exists() {
        return found;
    }
    let index = Index::open_in_dir(folder).expect("opened");
    let schema = index.schema();
    let searcher = index.reader().expect("read").searcher();
    for segment in searcher.segment_readers() {
        let store = segment.get_store_reader(1).expect("a store");
        for document in store.iter::<TantivyDocument>(segment.alive_bitset()) {
            let document = document.expect("read");
            let mut fields: BTreeMap<String, String> = document
                .iter_fields_and_values()
                .map(|(field, value)| {
                    let value = match OwnedValue::from(value) {
                        OwnedValue::Str(text) => text,
                        other => format!("{other:?}"),
                    };
                    (schema.get_field_name(field).to_owned(), value)
                })
                .collect();
            if let Some(key) = fields.remove("_key") {
                fields.remove("_digest");
                assert!(found.insert(Key::new(key), fields).is_none(), "a key is live once");
            }
        }
    }
    found
}

/// Another program that writes the index.
pub fn raw_writer(folder: &Path) -> (Index, IndexWriter) {
    let index = Index::open_in_dir(folder).expect("opened");
    let writer = index.writer_with_num_threads(1, WRITER_BYTES_MIN).expect("nobody else writes");
    (index, writer)
}

/// Commits what another program wrote, and leaves the mark as it is.
pub fn commit_aside(index: &Index, mut writer: IndexWriter) {
    let payload = index.load_metas().expect("read").payload.unwrap_or_default();
    let mut commit = writer.prepare_commit().expect("prepared");
    commit.set_payload(&payload);
    commit.commit().expect("committed");
}

/// Gives the live record of a key another text in a field, and leaves all else of it.
pub fn alter(folder: &Path, key: &Key, name: &str, text: &str) {
    let (index, writer) = raw_writer(folder);
    let schema = index.schema();
    let field = |name: &str| schema.get_field(name).expect("a field");
    let term = Term::from_field_text(field("_key"), key.as_str());
    let searcher = index.reader().expect("read").searcher();
    let query = TermQuery::new(term.clone(), IndexRecordOption::Basic);
    let found = searcher.search(&query, &DocSetCollector).expect("searched");
    let address = *found.iter().next().expect("it is there");
    let held: TantivyDocument = searcher.doc(address).expect("read");
    let mut altered = TantivyDocument::default();
    for (place, value) in held.iter_fields_and_values().filter(|(place, _)| *place != field(name)) {
        altered.add_field_value(place, &OwnedValue::from(value));
    }
    altered.add_text(field(name), text);
    let columns = searcher.segment_reader(address.segment_ord).fast_fields();
    for name in ["_rules", "_version"] {
        let number = columns.u64(name).expect("a column").first(address.doc_id);
        altered.add_u64(field(name), number.expect("a number"));
    }
    writer.delete_term(term);
    writer.add_document(altered).expect("added");
    commit_aside(&index, writer);
}
