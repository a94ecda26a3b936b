//! Generations of an index obey the rules of every sink with generations, and a reader in another
//! process follows them without an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tempfile::TempDir;
use truekeep_conformance::generations::GenerationsUnderTest;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Generations, Served, Sink, Survey, Swap, Swapped};
use truekeep_core::{Generation, Key, SwapNumber};
use truekeep_sink_tantivy::{
    FieldKind, IndexSpec, SearchIndex, SearchRequest, TantivyGenerations, TantivySink,
};

use crate::fixture::{WORDS, batch, field, mark, raw_documents, spec, text, upsert};

#[derive(Debug)]
struct Subject {
    folder: TempDir,
    generations: Arc<TantivyGenerations>,
}

fn fields() -> IndexSpec {
    spec(vec![field("body", FieldKind::Text(WORDS))])
}

impl Subject {
    fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    async fn open(&self, generation: u64) -> Arc<dyn Sink> {
        self.generations.open(Generation::new(generation)).await.expect("opened")
    }

    /// A generation of one record with this body.
    async fn made(&self, generation: u64, body: &str) -> Arc<dyn Sink> {
        let sink = self.open(generation).await;
        sink.prepare().await.expect("prepared");
        let sent = vec![upsert("k", 1, &[("body", text(body))])];
        sink.apply(batch(1, sent)).await.expect("applied");
        sink
    }

    async fn swap(&self, number: u64, from: u64, to: u64) -> Swapped {
        self.generations.swap(&swap(number, from, to)).await.expect("answered")
    }

    async fn survey(&self) -> Survey {
        self.generations.survey().await.expect("a survey")
    }
}

fn swap(number: u64, from: u64, to: u64) -> Swap {
    let (from, to) = (Generation::new(from), Generation::new(to));
    Swap { number: SwapNumber::new(number), from, to }
}

fn named(path: &Path) -> Arc<TantivyGenerations> {
    Arc::new(TantivyGenerations::new(path, &fields()).expect("named"))
}

async fn open() -> Subject {
    let folder = tempfile::tempdir().expect("a folder");
    let generations = named(&folder.path().join("index"));
    Subject { folder, generations }
}

/// The bodies that a search finds, by key.
fn searched(index: &SearchIndex) -> BTreeMap<Key, String> {
    let all = SearchRequest { query: "*", fields: &[], limit: 100 };
    let found = index.search(&all).expect("searched");
    let body = |hit: &truekeep_sink_tantivy::Hit| hit.fields["body"].as_str().map(str::to_owned);
    found.hits.iter().map(|hit| (hit.key.clone(), body(hit).expect("text"))).collect()
}

fn only(body: &str) -> BTreeMap<Key, String> {
    BTreeMap::from([(Key::new("k"), body.to_owned())])
}

#[async_trait]
impl GenerationsUnderTest for Subject {
    fn generations(&self) -> Arc<dyn Generations> {
        Arc::clone(&self.generations) as Arc<dyn Generations>
    }

    async fn reopen(&mut self) {
        self.generations = named(&self.path());
    }

    async fn seen(&self) -> BTreeMap<Key, String> {
        let index = SearchIndex::open(&self.path()).expect("opened").expect("it is there");
        searched(&index)
    }
}

truekeep_conformance::generation_rules!(open);

/// What was there before there were generations is the first, where it is and as it is.
#[tokio::test]
async fn plain_index_is_the_first_generation() {
    let subject = open().await;
    let plain = TantivySink::new(&subject.path(), &fields()).expect("named");
    plain.prepare().await.expect("prepared");
    let sent = vec![upsert("k", 1, &[("body", text("plain"))])];
    plain.apply(batch(1, sent)).await.expect("applied");
    drop(plain);
    let first = Generation::new(1);
    assert_eq!(subject.survey().await, Survey { served: Served::FIRST, held: vec![first] });
    assert_eq!(subject.open(1).await.mark().await.expect("read"), Some(mark(1)));
    subject.made(2, "second").await;
    assert_eq!(subject.swap(1, 1, 2).await, Swapped::Done);
    assert_eq!(subject.seen().await, only("second"));
    assert_eq!(raw_documents(&subject.path()).len(), 1, "it stays where it is");
    assert_eq!(subject.swap(2, 2, 1).await, Swapped::Done);
    assert_eq!(subject.seen().await, only("plain"));
}

/// A search that was begun before a swap goes on, and the next one finds what readers see then;
/// other fields are no trouble.
#[tokio::test]
async fn reader_follows_swaps_and_removals() {
    let subject = open().await;
    subject.made(1, "first").await;
    let reader = SearchIndex::open(&subject.path()).expect("opened").expect("it is there");
    assert_eq!(searched(&reader), only("first"));
    let more = [fields().fields, vec![field("more", FieldKind::Signed)]].concat();
    let other = TantivyGenerations::new(&subject.path(), &spec(more)).expect("named");
    let sink = other.open(Generation::new(2)).await.expect("opened");
    sink.prepare().await.expect("prepared");
    let more = [("body", text("second")), ("more", truekeep_core::Value::Integer(7))];
    sink.apply(batch(1, vec![upsert("k", 1, &more)])).await.expect("applied");
    drop(sink);
    assert_eq!(searched(&reader), only("first"));
    assert_eq!(subject.swap(1, 1, 2).await, Swapped::Done);
    assert_eq!(searched(&reader), only("second"));
    let by_more = SearchRequest { query: "more:7", fields: &[], limit: 1 };
    assert_eq!(reader.search(&by_more).expect("its own fields").count, 1);
    other.discard(Generation::new(1)).await.expect("removed");
    assert_eq!(searched(&reader), only("second"));
    assert!(raw_names(&subject.path()).iter().all(|name| !name.contains(".store")));
}

fn raw_names(path: &Path) -> Vec<String> {
    let files = std::fs::read_dir(path).expect("read");
    files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect()
}

/// Rule 115: searches beside swaps and removals find one generation whole, and never an error.
#[tokio::test(flavor = "multi_thread")]
async fn search_beside_swaps_and_removals_never_fails() {
    let subject = open().await;
    drop(subject.made(1, "generation1").await);
    let (path, ended) = (subject.path(), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = [true, false]
        .map(|anew| {
            let (path, ended) = (path.clone(), Arc::clone(&ended));
            std::thread::spawn(move || {
                let open = || SearchIndex::open(&path).expect("opened").expect("it is there");
                let (mut reader, mut last, mut searches) = (open(), 0, 0u64);
                while !ended.load(Ordering::Relaxed) {
                    if anew {
                        reader = open();
                    }
                    let found = searched(&reader);
                    let [body] = &*found.into_values().collect::<Vec<_>>() else {
                        panic!("one record is seen at any time")
                    };
                    let number: u64 =
                        body.strip_prefix("generation").expect("ours").parse().expect("a number");
                    assert!(number >= last, "never back");
                    (last, searches) = (number, searches + 1);
                }
                (last, searches)
            })
        })
        .into();
    let last = 40;
    for next in 2..=last {
        drop(subject.made(next, &format!("generation{next}")).await);
        assert_eq!(subject.swap(next, next - 1, next).await, Swapped::Done);
        subject.generations.discard(Generation::new(next - 1)).await.expect("removed");
    }
    ended.store(true, Ordering::Relaxed);
    for reader in readers {
        let (seen, searches) = reader.join().expect("no search failed");
        assert!(seen >= 1 && searches > 0);
    }
    assert_eq!(subject.survey().await.held, [Generation::new(last)]);
    assert_eq!(subject.seen().await, only(&format!("generation{last}")));
}

/// A generation that somebody writes is not removed under it.
#[tokio::test]
async fn generation_that_is_written_is_not_removed() {
    let subject = open().await;
    subject.made(1, "first").await;
    let second = subject.made(2, "second").await;
    let error = subject.generations.discard(Generation::new(2)).await.expect_err("it is written");
    assert_eq!((error.class, &error.code), (FailureClass::Retry, &Code::SINK_LOCKED));
    assert_eq!(second.mark().await.expect("read"), Some(mark(1)));
    drop(second);
    subject.generations.discard(Generation::new(2)).await.expect("removed");
    assert_eq!(subject.survey().await.held, [Generation::new(1)]);
}

/// One process writes an index: whoever opens a generation twice does not shut itself out.
#[tokio::test]
async fn generation_that_is_opened_twice_has_one_writer() {
    let subject = open().await;
    let (one, other) = (subject.made(1, "first").await, subject.open(1).await);
    let sent = |number| batch(number, vec![upsert("k", number, &[("body", text("again"))])]);
    other.apply(sent(2)).await.expect("applied");
    one.apply(sent(3)).await.expect("applied");
}

#[tokio::test]
async fn note_that_cannot_be_understood_halts_and_serves_nothing() {
    let subject = open().await;
    subject.made(1, "first").await;
    for (note, code) in [
        ("", Code::INDEX_CORRUPT),
        ("{}", Code::INDEX_CORRUPT),
        (r#"{"truekeep":1}"#, Code::INDEX_CORRUPT),
        (r#"{"truekeep":2,"generations":[1,2]}"#, Code::INDEX_VERSION),
    ] {
        std::fs::write(subject.path().join("served.json"), note).expect("written");
        let errors = [
            SearchIndex::open(&subject.path()).expect_err("it names nothing"),
            subject.generations.survey().await.expect_err("it names nothing"),
            subject.generations.swap(&swap(1, 1, 2)).await.expect_err("it names nothing"),
            subject.generations.discard(Generation::new(1)).await.expect_err("it names nothing"),
        ];
        for error in errors {
            assert_eq!((error.class, &error.code), (FailureClass::Halted, &code), "{note:?}");
            assert!(error.detail.contains("served.json"), "{}", error.detail);
        }
    }
    assert_eq!(raw_documents(&subject.path()).len(), 1, "nothing was removed");
}

/// Folders whose names are almost those of generations are none of ours.
#[tokio::test]
async fn folder_that_is_no_generation_is_left_alone() {
    let subject = open().await;
    subject.made(1, "first").await;
    for name in ["generation-02", "generation-1", "generation-x", "generation-"] {
        std::fs::create_dir(subject.path().join(name)).expect("made");
    }
    assert_eq!(subject.survey().await.held, [Generation::new(1)]);
}
