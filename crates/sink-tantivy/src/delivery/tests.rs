//! What is said of a batch whose commit failed.

use std::io::{Error, ErrorKind};

use truekeep_core::{BatchName, Fence, Incarnation, LedgerId, MarkNumber, RulesNumber};

use super::*;
use crate::index::OpenIndex;
use crate::schema::Layout;
use crate::spec::{FieldKind, FieldSpec, IndexSpec, WRITER_BYTES_MIN};

fn mark(number: u64) -> Mark {
    Mark {
        ledger: LedgerId::parse("ledger").expect("a token"),
        pipeline: Incarnation::parse("pipeline").expect("a token"),
        rules: RulesNumber::new(1),
        fence: Fence::new(1),
        number: MarkNumber::new(number),
        removed: false,
    }
}

/// P2: a commit whose last sync failed has replaced `meta.json`: it is there for whoever looks, and
/// a power cut may take it away again. So it may have happened; without it there it has not.
#[test]
fn commit_that_failed_after_it_was_there_may_have_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let (kind, name) = (FieldKind::Keyword, "body".to_owned());
    let field = FieldSpec { name, kind, indexed: true, stored: true, fast: false, required: false };
    let spec = IndexSpec { fields: vec![field], writer_bytes: WRITER_BYTES_MIN };
    let layout = || Layout::wanted(&spec);
    OpenIndex::make(folder.path(), &layout()).expect("made");
    let mut keeper = Keeper::new(folder.path(), layout(), WRITER_BYTES_MIN);
    keeper.look().expect("it is read as it was before the commit");
    let mut writer = Keeper::new(folder.path(), layout(), WRITER_BYTES_MIN);
    let follows = BatchName::default();
    writer.apply(&Batch { mark: mark(1), follows, deliveries: Vec::new() }).expect("written");
    drop(writer);
    let mut said = |mark| {
        let failure = Failure::from(Error::from(ErrorKind::StorageFull));
        keeper.undone(failure, &mark).classify(OPERATION, folder.path()).class
    };
    assert_eq!(said(mark(1)), FailureClass::Unknown);
    assert_eq!(said(mark(2)), FailureClass::Retry);
}
