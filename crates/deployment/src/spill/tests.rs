//! Files without a name, on a real disk.

use super::*;

#[tokio::test]
async fn what_is_put_aside_is_read_back_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let spill = FolderSpill::new(Some(folder.path().into()));
    let mut file = spill.file().await.expect("made");
    file.append(b"one".to_vec()).await.expect("written");
    file.append(vec![7; 1 << 20]).await.expect("written");
    assert_eq!(file.read(0, 4).await.expect("read"), *b"one\x07");
    assert_eq!(file.read((1 << 20) + 1, 100).await.expect("read"), [7, 7], "fewer at the end");
    assert_eq!(file.read(1 << 30, 100).await.expect("read"), [0_u8; 0]);
    let mut other = spill.file().await.expect("made");
    other.append(b"other".to_vec()).await.expect("written");
    assert_eq!(file.read(0, 3).await.expect("read"), *b"one", "each file is its own");
    let names = || std::fs::read_dir(folder.path()).expect("read").count();
    assert_eq!(names(), 0, "a process that is killed leaves nothing either");
}

#[tokio::test]
async fn a_folder_that_is_not_there_or_full_is_told_by_name() {
    let missing = FolderSpill::new(Some("/nowhere/at/all".into()));
    let error = missing.file().await.expect_err("no such folder");
    assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::SPILL_FAILED));
    assert!(error.chain().contains("/nowhere/at/all"), "{}", error.chain());
    // The device that is always full, as what a file was made on.
    let full = File::options().write(true).open("/dev/full").expect("this system has it");
    let (file, folder) = (Arc::new(full), Path::new("/dev").into());
    let mut file = NamelessFile { file, folder, length: 0 };
    let error = file.append(vec![0; 4096]).await.expect_err("no room");
    assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::SPILL_FAILED));
    assert!(error.chain().contains("No space left"), "{}", error.chain());
}
