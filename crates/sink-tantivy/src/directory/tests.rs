//! What is written is on disk once it is said to be.

use std::path::Path;

use tantivy::Directory;
use tantivy::directory::error::OpenWriteError;

use super::*;

fn open() -> (tempfile::TempDir, IndexDirectory) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = IndexDirectory::open(folder.path()).expect("opened");
    (folder, directory)
}

#[test]
fn files_of_a_segment_are_told_from_others() {
    let id = "0123456789abcdef0123456789ABCDEF";
    for ending in ["term", "store.temp", "17.del", "fast", "fieldnorm", "idx", "pos", "store"] {
        assert!(is_of_a_segment(&format!("{id}.{ending}")), "{ending}");
    }
    for name in ["meta.json", "notes.term", id, &format!("{id}.txt"), &format!("{id}.x.del")] {
        assert!(!is_of_a_segment(name), "{name}");
    }
}

#[test]
fn list_of_files_is_the_folder_itself() {
    let (folder, directory) = open();
    let name = "0123456789abcdef0123456789abcdef.term";
    std::fs::write(folder.path().join(name), "left by a crash").expect("written");
    std::fs::write(folder.path().join("notes.txt"), "not ours").expect("written");
    directory.atomic_write(Path::new(MANAGED), b"[\"gone\"]").expect("ignored");
    let read = directory.atomic_read(Path::new(MANAGED)).expect("read");
    assert_eq!(String::from_utf8_lossy(&read), format!("[\"{name}\"]"));
}

#[test]
fn meta_of_somebody_else_is_not_replaced() {
    let (folder, directory) = open();
    let meta = Path::new(META);
    directory.atomic_write(meta, b"one").expect("written");
    assert!(directory.is_known());
    directory.atomic_write(meta, b"two").expect("our own is replaced");
    std::fs::write(folder.path().join("restored"), "old").expect("written");
    std::fs::rename(folder.path().join("restored"), folder.path().join(META)).expect("restored");
    assert!(!directory.is_known());
    let error = directory.atomic_write(meta, b"three").expect_err("it is not ours");
    assert_eq!(error.to_string(), REPLACED);
    assert_eq!(std::fs::read(folder.path().join(META)).expect("read"), b"old");
    std::fs::remove_file(folder.path().join(META)).expect("removed");
    directory.atomic_write(meta, b"four").expect_err("it was removed");
    assert!(!folder.path().join(META).exists());
}

#[test]
fn file_that_a_crash_left_is_made_anew_and_not_written_over() {
    let (folder, directory) = open();
    let name = Path::new("0123456789abcdef0123456789abcdef.17.del");
    std::fs::write(folder.path().join(name), "left").expect("written");
    let reader = std::fs::File::open(folder.path().join(name)).expect("somebody reads it");
    let mut file = directory.open_write(name).expect("made anew");
    file.write_all(b"new").and_then(|()| file.terminate()).expect("written");
    assert_eq!(std::fs::read(folder.path().join(name)).expect("read"), b"new");
    assert_eq!(std::io::read_to_string(reader).expect("read"), "left");
}

#[test]
fn first_trouble_is_kept_until_it_is_taken() {
    let (folder, directory) = open();
    std::fs::remove_dir_all(folder.path()).expect("removed");
    let opened = directory.open_write(Path::new("0123456789abcdef0123456789abcdef.term"));
    assert!(matches!(opened, Err(OpenWriteError::IoError { .. })));
    directory.atomic_write(Path::new(META), b"x").expect_err("there is no folder");
    let trouble = directory.take_trouble().expect("kept");
    assert_eq!(trouble.kind(), io::ErrorKind::NotFound);
    assert!(directory.take_trouble().is_none());
}

#[test]
fn folder_with_something_else_in_it_is_a_strangers() {
    let (folder, _) = open();
    for ours in [".tantivy-writer.lock", ".managed.json", ".tmpA1b2"] {
        std::fs::write(folder.path().join(ours), "").expect("written");
    }
    assert_eq!(stranger(folder.path()).expect("read"), None);
    std::fs::write(folder.path().join("thesis.doc"), "").expect("written");
    assert_eq!(stranger(folder.path()).expect("read"), Some("thesis.doc".into()));
}

#[test]
fn nothing_is_replaced_after_the_end() {
    let (folder, directory) = open();
    directory.atomic_write(Path::new(META), b"one").expect("written");
    let of_a_merge = directory.clone();
    directory.end();
    of_a_merge.atomic_write(Path::new(META), b"two").expect_err("it has ended");
    assert_eq!(std::fs::read(folder.path().join(META)).expect("read"), b"one");
}

/// What no sync brings to disk.
fn unsyncable() -> File {
    let (_, pipe) = io::pipe().expect("a pipe");
    std::os::fd::OwnedFd::from(pipe).into()
}

/// Confirmed is on disk: what a commit names is synced before it is named, and after a sync that
/// failed nothing is named any more, since a second one would not say what was lost.
#[test]
fn nothing_is_named_that_is_not_on_disk() {
    let (folder, directory) = open();
    let meta = Path::new(META);
    directory.atomic_write(meta, b"one").expect("written");
    let small = Written { file: Some(unsyncable()), bytes: 1, directory: directory.clone() };
    small.terminate().expect("it is synced with the others");
    let error = directory.atomic_write(meta, b"two").expect_err("a file was not synced");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let error = directory.atomic_write(meta, b"three").expect_err("nor is it ever again");
    assert_eq!(error.to_string(), "an earlier sync failed");
    assert_eq!(std::fs::read(folder.path().join(META)).expect("read"), b"one");
    assert!(directory.take_trouble().is_some());
}

#[test]
fn large_file_is_synced_by_whoever_wrote_it() {
    let (_folder, directory) = open();
    let bytes = SYNCED_ALONE_BYTES;
    let large = Written { file: Some(unsyncable()), bytes, directory: directory.clone() };
    large.terminate().expect_err("it was not synced");
    assert!(directory.kept().unsynced.is_empty(), "no commit waits for it");
}
