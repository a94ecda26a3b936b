//! Trouble is classified by causing it: a full disk, a folder that may not be written, damage,
//! an index of another version.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::Sink;
use truekeep_sink_tantivy::{FieldKind, SearchIndex, SearchRequest, TantivySink};

use crate::ALONE;
use crate::fixture::{WORDS, batch, field, mark, raw_documents, spec, text, upsert};

/// Tells this program, started by itself, which index to write.
const FOLDER: &str = "TRUEKEEP_TEST_TROUBLED_INDEX";

fn named(path: &Path) -> TantivySink {
    TantivySink::new(path, &spec(vec![field("body", FieldKind::Text(WORDS))])).expect("named")
}

async fn write(sink: &TantivySink, number: u64, words: u64) -> Result<(), PortError> {
    let body = (0..words).map(|word| format!("w{} ", word * 7_919 % 104_729)).collect::<String>();
    let sent = vec![upsert(&number.to_string(), number, &[("body", text(&body))])];
    sink.apply(batch(number, sent)).await.map(|_| ())
}

async fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    let sink = named(&path);
    sink.prepare().await.expect("prepared");
    write(&sink, 1, 10).await.expect("written");
    (folder, path)
}

/// Runs one of the tests below as a child of this program, under a condition.
fn child(name: &str, path: &Path, condition: impl FnOnce(&mut Command) -> &mut Command) {
    let program = env::current_exe().expect("this program");
    // A limit is the shell's to set; a signal that is ignored stays so in what it starts.
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; eval "$0"; exec "$@""#]);
    condition(&mut command);
    let name = format!("failures::{name}");
    command.arg(program).args(["--exact", &name, "--nocapture", "--test-threads=1"]);
    let output = command.env(FOLDER, path).output().expect("started");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{output:?}");
}

fn of_child() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// A file that may not grow is a full disk without a disk.
#[tokio::test]
async fn full_disk_is_retried_and_leaves_the_index_as_it_was() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = written().await;
    // In units of 512 bytes.
    child("child_fills_its_disk", &path, |command| command.arg("ulimit -f 100"));
    let sink = named(&path);
    assert_eq!(sink.mark().await.expect("read"), Some(mark(1)));
    assert_eq!(raw_documents(&path).len(), 1);
    write(&sink, 2, 20_000).await.expect("there is room again");
    assert_eq!(raw_documents(&path).len(), 2);
}

#[tokio::test]
async fn child_fills_its_disk() {
    let Some(path) = of_child() else { return };
    let sink = named(&path);
    for _ in 0..3 {
        let error = write(&sink, 2, 20_000).await.expect_err("the disk is full");
        assert_eq!((error.class, &error.code), (FailureClass::Retry, &Code::SINK_UNAVAILABLE));
        assert!(error.chain().contains("too large"), "{}", error.chain());
        assert_eq!(sink.mark().await.expect("read"), Some(mark(1)));
    }
}

/// Who may not write the folder can search it, and halts as a writer.
#[tokio::test]
async fn folder_that_may_not_be_written_halts_and_can_be_searched() {
    let _alone = ALONE.lock().await;
    let (folder, path) = written().await;
    for path in [folder.path(), &path] {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o555);
        std::fs::set_permissions(path, rights).expect("set");
    }
    child("child_may_only_read", &path, |command| {
        command.arg(":");
        // Root may write everything, nobody may not; who is not root may not either.
        if is_root() { command.uid(65_534) } else { command }
    });
    for path in [&path, folder.path()] {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, rights).expect("set");
    }
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("read")) == 0
}

#[tokio::test]
async fn child_may_only_read() {
    let Some(path) = of_child() else { return };
    let sink = named(&path);
    assert_eq!(sink.mark().await.expect("it can be read"), Some(mark(1)));
    let error = write(&sink, 2, 1).await.expect_err("it may not be written");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_UNAVAILABLE));
    let index = SearchIndex::open(&path).expect("opened").expect("it is there");
    let request = SearchRequest { query: "w0", fields: &[], limit: 1 };
    assert_eq!(index.search(&request).expect("searched").count, 1);
}

async fn of_each_use(path: &Path) -> Vec<PortError> {
    let sink = named(path);
    let mut errors = Vec::new();
    errors.extend(sink.prepare().await.err());
    errors.extend(sink.mark().await.err());
    errors.extend(sink.list(None, 10).await.err());
    errors.extend(write(&sink, 2, 1).await.err());
    if let Err(error) = SearchIndex::open(path) {
        errors.push(error);
    }
    errors
}

#[tokio::test]
async fn damaged_index_halts_and_nothing_panics() {
    let _alone = ALONE.lock().await;
    for (ending, how) in [
        ("meta.json", "empty"),
        ("meta.json", "garbage"),
        (".term", "empty"),
        (".term", "short"),
        (".fast", "short"),
        (".idx", "garbage"),
        (".store", "gone"),
        (".fieldnorm", "gone"),
    ] {
        let (_folder, path) = written().await;
        let files = std::fs::read_dir(&path).expect("read");
        let mut names = files.map(|file| file.expect("a file").path());
        let file = names.find(|name| name.to_string_lossy().ends_with(ending)).expect("a file");
        let whole = std::fs::read(&file).expect("read");
        match how {
            "gone" => std::fs::remove_file(&file).expect("removed"),
            "empty" => std::fs::write(&file, "").expect("written"),
            "short" => std::fs::write(&file, &whole[..whole.len() / 2]).expect("written"),
            _ => std::fs::write(&file, vec![0xaa; whole.len()]).expect("written"),
        }
        let errors = of_each_use(&path).await;
        assert!(!errors.is_empty(), "{how} {ending}");
        for error in errors {
            let told = (error.class, error.code.clone());
            assert_eq!(
                told,
                (FailureClass::Halted, Code::INDEX_CORRUPT),
                "{how} {ending}: {error:?}"
            );
        }
    }
}

/// Every file tells in its footer the form it was written in.
#[tokio::test]
async fn index_of_another_version_halts_with_a_code_of_its_own() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = written().await;
    for file in std::fs::read_dir(&path).expect("read") {
        let file = file.expect("a file").path();
        let whole = std::fs::read(&file).expect("read");
        let current = format!("\"index_format_version\":{}", tantivy::INDEX_FORMAT_VERSION);
        let at = whole.windows(current.len()).position(|window| window == current.as_bytes());
        if let Some(at) = at {
            let mut later = whole;
            later[at + current.len() - 1] = b'9';
            std::fs::write(&file, later).expect("written");
        }
    }
    let errors = of_each_use(&path).await;
    assert!(errors.len() >= 4);
    for error in errors {
        let told = (error.class, error.code.clone());
        assert_eq!(told, (FailureClass::Halted, Code::INDEX_VERSION), "{error:?}");
    }
}

#[tokio::test]
async fn mark_of_a_later_program_halts() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = written().await;
    let (_, mut writer) = crate::fixture::raw_writer(&path);
    let mut commit = writer.prepare_commit().expect("prepared");
    commit.set_payload(r#"{"truekeep":2,"mark":{"new":"form"}}"#);
    commit.commit().expect("committed");
    drop(writer);
    for error in [named(&path).mark().await.err(), write(&named(&path), 2, 1).await.err()] {
        let error = error.expect("it halts");
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::INDEX_VERSION));
    }
}
