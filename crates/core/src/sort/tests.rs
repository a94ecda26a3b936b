//! The external sort against a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn rank(version: u64) -> Rank {
    Rank { rules: RulesNumber::new(1), version: Version::new(version) }
}

/// Sorts entries through runs of at most so many bytes, read so many bytes at a time.
fn sorted(entries: &[Listed], room: usize, window: usize) -> Result<Vec<Listed>, Corrupt> {
    let (mut runs, mut buffer) = (Vec::new(), RunBuffer::new(room));
    let mut flush = |buffer: &mut RunBuffer| {
        let mut run = Vec::new();
        buffer.sort();
        while !buffer.is_empty() {
            run.extend(buffer.piece(window));
        }
        runs.push(run);
    };
    for (key, rank) in entries {
        if !buffer.push(key, *rank) {
            flush(&mut buffer);
            assert!(buffer.push(key, *rank), "an empty buffer takes any entry");
        }
    }
    flush(&mut buffer);
    merged(&runs, window)
}

fn merged(runs: &[Vec<u8>], window: usize) -> Result<Vec<Listed>, Corrupt> {
    let mut places = vec![0; runs.len()];
    let (mut merge, mut all) = (RunMerge::new(runs.len()), Vec::new());
    loop {
        match merge.advance()? {
            Merged::Entry(entry) => all.push(entry),
            Merged::End => return Ok(all),
            Merged::Need(run) => {
                let rest = &runs[run][places[run]..];
                let next = &rest[..rest.len().min(window)];
                places[run] += next.len();
                merge.feed(run, next);
            }
        }
    }
}

proptest! {
    /// Each key once, in the order of its bytes, with the greatest of its ranks.
    #[test]
    fn a_sort_through_runs_is_a_map(
        entries in prop::collection::vec((".{0,3}", prop::option::of(1..9u64)), 0..60),
        room in 0..200usize,
        window in 1..64usize,
    ) {
        let entries: Vec<Listed> =
            entries.into_iter().map(|(text, version)| (Key::new(text), version.map(rank))).collect();
        let mut expected: BTreeMap<Key, Option<Rank>> = BTreeMap::new();
        for (key, rank) in &entries {
            let held = expected.entry(key.clone()).or_default();
            *held = (*held).max(*rank);
        }
        let expected: Vec<Listed> = expected.into_iter().collect();
        prop_assert_eq!(sorted(&entries, room, window), Ok(expected));
    }
}

/// M2.
#[test]
fn a_buffer_takes_no_more_than_its_room() {
    let mut buffer = RunBuffer::new(1_000);
    let taken = (0..).find(|n| !buffer.push(&Key::new(format!("{n:05}")), None)).expect("full");
    assert_eq!(taken, 1_000 / (FRAME as u64 + 5 + 4));
    buffer.sort();
    assert!(buffer.piece(100).len() <= 100);
}

#[test]
fn a_run_that_was_cut_or_altered_is_not_taken_for_its_end() {
    let mut run = Vec::new();
    append(&mut run, &(Key::new("a"), Some(rank(1))));
    append(&mut run, &(Key::new("b"), None));
    assert_eq!(merged(std::slice::from_ref(&run), 7).map(|all| all.len()), Ok(2));
    for length in 1..run.len() {
        let cut = merged(&[run[..length].to_vec()], 7);
        assert!(cut == Err(Corrupt) || length == FRAME + 1, "{length}: {cut:?}");
    }
    for (at, byte) in [(4, 2), (FRAME, 0xff)] {
        let mut altered = run.clone();
        altered[at] = byte;
        assert_eq!(merged(&[altered], 7), Err(Corrupt));
    }
}
